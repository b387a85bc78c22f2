"""The samples that a problem uses and their assignment to clients, for the engine and for export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.data.dataset import PARTS, Dataset, by_contents
from reproduce.data.load import load, of_record
from reproduce.declare.values import Indices, Labels, foreign
from reproduce.errors import UserError
from reproduce.partitions.base import checked
from reproduce.streams import rng

if TYPE_CHECKING:
    from reproduce.problem import Classification
    from reproduce.settings import Settings


@dataclass(frozen=True, eq=False)
class Split:
    """The samples of each client.

    used: of the training and of the test set, the positions [n] in the data set of the samples in use, in their order.
    parts: of the training set and, where it is split too, of the test set, a list of positions in `used` per client.
    seed: of the split, None where none enters. by_seed: it is that of the run, so that another run has another split.
    """

    problem: Classification
    data: Dataset
    seed: int | None
    by_seed: bool
    used: tuple[Indices, Indices]
    parts: tuple[list[Indices], ...]

    @property
    def labels(self) -> tuple[Labels, Labels]:
        """Labels [n] of the samples in use, of the training and of the test set."""
        train, test = self.used
        return self.data.train_y[train], self.data.test_y[test]


def split(problem: Classification, seed: int, settings: Settings) -> Split:
    """The split of a run's seed. Raises MissingData without the data set, UserError for what cannot be split."""
    data, at = loaded(problem, settings), seed_of(problem, seed)
    enters = getattr(problem.partition, "data_seed", None) is None
    train, test = used = chosen(problem, data)
    parts = [parts_of(problem, at, data.train_y[train])]
    if problem.test_partition:
        parts.append(parts_of(problem, at, data.train_y[train], data.test_y[test]))
    by_seed = enters and problem.partition_seed is None
    return Split(problem, data, at if enters else None, by_seed, used, tuple(parts))


def loaded(problem: Any, settings: Settings) -> Dataset:
    """The data of a problem, or that are cut; raises as `data.load` and `data.of_record` do."""
    return load(problem.data, settings) if isinstance(problem.data, str) else of_record(problem.data)


def seed_of(problem: Classification, seed: int) -> int:
    """The seed of the split of a run with this seed."""
    return seed if problem.partition_seed is None else problem.partition_seed


def chosen(problem: Classification, data: Dataset) -> tuple[Indices, Indices]:
    """Positions in the data set of the training and of the test samples that a problem uses, in their order."""
    train = _subset(data.train_y, problem.train_samples, problem, PARTS[0])
    if problem.model.batch_statistics and (foreign(problem.data) or getattr(problem.data, "brought", False)):
        # Who a sample is evaluated with must not depend on a file's order.
        order = by_contents(data.test_x, data.test_y)
        return train, order[_subset(data.test_y[order], problem.test_samples, problem, PARTS[1])]
    return train, _subset(data.test_y, problem.test_samples, problem, PARTS[1])


def _subset(labels: Labels, count: int, problem: Classification, part: str) -> Indices:
    """Ascending indices of the fixed random subset, or all of them."""
    everything = np.arange(len(labels))
    if not count:
        return everything
    order = rng("subset", part, problem.subset_seed).permutation(len(labels))
    if not problem.subset_balanced:
        return np.sort(order[:count])
    classes, counts = np.unique(labels, return_counts=True)
    each = count // len(classes)
    if not 0 < each <= counts.min():
        wanted = f"{each} samples of each of {len(classes)} classes, and the smallest has {counts.min()}"
        raise UserError(f"{part}_samples = {count} are {wanted}: use another number, or subset_balanced=False")
    return np.sort(np.concatenate([order[labels[order] == c][:each] for c in classes]))


def parts_of(problem: Classification, seed: int, labels: Labels, test_labels: Labels | None = None) -> list[Indices]:
    """The clients' samples, of the seed of the split, with `test_labels` those of the test set; UserError for a
    partition that does not fit."""
    partition, clients = problem.partition, problem.clients
    what = f"the partition {type(partition).__name__}"
    if test_labels is None:
        return checked(what, partition, lambda: partition.split(labels, clients, seed), clients, len(labels), seed)
    return checked(
        f"{what} of the test set", partition,
        lambda: partition.split_test(labels, test_labels, clients, seed), clients, len(test_labels), seed,
    )  # fmt: skip
