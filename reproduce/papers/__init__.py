"""The papers and their artifacts: every `papers/<key>/fig*.py` or `table*.py`, and `theory.py`, `setup.py` or
`sensitivity.py` for what the paper does not have, defines an `ARTIFACT`; no list to keep."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

from reproduce.declare import Artifact

PAPERS = ("fedacs", "dynamic_init", "fedagrac", "fiarse", "defedavg")

_MODULE = re.compile(r"(fig|table)[0-9]+[a-z0-9]*|theory|setup|sensitivity")


@cache
def artifacts() -> tuple[Artifact, ...]:
    """All artifacts, in the order of `PAPERS`, and within a paper figures before tables, 2 before 10.

    Raises TypeError for a module without an `ARTIFACT`, or with one that belongs elsewhere: a declaration that nobody
    would ever see is a bug.
    """
    return tuple(artifact for paper in PAPERS for artifact in _of_paper(paper))


def _of_paper(paper: str) -> list[Artifact]:
    package = importlib.import_module(f"{__name__}.{paper}")
    if (Path(package.__path__[0]) / "artifacts.py").exists():
        declared = importlib.import_module(f"{package.__name__}.artifacts").ARTIFACTS
        return sorted(declared, key=lambda artifact: natural(artifact.name))
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if _MODULE.fullmatch(m.name)]
    found = []
    for name in sorted(names, key=natural):
        artifact = getattr(importlib.import_module(f"{package.__name__}.{name}"), "ARTIFACT", None)
        if not isinstance(artifact, Artifact) or artifact.id != f"{paper}/{name}":
            raise TypeError(f"reproduce/papers/{paper}/{name}.py must define ARTIFACT, the artifact '{paper}/{name}'")
        found.append(artifact)
    return found


def natural(name: str) -> list[str | int]:
    """Sort key that puts fig2 before fig10: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]
