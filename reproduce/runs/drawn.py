"""What draws an artifact: a digest of its declaration, of the definitions that it names and of the report's code.

Of a paper's modules only those definitions count that are reached from the artifact, so that another figure beside it
changes nothing; of its printed numbers those tables that these definitions, or the declaration, name.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

from reproduce.declare import closure
from reproduce.declare.artifact import Artifact, Code, no_panels
from reproduce.declare.experiment import PACKAGE, Experiment
from reproduce.files import read_source

PAPERS = "reproduce.papers."


def digest(artifact: Artifact, scale: str) -> str:
    """SHA-256 (16 hex digits) of all that the tables or pictures of an artifact depend on beside its results."""
    declared = dataclasses.replace(artifact, panels=no_panels)  # they are told as they are at this scale
    told = json.dumps([_told(declared, artifact.paper), _told(artifact.panels(scale), artifact.paper)])
    named = [tuple(word.split(":")) for word in _words(json.loads(told)) if word.startswith(PAPERS)]
    code = definitions([(where, name) for where, name in named])
    tables = PACKAGE / "papers" / artifact.paper / "reported"
    words = {artifact.name, *_words(json.loads(told)), *(word for one in code.values() for word in one.strings)}
    files = [*sorted(PACKAGE.glob("report/*.py")), *(f for f in sorted(tables.glob("*.csv")) if f.stem in words)]
    lines = [f"{where}:{name} {one.source}" for (where, name), one in sorted(code.items(), key=lambda each: each[0])]
    lines += [f"{f.relative_to(PACKAGE)} {hashlib.sha256(read_source(f)).hexdigest()}" for f in files]
    return hashlib.sha256("\n".join([told, *lines]).encode()).hexdigest()[:16]


def _told(value: Any, paper: str) -> Any:
    """A declaration as JSON-ready data, in which functions have their names."""
    if isinstance(value, Experiment):
        return [dict(value.labels), value.declaration]
    if isinstance(value, Code):
        return [f"{PAPERS}{paper}.{value.where}", _told(value.options, paper)]
    if isinstance(value, partial):
        return [_told(each, paper) for each in (value.func, value.args, value.keywords)]
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}:{value.__qualname__.partition('.')[0]}"
    if dataclasses.is_dataclass(value):
        fields = {f.name: _told(getattr(value, f.name), paper) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return [[_told(k, paper), _told(v, paper)] for k, v in value.items()]
    if isinstance(value, list | tuple):
        return [_told(each, paper) for each in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _words(told: Any) -> Iterator[str]:
    """All texts in a declaration."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, list | dict):
        for each in told.values() if isinstance(told, dict) else told:
            yield from _words(each)


@dataclass(frozen=True)
class Definition:
    """A definition at the top of a module: its tokens, the texts in it, and the (module, name) that it refers to."""

    source: str
    strings: frozenset[str]
    uses: tuple[tuple[str, str], ...]


def definitions(named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Definition]:
    """(module, name) -> all definitions of the papers' modules that these lead to."""
    found: dict[tuple[str, str], Definition] = {}
    stack = list(named)
    while stack:
        where, name = stack.pop()
        if (where, name) not in found and where.startswith(PAPERS) and (one := _definition(where, name)):
            found[where, name] = one
            stack += one.uses
    return found


@cache
def _definition(where: str, name: str) -> Definition | None:
    """None for a name that the module does not define; what it imports is a definition without source."""
    known, imported = _module(closure.path(where))
    if name in imported:
        return Definition("", frozenset(), (imported[name],))
    if name not in known:
        return None
    nodes, uses, strings = ast.walk(known[name][0]), [], set()
    for node in nodes:
        if isinstance(node, ast.Name):
            uses.append((where, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            uses.append((".".join(imported[node.value.id]), node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
    return Definition(closure.normal(known[name][1]), frozenset(strings), tuple(dict.fromkeys(uses)))


@cache
def _module(file: Path) -> tuple[dict[str, tuple[ast.stmt, str]], dict[str, tuple[str, str]]]:
    """Name -> definition and its source, at the top of a module; name -> (module, name) that it is imported from."""
    source = read_source(file).decode()
    lines = source.splitlines(keepends=True)
    known: dict[str, tuple[ast.stmt, str]] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.parse(source).body:
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.ImportFrom):
            imported |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            known[node.name] = node, text
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            known |= dict.fromkeys(names, (node, text))
    return known, imported
