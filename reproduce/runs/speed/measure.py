"""`python -m reproduce.runs.speed.measure`: times models of every kind on one core by the real trainer; prints JSON.

Each kind has one or more sizes, in between plans interpolate (`rates.py`). The kind is the one that a plan expects;
what is measured is whatever the trainer then does here, with a compiler or without.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.cost import expected_strategy
from reproduce.engine.evaluate import evaluate
from reproduce.engine.requests import Evaluate, Train
from reproduce.engine.strategies import macs
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, AlexNet, ConvNet, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.models.sample import Sample
from reproduce.partitions.named import IID
from reproduce.problem import Classification, Quadratic
from reproduce.runs.job import begin, finish
from reproduce.settings import Settings
from reproduce.systems import System
from reproduce.systems.work import Steps

NOWHERE = Settings(Path("data"), Path(".reproduce"), "cpu", 1)
"""One thread on the CPU; generated data needs no folder."""


@dataclass(frozen=True)
class Random:
    """Random samples of a shape with random labels; with a `vocabulary`, of tokens, the first most often."""

    shape: tuple[int, ...]
    classes: int
    train: int
    test: int
    vocabulary: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.train, self.test

    @property
    def sample(self) -> Sample:
        return Sample(self.shape, "int64", self.vocabulary) if self.vocabulary else Sample(self.shape)

    def load(self) -> Any:
        stream = np.random.default_rng(0)

        def part(n: int) -> tuple[np.ndarray, np.ndarray]:
            features: np.ndarray
            if self.vocabulary:  # the k-th word occurs 1 / k as often as the first, as Zipf's law says
                ranks = self.vocabulary ** stream.random((n, *self.shape))
                features = (ranks - 1).astype(np.int32)
            else:
                features = stream.standard_normal((n, *self.shape), dtype=np.float32)
            return features, stream.integers(0, self.classes, n)

        return Parts(*part(self.train), *part(self.test), self.classes)


@dataclass(frozen=True)
class Parts:
    """The part of a data set that `DeviceData` reads."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    n_classes: int
    sha256: str = "random"
    source: str = "random"


@dataclass(frozen=True)
class Piece:
    """A piece of work: `clients` clients train `steps` batches of `batch`; models are evaluated on `test` samples."""

    model: Model
    shape: tuple[int, ...]
    clients: int
    batch: int
    steps: int
    test: int

    @property
    def problem(self) -> Classification:
        classes = self.model.shapes[list(self.model.shapes)[-1]][0]
        samples = self.clients * self.batch * min(self.steps, 4)
        data = Random(self.shape, classes, samples, self.test, getattr(self.model, "vocabulary", 0))
        return Classification(data, self.model, IID(), self.clients, Shuffled(self.batch))


PIECES = (
    Piece(Softmax(20, 4), (20,), 20, 20, 200, 2000),
    Piece(Softmax(123, 2), (123,), 20, 20, 500, 4000),
    Piece(Softmax(784, 10), (784,), 20, 32, 25, 2000),
    Piece(MLP(64, 32, 10), (64,), 10, 16, 25, 1000),
    Piece(ConvNet(1, 8, (4, 8), (12,), 4, kernel=3, padding=1), (1, 8, 8), 10, 10, 20, 1000),
    Piece(MLP(784, 64, 10), (784,), 10, 10, 10, 1000),
    Piece(ConvNet(1, 28, (10, 20), (50,), dropout=0.5), (1, 28, 28), 4, 32, 25, 2000),
    Piece(ConvNet(3, 32, (8, 16), (32,), kernel=3, padding=1), (3, 32, 32), 5, 32, 5, 1000),
    Piece(ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1), (3, 32, 32), 2, 32, 5, 200),
    Piece(ConvNet(3, 32, (32, 64), (512,)), (3, 32, 32), 2, 10, 10, 200),
    Piece(ResNet(1, 4, (8, 16), (1, 1)), (1, 28, 28), 5, 10, 4, 100),
    Piece(ResNet(1, 10, (16, 32, 64, 128), (1, 1, 1, 1), stem_stride=2), (1, 28, 28), 2, 20, 2, 200),
    Piece(AlexNet(), (3, 32, 32), 2, 25, 1, 100),
    Piece(ResNet(), (3, 32, 32), 1, 20, 1, 20),
    Piece(FastText(30_522, 32), (64,), 5, 128, 5, 500),
    Piece(FastText(), (64,), 2, 128, 5, 100),
)
"""Batches and local steps are about those of the papers: lanes that a batch leaves empty and what a local run costs
beside its samples are in a rate."""


def timed(call: Callable[[], object], least: float = 0.1) -> float:
    """Seconds of the fastest of at least two calls that take `least` seconds together, after one to warm up.

    They are those of the processor, so that other work on the machine does not enter."""
    call()
    times: list[float] = []
    while len(times) < 2 or sum(times) < least:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
        if sum(times) > 2:
            break
    return min(times)


def anchor(piece: Piece) -> tuple[str, dict[str, float]]:
    """(kind, samples per second of training and evaluation)."""
    split, trainer = ClientSplits(NOWHERE).get(piece.problem, 0), Trainer(1)
    assert isinstance(split, ClassificationSplit)
    x, rounds = split.initial(), iter(range(10**9))
    clients, steps = np.arange(piece.clients), np.full(piece.clients, piece.steps)
    train = timed(lambda: trainer.train([(split, Train(clients, steps, x, 0.01, next(rounds)))]))
    judge = timed(lambda: evaluate(split, [Evaluate(x.unsqueeze(0))]))
    return expected_strategy(piece.model, piece.shape), {
        "macs": macs(piece.model, piece.shape),
        "train": piece.clients * piece.steps * piece.batch / train,
        "evaluate": piece.test / judge,
    }


def seconds(problem: Any, rounds: int) -> float:
    """Seconds of four runs of that many rounds, one local step each, evaluated every tenth."""
    experiments = [
        Experiment({}, problem, System(work=Steps(1)), FedAvg(lr=rate), Rounds(rounds, every=10))
        for rate in (0.01, 0.1)
    ]

    def call() -> None:
        finish(begin(experiments, (0, 1), NOWHERE))

    return timed(call)


def overheads() -> dict[str, float]:
    """Seconds per run, and per round of a run, from four runs whose arithmetic takes no time."""
    tiny, toy = Piece(Softmax(20, 4), (20,), 5, 5, 4, 50).problem, Quadratic(5, 4)
    one, more = seconds(tiny, 1), seconds(tiny, 101)
    quadratic = seconds(toy, 101) - seconds(toy, 1)
    return {"run": one / 4, "round": max(more - one, 1e-6) / 400, "quadratic": max(quadratic, 1e-6) / 400}


def started() -> float:
    """Seconds of this process until a small network is trained: libraries are read, models traced, kernels loaded."""
    importlib.import_module("pyarrow.parquet")  # a job also writes what it has trained
    problem = Piece(ConvNet(1, 8, (4, 8), (12,), 4, kernel=3, padding=1), (1, 8, 8), 2, 2, 1, 10).problem
    finish(begin([Experiment({}, problem, System(), FedAvg(), Rounds(1))], (0,), NOWHERE))
    return time.process_time()


def main() -> None:
    """Print everything that `rates.Rates` holds, as JSON."""
    torch.manual_seed(0)
    start = started()
    kinds: dict[str, list[dict[str, float]]] = {}
    for piece in PIECES:
        kind, rate = anchor(piece)
        kinds.setdefault(kind, []).append(rate)
    for rates in kinds.values():
        rates.sort(key=lambda rate: rate["macs"])
    print(json.dumps({"kinds": kinds, "start": start, **overheads()}))


if __name__ == "__main__":  # what `__main__` declares counts as a user's own code, and is watched
    from reproduce.runs.speed import measure

    measure.main()
