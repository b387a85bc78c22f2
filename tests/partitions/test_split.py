"""Partitions that cannot be, and numbers that mean nothing: one line each, from the check that all go through."""

from typing import Any

import numpy as np
import pytest

from reproduce.declare.experiment import SCALES
from reproduce.declare.values import foreign
from reproduce.errors import UserError
from reproduce.partitions.base import checked
from reproduce.partitions.dirichlet import BalancedDirichlet, CappedDirichlet, DirichletClass
from reproduce.partitions.groups import DistinctLabels, GroupedDirichlet, TwoShard
from reproduce.partitions.labels import IID, ClassPerClient, Head, Sharding, TwoClasses
from reproduce.problem import Classification
from reproduce.runs import plan
from tests.partitions.test_partitions import balanced, sizes


@pytest.mark.parametrize(
    ("partition", "labels", "clients", "words"),
    [
        (IID(), np.zeros(3, int), 4, "3 samples cannot give 4 clients 1 each"),
        (ClassPerClient(), balanced(10, 5), 5, "10 classes"),
        (ClassPerClient(), np.repeat([0, 1], [1, 20]), 4, "client 1 no samples"),
        (TwoClasses(), np.zeros(9, int), 3, "at least two classes"),
        (DirichletClass(0.001), balanced(2, 100), 10, "1000 draws"),
        (GroupedDirichlet(0.3), balanced(4, 10), 3, "even number"),
        (GroupedDirichlet(0.7, label_sets=((0, 1), (2,), (3,))), balanced(4, 10), 8, "multiple of 3"),
        (GroupedDirichlet(0.7, label_sets=((0, 1), (4,))), balanced(4, 10), 4, r"no sample has the labels \[4\]"),
        (TwoShard(), balanced(10, 1), 10, "no samples: use fewer clients, or more samples"),
        (DistinctLabels(), balanced(10, 3), 0, "cannot be dealt"),
        (TwoShard(), balanced(10, 10), 7, "equal numbers"),
        (Sharding(5), balanced(4, 10), 4, "cannot cover"),
    ],
)
def test_impossible_splits_say_so(partition: Any, labels: np.ndarray, clients: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        checked("it", partition, lambda: partition.split(labels, clients, 0), clients, len(labels), 0)


def test_a_class_of_the_test_set_alone_is_refused() -> None:
    for partition in (BalancedDirichlet(0.3), CappedDirichlet(1.0, 0)):
        with pytest.raises(UserError, match="training set has not"):
            partition.split_test(balanced(4, 50), balanced(5, 10), 4, 0)


def declared() -> list[Any]:
    """The partitions of all experiments, and those that others hold."""
    problems = (e.problem for scale in SCALES for j in plan.jobs(scale) for e in j.experiments)
    found = dict.fromkeys(p.partition for p in problems if isinstance(p, Classification))
    return [*found, *(p.partition for p in found if isinstance(p, Head))]


def test_every_declared_partition_passes_the_one_check_of_all() -> None:
    """No sample twice, nobody empty, the same for the same seed, of this package; shared samples only where it is
    said, and there really."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 300))
    partitions = declared()
    assert len({type(p) for p in partitions}) == 19
    for partition in partitions:
        assert not foreign(partition)
        for clients in (20, 10, 12):
            try:
                first, second = (
                    checked("it", partition, lambda p=partition, c=clients: p.split(labels, c, 3), clients, 3000, 3)
                    for _ in range(2)
                )
            except UserError:
                continue
            assert all(map(np.array_equal, first, second))
            shared = len(np.unique(np.concatenate(first))) < sum(sizes(first))
            assert shared == getattr(partition, "shares_samples", False)
