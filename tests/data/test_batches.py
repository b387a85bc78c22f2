"""Batches: sizes that mean nothing, plans of a user's own, and batches of one sample, too small for some networks."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Batches, Cyclic, Fixed, Shuffled, Walk, WithReplacement
from reproduce.data.embedded import ImageBlobs
from reproduce.declare.experiment import SCALES, Experiment
from reproduce.declare.values import Indices
from reproduce.errors import UserError
from reproduce.models.declared import ImageNetResNet, NormConvNet, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs import plan
from reproduce.systems import Steps, System
from reproduce.systems.work import Epochs

ALL = (Shuffled, Walk, Cyclic, Fixed, WithReplacement)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("size", [4, 30])
def test_the_smallest_batch_is_the_smallest_that_is_planned(cls: Any, size: int) -> None:
    batches = cls(size)
    for samples in range(1, 30):
        steps = batches.per_pass(samples)
        planned = batches.plan(np.arange(samples), steps, 0, 0, 0, 0)
        assert (planned >= 0).sum(1).min() == batches.least(samples)


PLANS: dict[str, Callable[[Indices, int, int], Any]] = {}
"""What `Own` plans, by name: a record's fields are plain values."""


@dataclass(frozen=True)
class Own(Batches):
    """Batches as a user writes them."""

    name: str = "it"

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Any:
        return PLANS[self.name](indices, steps, self.size)


def first(mine: Indices, steps: int, size: int) -> Indices:
    return np.resize(mine, (steps, size))


def trained(batches: Any, samples: int = 100) -> Any:
    problem = Classification("digits", Softmax(64, 10), IID(), 4, batches, train_samples=samples)
    return run([Experiment({}, problem, System(work=Steps(3)), FedAvg(0.1), Rounds(2))])[0].state


@pytest.mark.parametrize("cls", [Shuffled, Walk, Cyclic, Fixed])
def test_a_batch_that_nobody_fills_takes_the_memory_of_its_samples(cls: Any) -> None:
    """Clients of 26 and of 25 samples, in one chunk."""
    filled = trained(cls(26), 102)
    tracemalloc.start()
    declared = trained(cls(10**6), 102)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert torch.equal(declared["x"], filled["x"])
    assert most < 2**22, "a row of a million indices alone is twice that"


def test_plans_of_a_users_own_are_followed() -> None:
    PLANS["it"] = first
    state = trained(Own(8))
    assert state["status"] == "ok"
    PLANS["it"] = lambda mine, steps, size: np.random.permutation(first(mine, steps, size))  # noqa: NPY002
    assert trained(Own(8))["history"] == trained(Own(8))["history"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda mine, steps, size: first(mine, steps, size) + 1000, "plan samples that are not those of client 0"),
        (lambda mine, steps, size: first(mine, steps + 1, size), r"plan int64 \(4, 8\): they are whole numbers of sh"),
        (lambda mine, steps, size: np.full((steps, size), -1), "plan a step without a sample"),
        (lambda mine, steps, size: np.where(np.arange(size) == 3, -1, first(mine, steps, size)), "-1 before its last"),
        (lambda mine, steps, size: mine.sort(), "the batches Own cannot be used: .*read-only"),
    ],
)
def test_what_is_no_plan_ends_in_one_line(given: Any, words: str) -> None:
    PLANS["it"] = given
    with pytest.raises(UserError, match=words):
        trained(Own(8))


RUNNING, STATIC = ImageNetResNet(18, 4, (8,), width=4), ResNet(3, 4, (4, 8, 8, 8), (1, 1, 1, 1))
"""Networks whose last layers normalise one pixel of images 8 x 8: over running statistics, over those of the batch."""
LARGER = NormConvNet(3, 8, ((4,), (4,), (4,)), 8, 4, normalisation="static")


def alone(model: Model, batches: Batches, clients: int = 2, train: int = 40, test: int = 24, size: int = 8) -> Any:
    """A network trained on images 8 x 8, `clients` clients that have equally many."""
    data = ImageBlobs(4, 8, 20, 20, 9.0, 0, 3)
    problem = Classification(
        data, model, IID(), clients, batches, train_samples=train, test_samples=test, evaluation_batch=size
    )
    return run([Experiment({}, problem, System(work=Epochs(1)), FedAvg(0.05), Rounds(1))])[0].state


def test_where_layers_normalise_one_pixel() -> None:
    assert RUNNING.needs_batch((3, 8, 8)) == "layer2.0.bn1"
    assert STATIC.needs_batch((3, 8, 8)).startswith("layer4")
    assert RUNNING.needs_batch((3, 64, 64)) == LARGER.needs_batch((3, 8, 8)) == ""


@pytest.mark.parametrize("model", [RUNNING, STATIC], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("cls", ALL)
def test_a_client_whose_last_sample_is_alone_is_named_before_any_training(model: Model, cls: Any) -> None:
    with pytest.raises(UserError, match=r"client 0 has 20 samples, and \w+\(size=1\) leave one of them alone"):
        alone(model, cls(1))
    if cls is WithReplacement:
        return
    with pytest.raises(UserError, match=r"client 1 has 13 samples, and \w+\(size=6\) leave one of them alone"):
        alone(model, cls(6), 3)


@pytest.mark.parametrize("cls", ALL)
def test_two_samples_or_two_pixels_are_enough(cls: Any) -> None:
    for model, size in ((RUNNING, 9), (STATIC, 9), (LARGER, 19)):
        assert alone(model, cls(size))["status"] == "ok"


def test_no_declared_network_is_left_with_one_sample() -> None:
    """The official sets are balanced where a network normalises one pixel: the sizes of the clients need no files."""
    found = {}
    for scale in SCALES:
        for e in (e for j in plan.jobs(scale) for e in j.experiments if isinstance(e.problem, Classification)):
            p = e.problem
            if p.model.batch_statistics and p.model.needs_batch(p.sample.shape):
                found[p.data, p.partition, p.clients, p.batches] = p
    assert {data for data, *_ in found} == {"cifar10", "cifar100"}
    for data, partition, clients, batches in found:
        classes = 10 if data == "cifar10" else 100
        parts = partition.split(np.repeat(np.arange(classes), 50_000 // classes), clients, 0)
        assert min(batches.least(len(part)) for part in parts) > 1
