"""A user's own way to split data over clients: clients without samples, and splits that are none."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Batches, Cyclic, Fixed, Shuffled, Walk, WithReplacement
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Gradient
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import Head
from reproduce.problem import Classification
from reproduce.settings import settings
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


def test_who_has_no_samples_has_no_gradient() -> None:
    """FedLin and optimal sampling ask all clients for one: it is zero."""
    idle: Any = ClientSplits(settings()).get(experiment((*HALVES, ()), 3, Fixed(8), Steps(4)).problem, 0)
    rows = idle.gradients(Gradient(np.arange(3), idle.initial(), 0))
    assert rows.any(1).tolist() == [True, True, False]
    assert torch.equal(rows[:2], idle.gradients(Gradient(np.arange(2), idle.initial(), 0)))


Split = Callable[[np.ndarray, int, int], Any]
SPLITS: dict[str, Any] = {}
"""What `Own` gives, by name: a record's fields are plain values."""


@dataclass(frozen=True)
class Own:
    """A partition as a user writes it."""

    name: str

    def split(self, labels: np.ndarray, clients: int, seed: int) -> Any:
        return SPLITS[self.name](labels, clients, seed)

    def split_test(self, train_labels: np.ndarray, test_labels: np.ndarray, clients: int, seed: int) -> Any:
        return SPLITS[f"{self.name} test"](test_labels, clients, seed)


@dataclass(frozen=True)
class Shared(Own):
    shares_samples: ClassVar[bool] = True


def fair(labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
    return np.array_split(np.random.default_rng(seed).permutation(len(labels)), clients)


def each(function: Callable[[np.ndarray, int, int], Any]) -> Split:
    """A fair split of which every part is changed: `function` of the part, the client and the number of samples."""
    return lambda labels, clients, seed: [
        function(p, m, len(labels)) for m, p in enumerate(fair(labels, clients, seed))
    ]


def mask(part: np.ndarray, samples: int) -> np.ndarray:
    return np.isin(np.arange(samples), part)


def split(given: Split, cls: type = Own, test: Split = fair, wrap: Any = None, seeds: Sequence[int] = (0,)) -> Any:
    """The parts that the runs of a problem get."""
    SPLITS["it"], SPLITS["it test"] = given, test
    partition = wrap(cls("it")) if wrap else cls("it")
    local = hasattr(partition, "split_test")
    problem = Classification(
        "digits", Softmax(64, 10), partition, 4, Shuffled(8), train_samples=DATA, test_partition=local
    )
    tasks = ClientSplits(settings())
    return [tasks.get(problem, seed) for seed in seeds]


@pytest.mark.parametrize("form", [np.ndarray.tolist, lambda p: p.astype(">i4"), torch.from_numpy])
def test_numbers_of_samples_in_another_form_are_the_same_split(form: Any) -> None:
    (found,) = split(lambda labels, clients, seed: (form(p) for p in fair(labels, clients, seed)))
    assert all(map(np.array_equal, found.indices, fair(found.device_data.labels, 4, 0)))
    assert {part.dtype for part in found.indices} == {np.dtype(np.int64)}


NO_SPLIT: list[tuple[str, Split, str]] = [
    ("masks", each(lambda p, m, n: mask(p, n)), "client 0 bool .*np.flatnonzero"),
    ("floats", each(lambda p, m, n: p + 0.5), "client 0 float64 .* whole numbers"),
    ("twice", each(lambda p, m, n: np.append(p, p[0])), "gives client 0 a sample twice"),
    ("of two clients", lambda y, c, s: [np.arange(50 + m) for m in range(c)], "gives sample 0 to 4 clients"),
    ("a part too few", lambda y, c, s: fair(y, c - 1, s), "makes 3 parts for 4 clients"),
    ("an empty array", each(lambda p, m, n: p[:0] if m == 1 else p), "gives client 1 no samples"),
    ("changed labels", lambda y, c, s: (y.sort(), fair(y, c, s))[1], "cannot be used: .*read-only"),
    (
        "chance",
        lambda y, c, s: np.array_split(np.random.default_rng().permutation(len(y)), c),
        "a generator without a seed",
    ),
]


@pytest.mark.parametrize(("given", "words"), [row[1:] for row in NO_SPLIT], ids=[row[0] for row in NO_SPLIT])
def test_what_is_no_split_ends_in_one_line(given: Split, words: str) -> None:
    """Of the training set, of the test set, and where a partition of the package takes parts of it."""
    with pytest.raises(UserError, match=f"the partition Own .*{words}"):
        split(given)
    with pytest.raises(UserError, match=f"the partition Own of the test set .*{words}"):
        split(fair, test=given)


@pytest.mark.parametrize("name", ["masks", "of two clients", "chance"])
def test_a_part_of_what_is_no_split_is_none(name: str) -> None:
    given = next(row[1] for row in NO_SPLIT if row[0] == name)
    with pytest.raises(UserError, match="the partition Head "):
        split(given, wrap=lambda partition: Head(partition, 1.0))


def test_clients_may_share_samples_where_the_record_says_so() -> None:
    (task,) = split(lambda y, c, s: [np.arange(50 + m) for m in range(c)], Shared)
    assert task.samples.tolist() == [50, 51, 52, 53]
    with pytest.raises(UserError, match="gives client 0 a sample twice"):
        split(each(lambda p, m, n: np.append(p, p)), Shared)


@pytest.mark.parametrize(
    ("parts", "clients", "words"), [(HALVES, 3, "makes 2 parts for 3 clients"), (((), ()), 2, "client 0 no samples")]
)
def test_clients_without_samples_may_not_be_all(parts: tuple[tuple[int, ...], ...], clients: int, words: str) -> None:
    with pytest.raises(UserError, match=f"the partition Given .*{words}"):
        run([experiment(parts, clients, Fixed(8), Steps(2))])


def globally(labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
    """Draws from all global generators."""
    order = np.arange(len(labels))
    np.random.shuffle(order)  # noqa: NPY002
    order = order[torch.randperm(len(order)).numpy()]
    return np.array_split(np.array(random.sample(order.tolist(), len(order))), clients)


def test_global_generators_split_by_the_seed_of_the_run_and_are_as_before() -> None:
    def state() -> tuple[float, float, float]:
        return random.random(), np.random.random(), float(torch.rand(1))  # noqa: NPY002

    def start() -> None:
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        torch.manual_seed(3)

    start()
    zero, one = split(globally, seeds=(0, 1))
    after = state()
    start()
    assert after == state()
    (again,) = split(globally)
    assert all(map(np.array_equal, zero.indices, again.indices))
    assert not all(map(np.array_equal, zero.indices, one.indices))


def test_the_split_is_part_of_what_a_checkpoint_is_of() -> None:
    """Another process may order a set of words otherwise: it does not go on with what this one began."""
    one, two = (split(given)[0].device_data.checksums for given in (fair, lambda y, c, s: fair(y, c, s)[::-1]))
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == ["Own(name='it') of 4 clients, seed 0"]
