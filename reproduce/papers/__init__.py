"""The papers and their artifacts: `papers/<key>/artifacts.py` declares `ARTIFACTS`; what is in it exists. What
a paper proposes is `PROPOSED` in `papers/<key>/__init__.py`. What the papers have, and how much of it there is here."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from reproduce.declare.artifact import Artifact
from reproduce.text import markdown

COUNTS = {"fedacs": (10, 5), "dynamic_init": (4, 16), "fedagrac": (5, 6), "fiarse": (8, 7), "defedavg": (7, 2)}
"""Paper -> how many figures and tables it has, numbered from 1."""
PAPERS = tuple(COUNTS)


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


class Coverage(NamedTuple):
    """A paper, how many figures and tables it has, and those of them that are declared here."""

    paper: str
    printed: int
    declared: tuple[str, ...]

    def made(self, scale: str, results: Path = Path("results")) -> int:
        """How many of them have cells at a scale, whole or in part."""
        files = [results / scale / "cells" / f"{self.paper}_{name}.csv" for name in self.declared]
        return sum(file.is_file() and file.read_bytes().count(b"\n") > 1 for file in files)

    def __str__(self) -> str:
        return f"{len(self.declared)} of {self.printed}"


def coverage() -> tuple[Coverage, ...]:
    """All papers, in the order of `PAPERS`."""
    found = []
    for paper, (figures, tables) in COUNTS.items():
        printed = {*(f"fig{i + 1}" for i in range(figures)), *(f"table{i + 1}" for i in range(tables))}
        declared = tuple(a.name for a in artifacts(paper) if a.name in printed)
        found.append(Coverage(paper, len(printed), declared))
    return tuple(found)


def total() -> str:
    """Artifacts declared of those that the papers have."""
    found = coverage()
    return f"{sum(len(c.declared) for c in found)} of {sum(c.printed for c in found)}"


def coverage_table() -> str:
    """Markdown: how many figures and tables each paper has, and how many have numbers of ours at each scale."""
    head = ("paper", "figures and tables", "our numbers, paper scale", "reduced scale")
    rows = [
        (f"[{c.paper}](docs/papers/{c.paper}.md)", c.printed, c.made("paper"), c.made("reduced")) for c in coverage()
    ]
    table = markdown(head, rows, ":---")
    rest = "An artifact counts as having numbers if some of its panels do; its caption and the paper's page say which."
    first = f"**{total()} figures and tables of the five papers are part of this package.**"
    return f"{first} The numbers, paper by paper:\n\n{table}\n\n{rest}"
