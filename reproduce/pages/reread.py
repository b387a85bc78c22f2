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


@cache
def reread(artifact: str, folder: Path, **reading: Any) -> Cells:
    """The cells of "reduced/fedacs_table1" as another reading of its stored curves makes them, in `folder`, where one
    is. UserError if there are none."""
    scale, _, name = artifact.partition("/")
    known = {f"{a.paper}_{a.name}": a for a in artifacts()}
    if name not in known:
        raise unknown("artifact", name, known)
    made = known[name]
    histories = stored(made, scale)
    if histories.frame.empty:
        raise UserError(f"{artifact} has no stored curves to read otherwise")
    with read_as(Reading(**reading)), render.lacking(made, histories):
        found = render.check(made, metrics.cells(made, histories))
    return parsed(render.cells_csv(made, found), f"{artifact} read otherwise")
