"""The papers and their artifacts: `papers/<key>/artifacts.py` declares `ARTIFACTS`; what is in it exists."""

from __future__ import annotations

import importlib
import re
from functools import cache

from reproduce.declare.artifact import Artifact

PAPERS = ("fedacs", "dynamic_init", "fedagrac", "fiarse", "defedavg")


@cache
def artifacts() -> tuple[Artifact, ...]:
    """All artifacts, in the order of `PAPERS`, and within a paper figures before tables, 2 before 10.

    Raises TypeError for an entry that is no artifact of its paper, and for a name that occurs twice.
    """
    return tuple(artifact for paper in PAPERS for artifact in _of_paper(paper))


def _of_paper(paper: str) -> list[Artifact]:
    declared = importlib.import_module(f"{__name__}.{paper}.artifacts").ARTIFACTS
    where, seen = f"ARTIFACTS in reproduce/papers/{paper}/artifacts.py", set()
    for artifact in declared:
        if not isinstance(artifact, Artifact) or artifact.paper != paper:
            raise TypeError(f"{where}: {getattr(artifact, 'id', artifact)} is no artifact of {paper}")
        if artifact.name in seen:
            raise TypeError(f"{where}: two artifacts have the name '{artifact.name}'")
        seen.add(artifact.name)
    return sorted(declared, key=lambda artifact: natural(artifact.name))


def natural(name: str) -> list[str | int]:
    """Sort key that puts fig2 before fig10: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]
