"""What many tests begin with: experiments played to their end, files of cells with their records."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from reproduce import store
from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.scheduler import Run
from reproduce.models.declared import ConvNet
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs.job import begin, finish
from reproduce.settings import settings
from reproduce.systems import Steps, System

NET = ConvNet(1, 8, (2, 3), (6,), kernel=3, padding=1, dropout=0.3)
DIGITS = Classification("digits", NET, IID(), clients=6, batches=Cyclic(8), train_samples=120, test_samples=60)


def experiment(rounds: int, lr: float = 0.1) -> Experiment:
    """Dropout, momentum, batches that go on where the last round ended."""
    algorithm = FedAvg(lr=lr, participation=WeightedDraws(4), momentum=0.5)
    return Experiment({"algorithm": "fedavg", "eta": lr}, DIGITS, System(work=Steps(3)), algorithm, Rounds(rounds))


def run(
    experiments: Sequence[Experiment],
    seeds: Sequence[int] = (0,),
    dtype: torch.dtype | None = None,
    strategy: str = "auto",
    tick: Callable[[], None] | None = None,
    tasks: ClientSplits | None = None,
) -> list[Run]:
    """All runs, experiments in order and seeds within, in one cohort; `dtype` None: as in production."""
    return finish(begin(experiments, seeds, settings(), tasks or ClientSplits(settings(), dtype), strategy), tick)


def sealed(cells: Path) -> Path:
    """A file of cells that a test wrote, with the record that a rendering would leave beside it."""
    store.record(cells).write_text(json.dumps({"cells": store.of_file(cells)}), encoding="utf-8")
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


def difference(a: Any, b: Any, where: str) -> str:
    """Where two states differ in a bit, a type or a length; "" if nowhere."""
    if type(a) is not type(b):
        return f"{where}: {type(a)} is not {type(b)}"
    if isinstance(a, Mapping):
        if list(a) != list(b):
            return f"{where}: {list(a)} are not {list(b)}"
        return next(filter(None, (difference(a[k], b[k], f"{where}.{k}") for k in a)), "")
    if isinstance(a, Sequence) and not isinstance(a, str):
        if len(a) != len(b):
            return f"{where}: {len(a)} are not {len(b)} entries"
        return next(filter(None, (difference(a[i], b[i], f"{where}[{i}]") for i in range(len(a)))), "")
    if isinstance(a, torch.Tensor):
        a, b = a.numpy(), b.numpy()
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    else:
        same = repr(a) == repr(b)
    return "" if same else f"{where}: {a!r} is not {b!r}"
