"""What tests of estimates share: round rates, an experiment, every declared model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.rates import ASSUMED, Anchor, Rates
from reproduce.models.declared import Softmax
from reproduce.models.model import Model
from reproduce.partitions.named import IID
from reproduce.problem import Classification
from reproduce.runs import plan
from reproduce.systems import System
from reproduce.systems.work import Steps

ROUND = Rates(dict.fromkeys(ASSUMED.kinds, (Anchor(100, 1e3, 1e4),)), 7.0, 2.0, 0.5, 0.25, "round numbers")
PLAIN = FedAvg(0.1)


def softmax(rounds: int = 1000, algorithm: FedAvg = PLAIN) -> Experiment:
    problem = Classification("digits", Softmax(64, 10), IID(), 4, Shuffled(10), train_samples=400, test_samples=50)
    return Experiment({}, problem, System(work=Steps(5)), algorithm, Rounds(rounds, every=100))


def declared() -> Iterator[tuple[Model, tuple[int, ...]]]:
    """Every model of every experiment, and the shape of its samples."""
    found = {}
    for scale in ("smoke", "reduced", "paper"):
        for problem in (e.problem for j in plan.jobs(scale) for e in j.experiments):
            if problem.model and not problem.model.exits:  # which train with their exits only
                # Where stored weights are declared, random ones do as well.
                random = {"init": "random"} if getattr(problem.model, "init", "random") != "random" else {}
                found[replace(problem.model, **random)] = problem.sample.shape
    yield from found.items()
