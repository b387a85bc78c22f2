"""Reproduction of five federated-learning papers: one engine, from declaration to verdict."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.declare.experiment import Experiment

__all__ = ["train"]
__version__ = "0.1.0"

LAZY = {
    name: module
    for module, names in {
        "reproduce.play": "play summary curves",
        "reproduce.declare.experiment": "Experiment",
        "reproduce.problem": "Classification Quadratic",
        "reproduce.systems": "System Steps Epochs",
        "reproduce.systems.work": "PerClient",
        "reproduce.algorithms.base": "FedAvg",
        "reproduce.algorithms.fedprox": "FedProx",
        "reproduce.algorithms.scaffold": "Scaffold",
        "reproduce.clocks.rounds": "Rounds",
        "reproduce.data.batches": "Shuffled",
        "reproduce.partitions.labels": "IID",
        "reproduce.partitions.dirichlet": "DirichletClass",
        "reproduce.models.declared": "ConvNet MLP Softmax",
    }.items()
    for name in names.split()
}
"""Name -> the module that it is imported from when it is first used, so that the commands start without torch."""


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})


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

    options = settings()
    requested = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    with settings_kept():
        return frame(finish(begin(requested, seeds, options if threads is None else replace(options, threads=threads))))
