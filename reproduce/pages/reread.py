"""Cells of another reading of stored curves: a paper seldom says which evaluation it reports. Nothing is trained."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError, unknown
from reproduce.pages.quotes import Cells, parsed
from reproduce.papers import artifacts
from reproduce.report import metrics, render
from reproduce.report.histories import Histories
from reproduce.report.metrics import Reading, read_as
from reproduce.runs import plan


def stored(artifact: Artifact, scale: str) -> Histories:
    """The stored curves that an artifact is drawn from; an empty frame where there are none."""
    return render.read(artifact, scale, plan.sources(scale, artifact.id), plan.seeds_read(scale, artifact.id))


def text_as(artifact: Artifact, scale: str, reading: Reading) -> str:
    """The file of cells that another reading of its stored curves makes. UserError if there are none."""
    histories = stored(artifact, scale)
    if histories.frame.empty:
        raise UserError(f"{scale}/{artifact.paper}_{artifact.name} has no stored curves to read otherwise")
    with read_as(reading), render.lacking(artifact, histories):
        found = render.check(artifact, metrics.cells(artifact, histories))
    return render.cells_csv(artifact, found)


@cache
def reread(artifact: str, folder: Path, **reading: Any) -> Cells:
    """The cells of "reduced/fedacs_table1" as another reading of its stored curves makes them, in `folder`, where one
    is. UserError if there are none."""
    scale, _, name = artifact.partition("/")
    known = {f"{a.paper}_{a.name}": a for a in artifacts()}
    if name not in known:
        raise unknown("artifact", name, known)
    return parsed(text_as(known[name], scale, Reading(**reading)), f"{artifact} read otherwise")
