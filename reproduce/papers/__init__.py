"""The papers and their artifacts: `papers/<key>/artifacts.py` declares `ARTIFACTS`; what is in it exists. What
a paper proposes is `PROPOSED` in `papers/<key>/__init__.py`."""

from __future__ import annotations

import importlib
import re
from functools import cache

from reproduce.declare.artifact import Artifact

PAPERS = ("fedacs", "dynamic_init", "fedagrac", "fiarse", "defedavg")


def artifacts(paper: str = "") -> tuple[Artifact, ...]:
    """All artifacts, or those of one paper, in the order of `PAPERS`, and within a paper figures before tables, 2
    before 10.

    Raises TypeError for an entry that is no artifact of its paper, and for a name that occurs twice.
    """
    return tuple(a for each in PAPERS if paper in ("", each) for a in _declared(each))


@cache
def _declared(paper: str) -> tuple[Artifact, ...]:
    found: dict[str, Artifact] = {}
    declared = importlib.import_module(f"{__name__}.{paper}.artifacts").ARTIFACTS
    where = f"ARTIFACTS in reproduce/papers/{paper}/artifacts.py"
    for artifact in sorted(declared, key=lambda artifact: natural(getattr(artifact, "name", ""))):
        if not isinstance(artifact, Artifact) or artifact.paper != paper:
            raise TypeError(f"{where}: {getattr(artifact, 'id', artifact)} is no artifact of {paper}")
        if found.setdefault(artifact.id, artifact) is not artifact:
            raise TypeError(f"{where}: two artifacts have the name '{artifact.name}'")
    return tuple(found.values())


def proposed(paper: str) -> tuple[str, ...]:
    """What the paper proposes: its values of the `series` that its tables compare."""
    return tuple(importlib.import_module(f"{__name__}.{paper}").PROPOSED)


def natural(name: str) -> list[str | int]:
    """Sort key that puts fig2 before fig10: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]
