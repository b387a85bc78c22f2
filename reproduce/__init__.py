"""Reproduction of five federated-learning papers: one engine, from declaration to verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.declare.experiment import Experiment

__all__ = ["train"]
__version__ = "0.1.0"


def train(
    experiments: Experiment | Sequence[Experiment], seeds: Sequence[int] = (0,), threads: int | None = None
) -> pd.DataFrame:
    """Train experiments with all these seeds, together, and return what they recorded (docs/extending.md has an
    example).

    One row a number: the labels of the experiment, seed, round, time, metric, key, value, status ("ok", "diverged").
    Nothing is written, nothing depends on what trains beside it. threads: None: `REPRODUCE_THREADS`, else 1; data sets
    come from `REPRODUCE_DATA`. Raises UserError for what cannot be trained here.
    """
    from dataclasses import replace

    from reproduce.declare.isolation import settings_kept
    from reproduce.runs.job import begin, finish, frame
    from reproduce.settings import settings

    here = settings()
    asked = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    with settings_kept():
        return frame(finish(begin(asked, seeds, here if threads is None else replace(here, threads=threads))))
