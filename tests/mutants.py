"""Mutation score: one small mistake at a time in a copy of the commit, against the tests of its room, then all others.

    python tests/mutants.py [--count 120] [--seed 0] [--fast] [--under engine/kernels]

A mutant is a line drawn from all functions of the package and its C sources, then a kind of change drawn from those
that the line allows. It is killed by an assertion or an exception in a test that passes without it.
"""

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
NO_TESTS = 5
"""The exit status of pytest where nothing was collected."""
PATIENCE = 300.0
"""Seconds that the tests of a mutant may take besides three times those of the code as it is."""
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


def killed(command: list[str], folder: Path, plain: dict[str, str], patience: float) -> str:
    """The first test that fails or cannot be imported, "" if none does."""
    try:
        run = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return "killed: too long"
    return " ".join(["killed by", *run.stdout.splitlines()[-3:-2]]) if run.returncode not in (0, NO_TESTS) else ""


def compiles(path: Path) -> bool:
    """Whether a changed C source is one; a library that cannot be built gives way to another strategy."""
    where = path.with_suffix(".c") if path.with_suffix(".c").exists() else path.parent / "convnet.c"
    flags = (
        "-std=gnu11",
        "-w",
        "-O0",
        "-DREAL=float",
        "-DBITS=int32_t",
        "-DSINGLE",
        "-mavx2",
        "-mfma",
        "-fsyntax-only",
    )
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
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    plain = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    pytests = [sys.executable, "-m", "pytest", "-q", *["--fast", "--seed", asked.seed] * asked.fast]
    begin = time.monotonic()
    subprocess.run(pytests, cwd=folder, env=plain)
    patience, lost = PATIENCE + 3 * (time.monotonic() - begin), folder / ".pytest_cache/v/cache/lastfailed"
    pytests += [f"--deselect={test}" for test in (json.loads(lost.read_text()) if lost.exists() else ())]
    all_of, dead = Counter[str](), Counter[str]()
    for file, edit in draw(folder, asked.under, random.Random(asked.seed)):
        source = file.read_bytes()
        file.write_bytes(source[: edit.begin] + edit.text.encode() + source[edit.end :])
        where = file.relative_to(folder / "reproduce")
        room = where.parts[0] if len(where.parts) > 1 else ""
        near = [[f"tests/{room}"]] * (room != "" and (folder / "tests" / room).is_dir())
        near += [["tests", f"--ignore=tests/{room or 'cluster'}"]]
        with contextlib.ExitStack() as stack:
            stack.callback(file.write_bytes, source)
            if file.suffix != ".py" and not compiles(file):
                continue
            commands = ([*pytests, "-x", "-p", "no:cacheprovider", *tests] for tests in near)
            by = next(filter(None, (killed(command, folder, plain, patience) for command in commands)), "")
        room = f"{room}, C" if file.suffix != ".py" else room or "reproduce"
        all_of[room], dead[room] = all_of[room] + 1, dead[room] + bool(by)
        change = f"{source[edit.begin : edit.end].decode()} -> {edit.text}".replace("\n", " ")
        print(f"{where}:{edit.line}: {edit.kind}: {change}: {by or 'SURVIVES'}", flush=True)
        if all_of.total() == asked.count:
            break
    for room in sorted(all_of):
        print(f"{room}: {dead[room]} of {all_of[room]}")
    print(f"seed {asked.seed}: {dead.total()} of {all_of.total()} mutants killed")


if __name__ == "__main__":
    main()
