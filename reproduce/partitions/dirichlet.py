"""Partitions with Dirichlet class shares: per class, per client, capped, and with equal sizes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Indices, Labels, whole
from reproduce.declare.values import seed as check_seed
from reproduce.errors import UserError
from reproduce.partitions.base import (
    ATTEMPTS,
    TEST,
    TRAIN,
    check,
    check_prior,
    classes_of,
    cut,
    impossible,
    joined,
    members,
    stream,
)

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class DirichletClass:
    """Each class is cut by shares ~ Dir(alpha 1_M) over the clients; all samples used (fedacs).

    Everything is redrawn until each client has at least `min_size` samples. Sizes are very unequal for small alpha.
    """

    alpha: float
    min_size: int = 10

    def __post_init__(self) -> None:
        check_prior(self.alpha)
        whole("min_size", self.min_size, 0)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        check(labels, clients, self.min_size)
        rng = stream(seed, TRAIN)
        groups = [members(labels, label) for label in classes_of(labels)]
        for _ in range(ATTEMPTS):
            shares = rng.dirichlet(np.full(clients, self.alpha), size=len(groups))
            parts = _cut_classes(groups, shares, rng)
            if min(map(len, parts)) >= max(1, self.min_size):
                return parts
        raise impossible(f"Dirichlet {self.alpha}, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class DirichletClient:
    """Each client draws a label mix ~ Dir(alpha 1_C); a class is shared out in proportion to the clients' mix entries.

    The other reading of a Dirichlet split (fedacs; the partition of FedAU's code). All samples used; redrawn until each
    client has at least `min_size` samples.
    """

    alpha: float
    min_size: int = 1

    def __post_init__(self) -> None:
        check_prior(self.alpha)
        whole("min_size", self.min_size, 0)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        check(labels, clients, self.min_size)
        rng = stream(seed, TRAIN)
        groups = [members(labels, label) for label in classes_of(labels)]
        for _ in range(ATTEMPTS):
            mix = rng.dirichlet(np.full(len(groups), self.alpha), size=clients).T
            totals = mix.sum(axis=1, keepdims=True)
            if (totals > 0).all():
                parts = _cut_classes(groups, mix / totals, rng)
                if min(map(len, parts)) >= max(1, self.min_size):
                    return parts
        raise impossible(f"Dirichlet {self.alpha} per client, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class CappedDirichlet:
    """Each class cut by Dir(alpha 1_M) among the clients that hold fewer than N / M samples so far; all samples used.

    For fedagrac (DP1; alpha 0.3, legacy generator seeded 1234) and fiarse's AG News (alpha 1.0, `data_seed=0`). Redrawn
    on the same stream until each client has at least as many samples as there are classes; then every client's list is
    shuffled. `data_seed=None` takes the seed of the run instead.
    """

    alpha: float
    data_seed: int | None = 1234

    def __post_init__(self) -> None:
        check_prior(self.alpha)
        check_seed("data_seed", self.data_seed)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        classes, total = classes_of(labels), len(labels)
        check(labels, clients, len(classes))
        rng = np.random.RandomState(seed if self.data_seed is None else self.data_seed)  # the papers' stream
        for _ in range(ATTEMPTS):
            parts = self._draw(labels, classes, clients, total / clients, rng)
            if parts is not None and min(map(len, parts)) >= len(classes):
                for indices in parts:
                    rng.shuffle(indices)
                return parts
        raise impossible(f"capped Dirichlet {self.alpha}, at least {len(classes)} samples each", clients)

    def _draw(
        self, labels: Labels, classes: list[int], clients: int, cap: float, rng: np.random.RandomState
    ) -> list[Indices] | None:
        parts: list[list[Indices]] = [[] for _ in range(clients)]
        sizes = np.zeros(clients, np.int64)
        for label in classes:
            indices = members(labels, label)
            rng.shuffle(indices)
            shares = rng.dirichlet(np.repeat(self.alpha, clients)) * (sizes < cap)
            if not shares.sum() > 0:  # every open client drew a share that underflowed to 0
                return None
            for client, piece in enumerate(cut(indices, shares / shares.sum())):
                parts[client].append(piece)
                sizes[client] += len(piece)
        return joined(parts)

    def split_test(
        self, train_labels: Labels, test_labels: Labels, clients: int, seed: int, matched: bool = True
    ) -> list[Indices]:
        """Local test sets that tile the test split (fiarse).

        matched: a class is cut by the clients' realised shares of that class in training; a client left without any
        sample takes one from the largest. Otherwise the released code: a partition drawn afresh from the test labels.
        """
        if not matched:
            again = CappedDirichlet(self.alpha, None)
            return again.split(test_labels, clients, (seed if self.data_seed is None else self.data_seed) + 1)
        check(test_labels, clients)
        classes = classes_of(train_labels)
        _same_classes(test_labels, classes)
        parts = self.split(train_labels, clients, seed)
        held = np.array([[np.count_nonzero(train_labels[part] == label) for part in parts] for label in classes])
        rng = stream(seed if self.data_seed is None else self.data_seed, TEST)
        groups = [members(test_labels, label) for label in classes]
        return _fill_empty(_cut_classes(groups, held / held.sum(axis=1, keepdims=True), rng))


@dataclass(frozen=True)
class BalancedDirichlet:
    """Every client draws a class prior ~ Dir(alpha 1_C) and gets exactly floor(N / M) samples (fiarse).

    For every sample: a client drawn uniformly among those not full, a class drawn from its prior restricted to the
    classes that still have samples (uniform among these if the restricted prior vanishes), the next sample of that
    class in data-set order. Then every client's list is shuffled. fiarse fixes `data_seed` 0; None takes the seed of
    the run instead.
    """

    alpha: float
    data_seed: int | None = 0

    def __post_init__(self) -> None:
        check_prior(self.alpha)
        check_seed("data_seed", self.data_seed)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self.split_with_priors(labels, clients, seed)[0]

    def split_with_priors(self, labels: Labels, clients: int, seed: int) -> tuple[list[Indices], Matrix]:
        """The parts, and the priors [clients, classes in ascending order] they were drawn from."""
        check(labels, clients)
        rng = stream(seed if self.data_seed is None else self.data_seed, TRAIN)
        classes = classes_of(labels)
        priors = rng.dirichlet(np.full(len(classes), self.alpha), size=clients)
        return _deal(labels, classes, priors, rng), priors

    def split_test(
        self, train_labels: Labels, test_labels: Labels, clients: int, seed: int, matched: bool = True
    ) -> list[Indices]:
        """Local test sets of floor(N_test / M) samples by the same rule (fiarse).

        matched: with the priors of the training parts; otherwise with fresh priors, as in the released code.
        """
        check(test_labels, clients)
        rng = stream(seed if self.data_seed is None else self.data_seed, TEST)
        classes = classes_of(train_labels)
        _same_classes(test_labels, classes)
        if matched:
            priors = self.split_with_priors(train_labels, clients, seed)[1]
        else:
            priors = rng.dirichlet(np.full(len(classes), self.alpha), size=clients)
        return _deal(test_labels, classes, priors, rng)


def _cut_classes(groups: list[Indices], shares: Matrix, rng: np.random.Generator) -> list[Indices]:
    """Each class shuffled and cut by its row of `shares` [classes, clients]."""
    cuts = [cut(rng.permutation(indices), row) for indices, row in zip(groups, shares, strict=True)]
    return joined([[pieces[client] for pieces in cuts] for client in range(shares.shape[1])])


def _same_classes(test_labels: Labels, classes: list[int]) -> None:
    if not np.isin(test_labels, classes).all():
        raise UserError("the test set has a class that the training set has not")


def _fill_empty(parts: list[Indices]) -> list[Indices]:
    for client, part in enumerate(parts):
        if not len(part):
            donor = max(range(len(parts)), key=lambda i: len(parts[i]))
            parts[client], parts[donor] = parts[donor][-1:], parts[donor][:-1]
    return parts


def _deal(labels: Labels, classes: list[int], priors: Matrix, rng: np.random.Generator) -> list[Indices]:
    """The loop of `BalancedDirichlet` on plain lists: one sample at a time, equal sizes, without rejection."""
    clients, quota = len(priors), len(labels) // len(priors)
    pools = [members(labels, label).tolist() for label in classes]
    nexts, open_classes = [0] * len(pools), np.array([len(pool) > 0 for pool in pools])
    cumulative = _restricted(priors, open_classes)
    taken: list[list[int]] = [[] for _ in range(clients)]
    waiting = list(range(clients))
    for where, which in rng.random((clients * quota, 2)).tolist():
        slot = int(where * len(waiting))
        client = waiting[slot]
        row = cumulative[client]
        k = min(bisect_right(row, which * row[-1]), bisect_left(row, row[-1]))
        mine = taken[client]
        mine.append(pools[k][nexts[k]])
        nexts[k] += 1
        if nexts[k] == len(pools[k]):
            open_classes[k] = False
            cumulative = _restricted(priors, open_classes)
        if len(mine) == quota:
            waiting[slot] = waiting[-1]
            waiting.pop()
    return [rng.permutation(np.array(indices, np.int64)) for indices in taken]


def _restricted(priors: Matrix, open_classes: NDArray[np.bool_]) -> list[list[float]]:
    """Cumulative prior mass on the open classes; a client without any is uniform on them."""
    mass = priors * open_classes
    mass = np.where(mass.sum(axis=1, keepdims=True) > 0, mass, open_classes.astype(np.float64))
    rows: list[list[float]] = np.cumsum(mass, axis=1).tolist()
    return rows
