"""Experiments played to their end: what most tests of algorithms, clocks and papers begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from reproduce.engine.cohort import Cohort, Run, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.experiment import Experiment
from reproduce.settings import settings


def run(
    experiments: Sequence[Experiment],
    seeds: Sequence[int] = (0,),
    dtype: torch.dtype | None = None,
    strategy: str = "auto",
    tick: Callable[[], None] | None = None,
    tasks: Tasks | None = None,
) -> list[Run]:
    """All runs, experiments in order and seeds within, in one cohort; `dtype` None: as in production."""
    runs = prepare(experiments, seeds, tasks or Tasks(settings(), dtype))
    trainer = Trainer(strategy=strategy)
    try:
        Cohort(runs, trainer, tick).run()
    finally:
        trainer.close()
    return runs
