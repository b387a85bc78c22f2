"""A user's own way to split data over clients: clients without samples, and splits that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.errors import UserError
from reproduce.experiment import Experiment
from reproduce.problems import Classification
from reproduce.problems.batches import Batches, Cyclic, Fixed, Shuffled, Walk, WithReplacement
from reproduce.problems.models import Softmax
from reproduce.systems import Steps, System
from reproduce.systems.work import Epochs, Work

DATA = 200


@dataclass(frozen=True)
class Given:
    """The parts as they are given."""

    leaves_empty: ClassVar[bool] = True
    parts: tuple[tuple[int, ...], ...]

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        return [np.array(part, dtype=np.int64) for part in self.parts]


HALVES = tuple(range(DATA // 2)), tuple(range(DATA // 2, DATA))


def experiment(parts: tuple[tuple[int, ...], ...], clients: int, batches: Batches, work: Work) -> Experiment:
    problem = Classification("digits", Softmax(64, 10), Given(parts), clients, batches, train_samples=DATA)
    return Experiment({}, problem, System(work=work), FedAvg(0.05), Rounds(3))


@pytest.mark.parametrize("batches", [Shuffled(8), Walk(8), Cyclic(8), Fixed(8), WithReplacement(8)])
@pytest.mark.parametrize("work", [Steps(4), Epochs(1)])
def test_who_has_no_samples_does_nothing(batches: Batches, work: Work) -> None:
    """The run is that of the others alone, since the weights follow the samples."""
    alone, beside = run([experiment(HALVES, 2, batches, work), experiment((*HALVES, ()), 3, batches, work)])
    assert alone.state["history"] == beside.state["history"]
    assert beside.state["work"] == alone.state["work"] > 0


@pytest.mark.parametrize(
    ("parts", "clients", "words"),
    [
        (HALVES, 3, "makes 2 parts for 3 clients"),
        (((-1, 0), (1,)), 2, "the sample (-1|200): there are 0 to 199"),
        (((0,), (DATA,)), 2, "the sample (-1|200): there are 0 to 199"),
        (((), ()), 2, "client 0 no samples"),
    ],
)
def test_what_is_no_split_is_refused(parts: tuple[tuple[int, ...], ...], clients: int, words: str) -> None:
    with pytest.raises(UserError, match=f"the partition Given .*{words}"):
        run([experiment(parts, clients, Fixed(8), Steps(2))])
