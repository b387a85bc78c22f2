"""The source files that can change a number, and their digest.

The files of an experiment are the import closure of the engine's entry point and of the modules of its records: imports
inside functions and functions that strings name included, imports for type checkers not. Left out is what `HARMLESS`
names, with the reason. The digest of a file is that of its syntax tree, so that comments, docstrings, layout and the
version of Python do not enter.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from reproduce.files import read_source

PACKAGE = Path(__file__).parents[1]
ENTRY = "reproduce.runs.job"

HARMLESS = {
    "reproduce": "says what the package is",
    "reproduce.errors": "words of errors",
    "reproduce.files": "writes files",
    "reproduce.declare.isolation": "runs a user's own code; in the digest of results of such",
    "reproduce.settings": "reads the environment; the precision is part of a result's identity, threads change no bit",
    "reproduce.declare.experiment": "the records' frames; what they hold is the declaration",
    "reproduce.engine.user_code": "checks what a user's own algorithm gives; likewise",
    "reproduce.runs.rates": "estimates before a run",
    "reproduce.engine.host": "names the machine, shows how far a run is, ends a job at a checkpoint",
    "reproduce.runs.provenance": "describes a run that has ended",
    "reproduce.engine.checkpoint": "reads and writes states; a resumed run ends in the same bits (test_interruptions)",
    "reproduce.store": "writes results, refuses others; a resumed run ends in the same bits (test_faults)",
    "reproduce.runs.replay": "compares results with results",
    "reproduce.data.sources": "where data sets come from; their checksums are in every result's provenance",
    "reproduce.data.decoded": "keeps decoded arrays as they are",
    "reproduce.data.download": "fetches files, whose checksums are verified before they are read",
}
"""Modules that cannot change a number, and why."""
OWN = frozenset({"reproduce.declare.isolation", "reproduce.engine.user_code"})
"""Those of them that are in the digest of a user's own algorithms."""


@cache
def files(modules: frozenset[str]) -> frozenset[Path]:
    """The files that can change a number of what `modules` (dotted names) and the engine compute."""
    reached: set[str] = set()
    stack = [ENTRY, *modules]
    while stack:
        name = stack.pop()
        if name not in reached and (name not in HARMLESS or name in OWN & modules):
            reached.add(name)
            stack += imports(name)
    sources = {path(name) for name in reached}
    return frozenset(sources | {c for source in sources for c in _compiled(source.parent)})


@cache
def digest(of: frozenset[Path]) -> str:
    """SHA-256 (16 hex digits) of what the files say and of where they lie in the package."""
    places = {f: f.relative_to(PACKAGE).as_posix() if f.is_relative_to(PACKAGE) else f.name for f in sorted(of)}
    lines = [f"{place} {_file_digest(f)}" for f, place in places.items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def installed(file: Path) -> bool:
    """Tells whether a file is of an installed library, or of this package."""
    folders = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    return any(file.is_relative_to(folder) for folder in [*folders, PACKAGE])


def packaged(files: Iterable[Path]) -> frozenset[str]:
    """The modules of this package that files of a user's own import."""
    nodes = [node for file in files for node in _imports([*ast.walk(ast.parse(file.read_bytes()))])]
    names = {name for node in nodes for name in _named(node, ()) if name.partition(".")[0] == PACKAGE.name}
    return frozenset(name for name in names if _find(name) is not None)


def with_own(digest: str, files: frozenset[Path]) -> str:
    """The digest of the package's files, changed by what files of a user's own say; as it is without any."""
    lines = [f"{f.name} {hashlib.sha256(normal(f.read_text('utf-8')).encode()).hexdigest()}" for f in sorted(files)]
    return hashlib.sha256("\n".join([digest, *lines]).encode()).hexdigest()[:16] if lines else digest


def path(module: str) -> Path:
    """The file of a module of this package; of a package its `__init__.py`."""
    file = _find(module)
    if file is None:
        raise ModuleNotFoundError(f"no source of {module}")
    return file


@cache
def imports(module: str) -> tuple[str, ...]:
    """The modules of this package that `module` imports when it runs; a module's packages are imported before it."""
    names = _python(path(module))[1]
    names = names | {name.rpartition(".")[0] for name in [module, *names]}
    return tuple(sorted(name for name in names if name.split(".")[0] == PACKAGE.name and _find(name) is not None))


@cache
def _python(file: Path) -> tuple[str, set[str]]:
    """SHA-256 of what a file of Python says, and the names that it imports."""
    tree = ast.parse(read_source(file))
    nodes = [*ast.walk(tree)]
    package = file.parent.relative_to(PACKAGE.parent).parts if file.is_relative_to(PACKAGE) else ()
    names = {name for node in _imports(nodes) for name in _named(node, package)} | _looked_up(nodes)
    return hashlib.sha256(_normal(tree).encode()).hexdigest(), names


def _imports(nodes: Iterable[ast.AST]) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of a file, wherever they stand, but for those that only type checkers follow."""
    blocks = (n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test).endswith("TYPE_CHECKING"))
    unread = {id(n) for block in blocks for statement in block.body for n in ast.walk(statement)}
    return [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) and id(n) not in unread]


def _looked_up(nodes: Iterable[ast.AST]) -> set[str]:
    """The modules of functions that are named in a string, "module:name", and looked up when they are called."""
    strings = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return {match[1] for text in strings if (match := re.fullmatch(rf"({PACKAGE.name}(?:\.\w+)+):\w+", text))}


def _named(node: ast.Import | ast.ImportFrom, package: Sequence[str]) -> list[str]:
    """The modules that a statement may import: `from a import b` names the module a, and b if it is one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    origin = [*(package[: len(package) - node.level + 1] if node.level else ()), *filter(None, [node.module])]
    return list(filter(None, (".".join([*origin, *name]) for name in [(), *((a.name,) for a in node.names)])))


@cache
def _find(module: str) -> Path | None:
    stem = PACKAGE.joinpath(*module.split(".")[1:])
    return next((f for f in (stem.with_suffix(".py"), stem / "__init__.py") if f.is_file()), None)


@cache
def _compiled(folder: Path) -> tuple[Path, ...]:
    """The C sources of a folder: the modules beside them build and load them."""
    return tuple(f for f in sorted(folder.iterdir()) if f.suffix in (".c", ".h"))


@cache
def _file_digest(file: Path) -> str:
    return _python(file)[0] if file.suffix == ".py" else hashlib.sha256(read_source(file)).hexdigest()


def normal(source: str) -> str:
    """The normal form of Python source, the same in all versions: its syntax tree without statements that are only a
    string (docstrings), and without what is empty (versions differ in that)."""
    return _normal(ast.parse(source))


def _normal(value: Any) -> str:
    if isinstance(value, ast.AST):
        fields = {n: getattr(value, n, None) for n in value._fields if n not in ("ctx", "kind", "type_comment")}
        if isinstance(value, ast.JoinedStr):  # Python 3.12 ends some f-strings in an empty string
            fields["values"] = [v for v in value.values if not (isinstance(v, ast.Constant) and v.value == "")]
        said = (f"{name}={_normal(v)}" for name, v in fields.items() if v not in (None, []))
        return f"{type(value).__name__}({' '.join(said)})"
    return f"[{' '.join(_normal(v) for v in value if not _is_string(v))}]" if isinstance(value, list) else repr(value)


def _is_string(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
