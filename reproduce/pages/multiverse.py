"""Verdicts under the readings that a reader may choose, from stored curves: nothing is trained.

A paper seldom says which evaluation it reports. Here all cells are computed again under each of `READINGS`, and the
claims are judged on them. A claim whose verdict turns rests on a choice that the paper did not print.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError, unknown
from reproduce.files import write_text
from reproduce.pages.quotes import Cells, parsed
from reproduce.papers import artifacts
from reproduce.report import metrics, render
from reproduce.report.histories import Histories, load
from reproduce.report.metrics import DECLARED, Reading, read_as
from reproduce.runs import due, plan
from reproduce.store import seal
from reproduce.verdicts.scoreboard import Verdict, scoreboard

if TYPE_CHECKING:
    import pandas as pd

READINGS = (
    DECLARED,
    Reading("last evaluation", tail=1),
    Reading("mean of the last ten", tail=10),
    Reading("best evaluation", best=True),
    Reading("first hit of the raw curve", hit=1),
    Reading("first hit of the mean of five", hit=5),
    Reading("five rounds after a transition", window=(1, 5)),
    Reading("ten rounds after a transition", window=(1, 10)),
)


@dataclass(frozen=True)
class Turned:
    """A claim whose verdict is not the same under all readings; verdicts: reading -> verdict, where it differs from
    the declared one."""

    claim: Verdict
    verdicts: Mapping[str, str]


def stored(artifact: Artifact, scale: str) -> Histories:
    """The stored curves that an artifact is drawn from; an empty frame where there are none."""
    panels, seeds = artifact.panels(scale), plan.seeds_read(scale, artifact.id)
    experiments = [e for panel in panels for e in panel.experiments]
    return load(due.sources(scale, artifact.id), scale, [p.substitute for p in panels], experiments, seeds)


def curves(scale: str) -> Iterator[tuple[Artifact, Histories]]:
    """The artifacts of a scale that are trained and have results, with their stored curves."""
    trained = ((a, stored(a, scale)) for a in artifacts() if a.panels(scale))
    return ((artifact, histories) for artifact, histories in trained if not histories.frame.empty)


def boards(scale: str, readings: Sequence[Reading] = READINGS) -> dict[str, list[Verdict]]:
    """Reading -> the scoreboard of a scale under it. Artifacts without curves keep the cells that they have."""
    with tempfile.TemporaryDirectory() as folder:
        for artifact, histories in curves(scale):
            for reading in readings:
                _write(Path(folder, reading.name, scale, "cells"), artifact, histories, reading)
        for reading in readings:
            here = Path(folder, reading.name, scale, "cells")
            for file in Path("results", scale, "cells").glob("*.csv"):
                if not (here / file.name).exists() and not seal.broken(file):
                    _seal(here / file.name, file.read_text(encoding="utf-8"))
        return {reading.name: scoreboard(scale, Path(folder, reading.name)) for reading in readings}


def _write(folder: Path, artifact: Artifact, histories: Histories, reading: Reading) -> None:
    """The cells of an artifact under a reading; none where the results that are there cannot make them."""
    try:
        with read_as(reading), render.lacking(artifact, histories):
            cells = render.check(artifact, metrics.cells(artifact, histories))
    except UserError:
        return
    seal_cells(folder, artifact, cells)


def seal_cells(folder: Path, artifact: Artifact, cells: pd.DataFrame) -> None:
    """Write the cells of an artifact to a folder, as `scoreboard` reads them."""
    _seal(folder / f"{artifact.paper}_{artifact.name}.csv", render.cells_csv(artifact, cells))


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


def _seal(file: Path, text: str) -> None:
    """Write a file of cells with its record."""
    write_text(file, text)
    write_text(seal.record(file), json.dumps({"cells": seal.of_file(file)}))


def turned(found: Mapping[str, Sequence[Verdict]]) -> list[Turned]:
    """The claims that turn, of the scoreboards of `boards`, in their order."""
    declared = found[DECLARED.name]
    turns = []
    for i, claim in enumerate(declared):
        others = {name: board[i].verdict for name, board in found.items() if board[i].verdict != claim.verdict}
        if others:
            turns.append(Turned(claim, others))
    return turns
