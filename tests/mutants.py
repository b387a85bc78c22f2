"""Mutation score: one small mistake at a time in a copy of the commit, against the tests that execute its line.

    python tests/mutants.py [--count 60] [--seed 0] [--fast] [--limit SECONDS] [FOLDER OR FILE OF reproduce/ ...]

A run of all tests under coverage.py says which of them execute which line, in child processes too. Mutants are drawn
inside functions, at most one in each. One that no test executes survives; one that hangs is killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parent.parent
WHERE = ("engine", "algorithms", "clocks", "partitions", "verdicts", "store", "runs")
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNSEEN = (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments, ast.Slice)
"""Messages, defaults, and parts whose positions Python does not know."""
MEASURED = "[run]\nsource = {folder}/reproduce\ndata_file = {folder}/.coverage\nparallel = true\npatch = fork, _exit\n"
MEASURED += "context = ${{PYTEST_CURRENT_TEST-}}\n"  # of a child process, from its environment

seconds: dict[str, float] = defaultdict(float)
failed: set[str] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if measured := coverage.Coverage.current():
        measured.switch_context(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] += report.duration
    if report.failed:
        failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["MUTANTS"]).write_text(json.dumps({"seconds": seconds, "failed": sorted(failed)}))


def mutated(node: ast.AST) -> ast.AST | None:
    """The node with a mistake, where there is one for its kind."""
    new: Any = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPS:
            new.op = SWAPS[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            new = new.operand
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float()):
            new.value += 1
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            new.func.id = NAMES[name]
        case ast.Return(value=ast.expr()) if not (isinstance(new.value, ast.Constant) and new.value.value is None):
            new.value = ast.Constant(None)
        case _:
            return None
    return new


def candidates(node: ast.AST, function: int = 0, statement: int = 0) -> Iterator[tuple[int, int, ast.AST]]:
    """Nodes inside functions, each with the first lines of its function and its statement."""
    statement = node.lineno if isinstance(node, ast.stmt) else statement
    if isinstance(node, ast.FunctionDef):
        function = node.lineno
    elif function and mutated(node):
        yield function, statement, node
    for name, value in ast.iter_fields(node):
        if name not in ("decorator_list", "annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                strict = (
                    isinstance(child, ast.keyword) and child.arg == "strict"
                )  # the same, if lengths are as they should
                if isinstance(child, ast.AST) and not (strict or isinstance(child, UNSEEN)):
                    yield from candidates(child, function, statement)


def mutate(source: bytes, node: Any) -> bytes:
    """The file with the node's mistake; columns count bytes."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    text = ast.unparse(mutated(node))
    return source[:begin] + (text if isinstance(node, ast.stmt) else f"({text})").encode() + source[end:]


def tests(folder: Path, environment: dict[str, str], options: list[str], limit: float | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants", "-p", "no:cacheprovider", *options]
    told = Path(environment["MUTANTS"])
    told.unlink(missing_ok=True)
    try:
        subprocess.run(command, cwd=folder, env=environment, timeout=limit, stdout=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"failed": ["too long"]}
    if not told.exists():
        return {"failed": ["no test starts"]}
    return json.loads(told.read_text())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation score of the tests.")
    parser.add_argument("where", nargs="*", default=WHERE)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--limit", type=float, default=600, help="seconds for the tests of a mutant")
    parser.add_argument("--tests", default="", help="options of pytest, for a part of the tests")
    return parser.parse_args()


def main() -> None:
    asked, folder = arguments(), Path(tempfile.mkdtemp(prefix="mutants-"))
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    settings = folder / ".coveragerc"
    settings.write_text(MEASURED.format(folder=folder))
    path = os.pathsep.join([str(folder), str(folder / "tests"), os.environ.get("PYTHONPATH", "")])
    plain = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS": str(folder / "told.json")}
    options = ["--fast", "--seed", asked.seed] * asked.fast + asked.tests.split()
    told = tests(folder, plain | {"COVERAGE_PROCESS_START": str(settings)}, options, None)
    lines = coverage.Coverage(config_file=str(settings))
    lines.combine([str(folder)])
    functions: dict[tuple[Path, int], list[Any]] = defaultdict(list)
    for file in (file for name in asked.where for file in (folder / "reproduce" / name).rglob("*.py")):
        for function, statement, node in candidates(ast.parse(file.read_bytes())):
            functions[file, function].append((statement, node))
    draw, killed = random.Random(asked.seed), 0
    chosen = draw.sample(sorted(functions), min(asked.count, len(functions)))
    for file, function in chosen:
        statement, node = draw.choice(functions[file, function])
        found = lines.get_data().contexts_by_lineno(str(file))
        contexts = {c for line in range(statement, node.lineno + 1) for c in found.get(line, [])}
        names = {part.rpartition(" (")[0] or part for context in contexts for part in context.split("|")}
        able = sorted(names & set(told["seconds"]) - set(told["failed"]), key=told["seconds"].__getitem__)
        (folder / "able.txt").write_text("\n".join(able))
        source = file.read_bytes()
        file.write_bytes(mutate(source, node))
        fails = able and tests(folder, plain, ["-x", f"@{folder}/able.txt"], asked.limit)["failed"]
        file.write_bytes(source)
        killed += bool(fails)
        change = f"{ast.unparse(node)} -> {ast.unparse(mutated(node))}".replace("\n", " ")
        result = f"killed by {fails[0]}" if fails else f"SURVIVES {len(able)} tests" if able else "NO TEST executes it"
        print(f"{file.relative_to(folder)}:{node.lineno}: {change}: {result}", flush=True)
    print(f"{killed} of {len(chosen)} mutants killed, seed {asked.seed}; the copy is in {folder}")


if __name__ == "__main__":
    main()
