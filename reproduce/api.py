"""The way in from Python: train experiments, get their numbers (docs/extending.md has an example)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reproduce.declare.experiment import Experiment
from reproduce.settings import settings

if TYPE_CHECKING:
    import pandas as pd


def train(
    experiments: Experiment | Sequence[Experiment], seeds: Sequence[int] = (0,), threads: int | None = None
) -> pd.DataFrame:
    """Train experiments with all these seeds, together, and return what they recorded.

    One row a number: the labels of the experiment, seed, round, time, metric, key, value, status ("ok", "diverged").
    Nothing is written, nothing depends on what trains beside it. threads: None: `REPRODUCE_THREADS`, else 1; data sets
    come from `REPRODUCE_DATA`. Raises UserError for what cannot be trained here.
    """
    from reproduce.runs.job import begin, finish, frame

    here = settings()
    asked = [experiments] if isinstance(experiments, Experiment) else list(experiments)
    return frame(finish(begin(asked, seeds, here if threads is None else replace(here, threads=threads))))
