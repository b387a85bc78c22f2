"""Mutation score: one small mistake at a time in a copy of the commit, against the tests that execute its line.

    python tests/mutants.py [--count 60] [--seed 0] [--fast] [--limit SECONDS] [FOLDER OR FILE OF reproduce/ ...]

A run of all tests under coverage.py says which of them execute which line, in child processes too. Mutants are drawn
inside functions, at most one in each. Each is tried in a fork of one process that has collected the tests: the code of
its function is exchanged, and its file, for processes that a test starts. One that no test executes survives; one that
hangs is killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from select import select
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

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
    if not hasattr(session.config, "workerinput") and "MUTATE" not in os.environ:
        Path(os.environ["MUTANTS"]).write_text(json.dumps({"seconds": seconds, "failed": sorted(failed)}))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Instead of the tests: each mutant of a file, in a fork."""
    if "MUTATE" not in os.environ:
        return None
    known, killed = {item.nodeid: item for item in session.items}, 0
    drawn = json.loads(Path(os.environ["MUTATE"]).read_text())
    for name, change, text, able in drawn:
        file, items = Path(name), [known[test] for test in able if test in known]
        source = file.read_text()
        file.write_text(text)
        by = tried(file, source, text, items) if items else ""
        file.write_text(source)
        killed += bool(by)
        result = f"killed by {by}" if by else f"SURVIVES {len(items)} tests" if items else "NO TEST executes it"
        print(f"{change}: {result}", flush=True)
    print(f"{killed} of {len(drawn)} mutants killed", flush=True)
    return True


def tried(file: Path, source: str, text: str, items: list[pytest.Item]) -> str:
    """The first test that fails, in a fork."""
    end, begin = os.pipe()
    if not (child := os.fork()):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        try:
            exchange(file, source, text)
            for item, following in zip(items, [*items[1:], None], strict=True):
                if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                    os.write(begin, item.nodeid.encode())
                    break
        finally:
            os._exit(0)
    os.close(begin)
    late = not select([end], [], [], float(os.environ["MUTANTS_LIMIT"]))[0]
    if late:
        os.kill(child, signal.SIGKILL)
    said = "too long" if late else os.read(end, 2**16).decode()
    os.waitpid(child, 0)
    os.close(end)
    return said


def exchange(file: Path, source: str, text: str) -> None:
    """Give the functions of a file that are there the code of `text`, and forget what they returned."""
    old, new = (dict(codes(compile(part, str(file), "exec"))) for part in (source, text))
    for found in gc.get_objects():
        if type(found) is FunctionType and found.__code__.co_filename == str(file):
            key = found.__code__.co_qualname, found.__code__.co_firstlineno
            if key in new and new[key] != old.get(key):
                found.__code__ = new[key]
        elif type(found) is functools._lru_cache_wrapper and str(found.__module__).startswith("reproduce"):
            found.cache_clear()


def codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    yield (code.co_qualname, code.co_firstlineno), code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


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
            new.value = ast.IfExp(ast.Constant(True), ast.Constant(None), new.value)  # with its free variables
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


def tests(folder: Path, environment: dict[str, str], options: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "mutants", "-p", "no:cacheprovider", *options]
    subprocess.run(command, cwd=folder, env=environment)


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
    tests(folder, plain | {"COVERAGE_PROCESS_START": str(settings)}, options)
    told = json.loads(Path(plain["MUTANTS"]).read_text())
    lines = coverage.Coverage(config_file=str(settings))
    lines.combine([str(folder)])
    places = tuple(f"{folder}/reproduce/{name.rstrip('/')}/" for name in asked.where)
    functions: dict[tuple[Path, int], list[Any]] = defaultdict(list)
    for file in (file for file in folder.glob("reproduce/**/*.py") if f"{file}/".startswith(places)):
        for function, statement, node in candidates(ast.parse(file.read_bytes())):
            functions[file, function].append((statement, node))
    draw, drawn = random.Random(asked.seed), []
    for file, function in draw.sample(sorted(functions), min(asked.count, len(functions))):
        statement, node = draw.choice(functions[file, function])
        found = lines.get_data().contexts_by_lineno(str(file))
        contexts = {c for line in range(statement, node.lineno + 1) for c in found.get(line, [])}
        names = {part.rpartition(" (")[0] or part for context in contexts for part in context.split("|")}
        able = sorted(names & set(told["seconds"]) - set(told["failed"]), key=told["seconds"].__getitem__)
        change = f"{ast.unparse(node)} -> {ast.unparse(mutated(node))}".replace("\n", " ")
        where = f"{file.relative_to(folder)}:{node.lineno}: {change}"
        drawn.append((str(file), where, mutate(file.read_bytes(), node).decode(), able))
    (folder / "drawn.json").write_text(json.dumps(drawn))
    tests(folder, plain | {"MUTATE": str(folder / "drawn.json"), "MUTANTS_LIMIT": str(asked.limit)}, options)
    print(f"seed {asked.seed}; the copy is in {folder}")


if __name__ == "__main__":
    main()
