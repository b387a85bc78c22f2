"""The papers and their artifacts: `papers/<key>/artifacts.py` declares `ARTIFACTS`; what is in it exists. What
a paper proposes is `PROPOSED` in `papers/<key>/__init__.py`. What the papers have, and how much of it there is here."""

from __future__ import annotations

import importlib
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import SCALES
from reproduce.text import markdown

COUNTS = {"fedacs": (10, 5), "dynamic_init": (4, 16), "fedagrac": (5, 6), "fiarse": (8, 7), "defedavg": (7, 2)}
"""Paper -> how many figures and tables it has, numbered from 1."""
PAPERS = tuple(COUNTS)


def artifacts(paper: str = "") -> tuple[Artifact, ...]:
    """All artifacts, or those of one paper, in the order of `PAPERS`, and within a paper figures before tables, 2
    before 10. TypeError for a name that occurs twice."""
    return tuple(a for each in PAPERS if paper in ("", each) for a in _declared(each))


@cache
def _declared(paper: str) -> tuple[Artifact, ...]:
    declared = importlib.import_module(f"{__name__}.{paper}.artifacts").ARTIFACTS
    found = sorted(declared, key=lambda artifact: natural(artifact.name))
    for one, other in pairwise(found):
        if one.name == other.name:
            raise TypeError(f"reproduce/papers/{paper}/artifacts.py: two artifacts have the name '{one.name}'")
    return tuple(found)


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
        return sum(has_numbers(scale, f"{self.paper}/{name}", results) for name in self.declared)

    def __str__(self) -> str:
        return f"{len(self.declared)} of {self.printed}"


def has_numbers(scale: str, artifact: str, results: Path = Path("results")) -> bool:
    """Are there cells of an artifact ("fedacs/fig6") at a scale?"""
    file = results / scale / "cells" / f"{artifact.replace('/', '_')}.csv"
    return file.is_file() and file.read_bytes().count(b"\n") > 1


def coverage() -> tuple[Coverage, ...]:
    """All papers, in the order of `PAPERS`."""
    names = {p: tuple(a.name for a in artifacts(p) if a.name.startswith(("fig", "table"))) for p in PAPERS}
    return tuple(Coverage(paper, sum(COUNTS[paper]), found) for paper, found in names.items())


def total() -> str:
    """Artifacts declared of those that the papers have."""
    found = coverage()
    return f"{sum(len(c.declared) for c in found)} of {sum(c.printed for c in found)}"


def coverage_table() -> str:
    """Markdown: how many figures and tables each paper has, and how many have numbers of ours at each scale."""
    head = ("paper", "figures and tables", "with our numbers, paper scale", "reduced scale")
    rows = ((f"[{c.paper}](docs/papers/{c.paper}.md)", c.printed, *map(c.made, SCALES[:0:-1])) for c in coverage())
    table = markdown(head, rows, ":---")
    rest = "A figure or table counts if at least one of its panels was run; its caption says which."
    first = f"**{total()} figures and tables of the five papers are part of this package.**"
    return f"{first} The table has how many of them have numbers of ours:\n\n{table}\n\n{rest}"
