"""What many tests begin with: experiments played to their end, files of cells with their records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import torch

from reproduce.declare.experiment import Experiment
from reproduce.engine.cohort import Run
from reproduce.engine.task import Tasks
from reproduce.runs.job import begin, finish
from reproduce.settings import settings
from reproduce.store import seal


def run(
    experiments: Sequence[Experiment],
    seeds: Sequence[int] = (0,),
    dtype: torch.dtype | None = None,
    strategy: str = "auto",
    tick: Callable[[], None] | None = None,
    tasks: Tasks | None = None,
) -> list[Run]:
    """All runs, experiments in order and seeds within, in one cohort; `dtype` None: as in production."""
    return finish(begin(experiments, seeds, settings(), tasks or Tasks(settings(), dtype), strategy), tick)


def sealed(cells: Path) -> Path:
    """A file of cells that a test wrote, with the record that a rendering would leave beside it."""
    seal.record(cells).write_text(json.dumps({"cells": seal.of_file(cells)}), encoding="utf-8")
    return cells


def close(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """The same runs, trained in other company: each metric differs by 1/200 of its largest value at most, on average.

    Last bits differ there, and a small network that is hard to train takes single evaluations points away from each
    other; rows of another seed or setting would differ everywhere.
    """
    for metric, mine in ours.groupby("metric"):
        there = theirs.loc[mine.index, "value"]
        apart = (mine["value"] - there).abs().mean()
        assert mine["value"].isna().equals(there.isna())
        assert not apart > there.abs().max() / 200, f"{metric} differs by {apart:.2g}"
