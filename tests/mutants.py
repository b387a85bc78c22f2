"""Mutation score: one small mistake at a time in a copy of the commit, against the tests that execute its line.

    python tests/mutants.py [--count 120] [--seed 0] [--fast] [--under engine/kernels]

A run of all tests under coverage.py says which of them execute which line, in child processes too. A mutant is a line
drawn from all functions of the package and its C sources, then a kind of change drawn from those that the line allows.
It is killed by an assertion or an exception in a test; one that no test executes survives.
"""

import argparse
import ast
import contextlib
import copy
import functools
import gc
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0
"""Seconds of the tests that a mutant meets, the fastest first; it may take three times as long."""
BORDER = {"Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt"}
OPPOSITE = {"Lt": "GtE", "LtE": "Gt", "Gt": "LtE", "GtE": "Lt"} | dict(
    pair for a, b in (("Eq", "NotEq"), ("In", "NotIn"), ("Is", "IsNot")) for pair in ((a, b), (b, a))
)
OPERATOR = {
    "Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Div", "Mod": "FloorDiv", "Pow": "Mult",
    "BitOr": "BitAnd", "BitAnd": "BitOr", "MatMult": "Mult",
}  # fmt: skip
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "cummin": "cummax"}
NAMES |= {b: a for a, b in NAMES.items()}
UNSEEN = (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments)  # messages and defaults
MEASURED = "[run]\nsource = {folder}/reproduce\ndata_file = {folder}/.coverage\nparallel = true\npatch = fork, _exit\n"
MEASURED += "context = ${{PYTEST_CURRENT_TEST-}}\n"  # of a child process, from its environment


# --- as a plugin of pytest: contexts, fixtures, seconds ---

# What a forked process executes belongs to the test that runs.
os.register_at_fork(after_in_child=lambda: _switch(os.environ["PYTEST_CURRENT_TEST"]))
seconds: dict[str, float] = defaultdict(float)  # of a test; without end if it fails with the code as it is
used: dict[str, list[str]] = {}  # test -> its fixtures
file = ""


def _switch(context: str) -> None:
    if measured := coverage.Coverage.current():
        measured.switch_context(context)


def pytest_collection_finish(session: pytest.Session) -> None:
    used.update((item.nodeid, list(item.fixturenames)) for item in session.items if isinstance(item, pytest.Function))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Caches are emptied before each file, so that a file that uses a value executes what makes it."""
    global file
    if file != nodeid.partition("::")[0]:
        file = nodeid.partition("::")[0]
        for found in (o for o in gc.get_objects() if isinstance(o, functools._lru_cache_wrapper)):
            if found.__module__.startswith("reproduce"):
                found.cache_clear()
    _switch(nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """What a fixture of many tests executes belongs to all of them."""
    before = os.environ.get("PYTEST_CURRENT_TEST", "")
    if fixturedef.scope != "function":
        os.environ["PYTEST_CURRENT_TEST"] = f"fixture {fixturedef.argname}"
        _switch(f"fixture {fixturedef.argname}")
    try:
        return (yield)
    finally:
        os.environ["PYTEST_CURRENT_TEST"] = before
        _switch(before.rpartition(" (")[0])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] += math.inf if report.failed else report.duration


def pytest_sessionfinish() -> None:
    Path(os.environ["MUTANTS"]).write_text(json.dumps([seconds, used]))


# --- changes ---


class Edit(NamedTuple):
    """Bytes from `begin` to `end` of a file become `text`; lines `first` to `last` are those of the statement."""

    kind: str
    line: int
    first: int
    last: int
    begin: int
    end: int
    text: str


def replaced(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """(kind, what is replaced, by what) of a node."""

    def new(**fields: Any) -> str:
        other = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(other, name, value)
        return ast.unparse(other) if isinstance(other, ast.stmt) else f"({ast.unparse(other)})"

    match node:
        case ast.Compare(ops=[op]):
            for kind, table in (("border", BORDER), ("comparison", OPPOSITE)):
                if name := table.get(type(op).__name__):
                    yield kind, node, new(ops=[getattr(ast, name)()])
        case ast.BoolOp(op=op):
            yield "and, or", node, new(op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op, left=left, right=right) if type(op).__name__ in OPERATOR:
            if not any(isinstance(side, ast.JoinedStr | ast.Constant) and _texts(side) for side in (left, right)):
                yield "operator", node, new(op=getattr(ast, OPERATOR[type(op).__name__])())
        case ast.AugAssign(op=op) if type(op).__name__ in OPERATOR:
            yield "+=", node, new(op=getattr(ast, OPERATOR[type(op).__name__])())
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "sign", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, f"({value + 1})"
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield "min, max", node, new(func=ast.Name(NAMES[name]))
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in NAMES:
            yield "min, max", node, new(func=ast.Attribute(value, NAMES[name]))
        case ast.Slice(lower=lower, upper=upper):
            for end, by in ((lower, "+ 1"), (upper, "- 1")):
                if end is not None:
                    yield "slice", end, f"({ast.unparse(end)}) {by}"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", node, "return None"
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from (("condition", node.test, word) for word in ("True", "False"))
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "statement", node, "pass"
    if isinstance(node, ast.Assign) and all(
        isinstance(t, ast.Attribute | ast.Subscript) or _known(t) for t in node.targets
    ):
        yield "statement", node, "pass"  # of a name without a value before, that is a NameError


def _known(target: ast.expr) -> bool:
    """True for a name that has a value before this assignment; `python` marks those."""
    return getattr(target, "known", False)


def _texts(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", 0), str)


def python(source: bytes) -> Iterator[Edit]:
    """Changes inside functions; columns count bytes."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def walk(node: ast.AST, inside: bool, first: int, last: int) -> Iterator[Edit]:
        if isinstance(node, ast.stmt):
            block = bool(getattr(node, "body", None))
            first, last = node.lineno, node.lineno if block else node.end_lineno or node.lineno
        if inside:
            for kind, at, text in replaced(node):
                where: Any = at
                begin = starts[where.lineno - 1] + where.col_offset
                end = starts[where.end_lineno - 1] + where.end_col_offset
                yield Edit(kind, where.lineno, first, max(last, where.lineno), begin, end, text)
        if isinstance(node, ast.FunctionDef):
            inside, known = True, {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            for name in sorted((n for n in ast.walk(node) if isinstance(n, ast.Name)), key=lambda n: n.lineno):
                if isinstance(name.ctx, ast.Store):
                    name.known = name.id in known  # type: ignore[attr-defined]
                    known.add(name.id)
        for name, value in ast.iter_fields(node):
            if name not in ("decorator_list", "annotation", "returns"):
                for child in value if isinstance(value, list) else [value]:
                    strict = isinstance(child, ast.keyword) and child.arg == "strict"  # the same, if lengths are right
                    if isinstance(child, ast.AST) and not (strict or isinstance(child, UNSEEN)):
                        yield from walk(child, inside, first, last)

    yield from walk(ast.parse(source), False, 0, 0)


def _both(kind: str, a: str, b: str) -> list[tuple[str, str, str]]:
    return [(kind, rf"(?<= ){re.escape(x)}(?= )", y) for x, y in ((a, b), (b, a))]


IN_C = (
    *_both("border", "<", "<="), *_both("border", ">", ">="), *_both("comparison", "==", "!="),
    *_both("comparison", "<", ">="), *_both("and, or", "&&", "||"), *_both("operator", "+", "-"),
    *_both("operator", "*", "/"), *_both("+=", "+=", "-="), ("+=", r"(?<= )\*=(?= )", "+="),
    ("constant", r"(?<![\w.])0(?![\w.])", "1"), ("constant", r"(?<![\w.])1(?![\w.])", "2"),
    ("constant", r"(?<![\w.])2(?![\w.])", "3"), ("sign", r"(?<=[(=,?:] )-(?=[\w(])|(?<=\()-(?=[\w(])", ""),
    ("min, max", r"(?<=choose\()b > a", "b < a"), ("min, max", r"\bleast(?=\()", "-least"),
    *(("condition", r"(?<=if )\((?:[^()]|\([^()]*\))*\)", word) for word in ("(1)", "(0)")),
    ("statement", r"^ +(?:\*?\w+(?:\[[^;=]*\]|->\w+|\.\w+)* [-+*]?= |\w+\()[^;{}]*;", ";"),
)  # fmt: skip


def c(source: bytes) -> Iterator[Edit]:
    """Changes in indented lines: the bodies of functions, without comments and directives."""
    text, start = source.decode("ascii"), 0
    blank = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)
    for number, line in enumerate(blank.splitlines(keepends=True), 1):
        if line.startswith("    "):
            for kind, pattern, new in IN_C:
                for found in re.finditer(pattern, line):
                    yield Edit(kind, number, number, number, start + found.start(), start + found.end(), new)
        start += len(line)


# --- the score ---


def draw(folder: Path, under: str, random: random.Random) -> Iterator[tuple[Path, Edit]]:
    """Lines with equal chance, then kinds, then changes; `return None` is left out once it is a tenth."""
    lines: dict[tuple[Path, int], list[Edit]] = defaultdict(list)
    for path in sorted((folder / "reproduce" / under).rglob("*.*")):
        if path.suffix in (".py", ".c", ".h"):
            for edit in (python if path.suffix == ".py" else c)(path.read_bytes()):
                lines[path, edit.line].append(edit)
    places, returned, drawn = sorted(lines), 0, 0
    random.shuffle(places)
    for place in places:
        kinds = {edit.kind for edit in lines[place]}
        kinds -= {"return"} if returned >= max(1, drawn // 10) else set()
        if kinds:
            kind = random.choice(sorted(kinds))
            drawn, returned = drawn + 1, returned + (kind == "return")
            yield place[0], random.choice([edit for edit in lines[place] if edit.kind == kind])


def executed(data: coverage.CoverageData, path: Path, edit: Edit, used: dict[str, list[str]]) -> list[str]:
    """The tests that execute a statement, and the others of their files, whose caches they share.

    A line of C belongs to the tests that execute the modules beside it."""
    if path.suffix == ".py":
        found = data.contexts_by_lineno(str(path))
        told = {c for line in range(edit.first, edit.last + 1) for c in found.get(line, [])}
    else:
        beside = (data.contexts_by_lineno(str(p)) for p in (path.parent / "compiled.py", path.parent / "library.py"))
        told = {c for found in beside for contexts in found.values() for c in contexts}
    names = {part.rpartition(" (")[0] or part for c in told for part in c.split("|")}
    fixtures = {name.removeprefix("fixture ") for name in names if name.startswith("fixture ")}
    direct = [test for test in used if test in names or fixtures & {*used[test]}]
    files = {test.partition("::")[0] for test in direct}
    return [*direct, *(test for test in used if test.partition("::")[0] in files and test not in names)]


def killed(command: list[str], tests: list[str], folder: Path, environment: dict[str, str]) -> str:
    """The first of the tests that fails or cannot be imported, "" if none does."""
    try:
        run = subprocess.run([*command, "-x", *tests], cwd=folder, env=environment, capture_output=True, text=True,
                             timeout=3 * PATIENCE)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "killed: too long"
    lost = "not found:" in run.stdout + run.stderr
    return " ".join(["killed by", *run.stdout.splitlines()[-3:-2]]) if run.returncode and not lost else ""


def measure(folder: Path, pytests: list[str], options: list[str], plain: dict[str, str]) -> coverage.CoverageData:
    """Which contexts execute which lines, of one run of all tests."""
    settings = folder / ".coveragerc"
    settings.write_text(MEASURED.format(folder=folder))
    command = [*pytests, "-p", "mutants", *options]
    subprocess.run(command, cwd=folder, env=plain | {"COVERAGE_PROCESS_START": str(settings)})
    lines = coverage.Coverage(config_file=str(settings))
    lines.combine([str(folder)])
    return lines.get_data()


def compiles(path: Path) -> bool:
    """Whether a changed C source is one; a library that cannot be built gives way to another strategy."""
    where = path.with_suffix(".c") if path.with_suffix(".c").exists() else path.parent / "convnet.c"
    flags = [
        "-std=gnu11",
        "-w",
        "-O0",
        "-DREAL=float",
        "-DBITS=int32_t",
        "-DSINGLE",
        "-mavx2",
        "-mfma",
        "-fsyntax-only",
    ]
    return subprocess.run(["cc", *flags, str(where)], capture_output=True).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation score of the tests.")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--under", default="", help="a folder of the package")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        score(folder, asked)


def score(folder: Path, asked: argparse.Namespace) -> None:
    """Print a line for each mutant, and the shares that were killed, by folder."""
    path = os.pathsep.join([str(folder), str(folder / "tests"), os.environ.get("PYTHONPATH", "")])
    plain = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS": str(folder / "told.json")}
    pytests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    data = measure(folder, pytests, ["--fast", "--seed", asked.seed] * asked.fast, plain)
    took, used = json.loads(Path(plain["MUTANTS"]).read_text())
    all_of, dead = Counter[str](), Counter[str]()
    for file, edit in draw(folder, asked.under, random.Random(asked.seed)):
        source = file.read_bytes()
        file.write_bytes(source[: edit.begin] + edit.text.encode() + source[edit.end :])
        with contextlib.ExitStack() as stack:
            stack.callback(file.write_bytes, source)
            if file.suffix != ".py" and not compiles(file):
                continue
            tests, left = [], PATIENCE
            for test in sorted(executed(data, file, edit, used), key=lambda t: took.get(t, math.inf)):
                left -= took.get(test, math.inf)
                tests += [test] * (left > 0)
            parts = filter(None, (tests[:20], tests[20:]))  # to collect takes longer than most tests
            by = next(filter(None, (killed(pytests, part, folder, plain) for part in parts)), "")
        where = file.relative_to(folder / "reproduce")
        room = f"{where.parts[0]}, C" if file.suffix != ".py" else where.parts[0] if where.parent.parts else "reproduce"
        all_of[room], dead[room] = all_of[room] + 1, dead[room] + bool(by)
        change = f"{source[edit.begin : edit.end].decode()} -> {edit.text}".replace("\n", " ")
        print(f"{where}:{edit.line}: {edit.kind}: {change}: {by or f'SURVIVES {len(tests)}'}", flush=True)
        if all_of.total() == asked.count:
            break
    for room in sorted(all_of):
        print(f"{room}: {dead[room]} of {all_of[room]}")
    print(f"seed {asked.seed}: {dead.total()} of {all_of.total()} mutants killed")


if __name__ == "__main__":
    main()
