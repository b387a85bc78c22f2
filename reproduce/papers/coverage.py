"""What the papers have and what this package has of it: the counts that README, `list` and the report begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproduce.papers import PAPERS, artifacts
from reproduce.text import markdown

COUNTS: Mapping[str, tuple[int, int]] = {
    "fedacs": (10, 5), "dynamic_init": (4, 16), "fedagrac": (5, 6), "fiarse": (8, 7), "defedavg": (7, 2),
}  # fmt: skip
"""Paper -> how many figures and tables it has, numbered from 1."""


@dataclass(frozen=True)
class Coverage:
    """One paper: all its figures and tables, those that are declared here, those that are not, and ours beside them."""

    paper: str
    printed: tuple[str, ...]
    declared: tuple[str, ...]
    missing: tuple[str, ...]
    ours: tuple[str, ...]

    def made(self, scale: str, results: Path = Path("results")) -> tuple[str, ...]:
        """The declared artifacts of the paper that have cells at a scale, whole or in part."""
        return tuple(n for n in self.declared if _has_rows(results / scale / "cells" / f"{self.paper}_{n}.csv"))

    def __str__(self) -> str:
        return f"{len(self.declared)} of {len(self.printed)}"


def _has_rows(cells: Path) -> bool:
    try:
        return cells.read_bytes().count(b"\n") > 1
    except OSError:
        return False


def coverage() -> tuple[Coverage, ...]:
    """All papers, in the order of `PAPERS`."""
    found = []
    for paper in PAPERS:
        figures, tables = COUNTS.get(paper, (0, 0))
        printed = [*(f"fig{i + 1}" for i in range(figures)), *(f"table{i + 1}" for i in range(tables))]
        names = [a.name for a in artifacts(paper)]
        declared, ours = [n for n in names if n in printed], [n for n in names if n not in printed]
        missing = [n for n in printed if n not in names]
        found.append(Coverage(paper, *map(tuple, (printed, declared, missing, ours))))
    return tuple(found)


def total() -> str:
    """Artifacts declared of those that the papers have."""
    found = coverage()
    return f"{sum(len(c.declared) for c in found)} of {sum(len(c.printed) for c in found)}"


def coverage_table() -> str:
    """Markdown: how many figures and tables each paper has, and how many have numbers of ours at each scale."""
    head = ("paper", "figures and tables", "our numbers, paper scale", "reduced scale")
    rows = [
        (f"[{c.paper}](docs/papers/{c.paper}.md)", len(c.printed), len(c.made("paper")), len(c.made("reduced")))
        for c in coverage()
    ]
    table = markdown(head, rows, ":---")
    rest = "An artifact counts as having numbers if some of its panels do; its caption and the paper's page say which."
    first = f"**{total()} figures and tables of the five papers are part of this package.**"
    return f"{first} The numbers, paper by paper:\n\n{table}\n\n{rest}"
