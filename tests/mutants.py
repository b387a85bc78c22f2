"""Mutation score: one small mistake at a time in a copy of the commit, against the tests that execute its line.

    python tests/mutants.py [--count 60] [--seed 0] [--fast]

A run of all tests under coverage.py says which of them execute which line, in child processes too. Mutants are drawn
inside functions, at most one in each. One that no test executes survives; one whose tests take ten minutes does not.
"""

import argparse
import ast
import contextlib
import copy
import json
import math
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
WHERE = ("engine", "algorithms", "clocks", "partitions", "verdicts", "runs")
PAIRS = ("Lt LtE", "Gt GtE", "Eq NotEq", "In NotIn", "Is IsNot", "And Or", "Add Sub", "Mult Div")
SWAPS = {getattr(ast, a): getattr(ast, b) for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Messages, defaults, and parts whose positions Python does not know.
UNSEEN = (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments, ast.Slice)
MEASURED = "[run]\nsource = {folder}/reproduce\ndata_file = {folder}/.coverage\nparallel = true\npatch = fork, _exit\n"
MEASURED += "context = ${{PYTEST_CURRENT_TEST-}}\n"  # of a child process, from its environment

# What a forked process executes belongs to the test that runs.
os.register_at_fork(after_in_child=lambda: pytest_runtest_logstart(os.environ["PYTEST_CURRENT_TEST"]))
seconds: dict[str, float] = defaultdict(float)  # of a test; without end if it fails with the code as it is


def pytest_runtest_logstart(nodeid: str) -> None:
    if measured := coverage.Coverage.current():
        measured.switch_context(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] += math.inf if report.failed else report.duration


def pytest_sessionfinish() -> None:
    Path(os.environ["MUTANTS"]).write_text(json.dumps(seconds))


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
        case ast.Constant(value=int() | float()):
            new.value = not new.value if isinstance(new.value, bool) else new.value + 1
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
                strict = isinstance(child, ast.keyword) and child.arg == "strict"  # the same, if lengths are right
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


def fails(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """The first of the tests that fails, "" if none does."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        return " ".join(["killed by", *run.stdout.splitlines()[-3:-2]]) if run.returncode else ""
    return "killed: too long"


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation score of the tests.")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--fast", action="store_true")
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="mutants-"))
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    settings = folder / ".coveragerc"
    settings.write_text(MEASURED.format(folder=folder))
    path = os.pathsep.join([str(folder), str(folder / "tests"), os.environ.get("PYTHONPATH", "")])
    plain = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS": str(folder / "told.json")}
    pytests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    options = ["-p", "mutants", *["--fast", "--seed", asked.seed] * asked.fast]
    subprocess.run([*pytests, *options], cwd=folder, env=plain | {"COVERAGE_PROCESS_START": str(settings)})
    took = json.loads(Path(plain["MUTANTS"]).read_text())
    lines = coverage.Coverage(config_file=str(settings))
    lines.combine([str(folder)])
    functions: dict[tuple[Path, int], list[Any]] = defaultdict(list)
    for file in (file for name in WHERE for file in folder.glob(f"reproduce/{name}/**/*.py")):
        for function, statement, node in candidates(ast.parse(file.read_bytes())):
            functions[file, function].append((statement, node))
    draw, killed = random.Random(asked.seed), 0
    for file, function in draw.sample(sorted(functions), asked.count):
        statement, node = draw.choice(functions[file, function])
        found = lines.get_data().contexts_by_lineno(str(file))
        told = "|".join(c for line in range(statement, node.lineno + 1) for c in found.get(line, []))
        names = {part.rpartition(" (")[0] or part for part in told.split("|")}
        able = sorted((n for n in names if took.get(n, math.inf) < math.inf), key=took.__getitem__)
        change = f"{ast.unparse(node)} -> {ast.unparse(mutated(node))}".replace("\n", " ")
        source = file.read_bytes()
        file.write_bytes(mutate(source, node))
        parts = filter(None, (able[:20], able[20:]))  # to collect takes longer than most tests
        by = next(filter(None, (fails([*pytests, "-x", *part], folder, plain) for part in parts)), "")
        file.write_bytes(source)
        killed += bool(by)
        print(f"{file.relative_to(folder)}:{node.lineno}: {change}: {by or f'SURVIVES {len(able)}'}", flush=True)
    print(f"seed {asked.seed}: {killed} of {asked.count} mutants killed")


if __name__ == "__main__":
    main()
