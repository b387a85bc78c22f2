"""Partitions with Dirichlet class shares: per class, per client, capped, and with equal sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Floats, Indices, Labels, Seed, Whole
from reproduce.errors import UserError
from reproduce.partitions.base import (
    ATTEMPTS,
    TEST,
    TRAIN,
    Prior,
    by_class,
    cut,
    drawn,
    impossible,
    joined,
    pick,
    stream,
)


@dataclass(frozen=True)
class DirichletClass:
    """Each class is cut by shares ~ Dir(alpha 1_M) over the clients; all samples used (fedacs).

    Everything is redrawn until each client has at least `min_size` samples. Sizes are very unequal for small alpha.
    """

    alpha: Prior
    min_size: Whole = 10

    def shares(self, classes: int, clients: int, rng: np.random.Generator) -> Floats | None:
        """The clients' shares of each class, [classes, clients]; None if some class has no client."""
        return rng.dirichlet(np.full(clients, self.alpha), size=classes)  # p_c ~ Dir(alpha 1_M)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        rng, groups = stream(seed, TRAIN), list(by_class(labels).values())
        for _ in range(ATTEMPTS):
            shares = self.shares(len(groups), clients, rng)
            if shares is not None:
                parts = _cut_classes(groups, shares, rng)
                if min(map(len, parts)) >= max(1, self.min_size):
                    return parts
        raise impossible(f"{type(self).__name__} {self.alpha}, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class DirichletClient(DirichletClass):
    """Each client draws a label mix ~ Dir(alpha 1_C); a class is shared out in proportion to the clients' mix entries.

    The other reading of a Dirichlet split (fedacs; the partition of FedAU's code).
    """

    min_size: Whole = 1

    def shares(self, classes: int, clients: int, rng: np.random.Generator) -> Floats | None:
        mix = rng.dirichlet(np.full(classes, self.alpha), size=clients).T  # q_m ~ Dir(alpha 1_C), as [classes, clients]
        totals = mix.sum(axis=1, keepdims=True)
        return mix / totals if (totals > 0).all() else None  # p_cm = q_mc / sum_m q_mc


@dataclass(frozen=True)
class CappedDirichlet:
    """Each class cut by Dir(alpha 1_M) among the clients that hold fewer than N / M samples so far; all samples used.

    For fedagrac (DP1; alpha 0.3, legacy generator seeded 1234) and fiarse's AG News (alpha 1.0, `data_seed=0`). Redrawn
    on the same stream until each client has at least as many samples as there are classes; then every client's list is
    shuffled. `data_seed=None` takes the seed of the run instead.
    """

    alpha: Prior
    data_seed: Seed | None = 1234

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        groups = by_class(labels)
        rng = np.random.RandomState(drawn(self.data_seed, seed))  # the papers' stream
        for _ in range(ATTEMPTS):
            parts = self._draw([indices.copy() for indices in groups.values()], clients, len(labels) / clients, rng)
            if parts is not None and min(map(len, parts)) >= len(groups):
                for indices in parts:
                    rng.shuffle(indices)
                return parts
        raise impossible(f"capped Dirichlet {self.alpha}, at least {len(groups)} samples each", clients)

    def _draw(
        self, groups: list[Indices], clients: int, cap: float, rng: np.random.RandomState
    ) -> list[Indices] | None:
        """One attempt: each class is cut among the clients below the cap; None if all their shares underflow to 0."""
        parts: list[list[Indices]] = [[] for _ in range(clients)]
        sizes = np.zeros(clients, np.int64)
        for indices in groups:
            rng.shuffle(indices)
            shares = rng.dirichlet(np.repeat(self.alpha, clients)) * (sizes < cap)  # p_c ~ Dir(alpha 1_M), open clients
            if not shares.sum() > 0:  # every open client drew a share that underflowed to 0
                return None
            for client, piece in enumerate(cut(indices, shares / shares.sum())):
                parts[client].append(piece)
                sizes[client] += len(piece)
        return joined(parts)

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        """Local test sets that tile the test split (fiarse).

        A class is cut by the clients' realised shares of it in training; a client left without any sample takes one
        from the largest.
        """
        classes = by_class(train_labels)
        parts, groups = self.split(train_labels, clients, seed), _test_groups(test_labels, list(classes))
        held = np.array([[np.count_nonzero(train_labels[part] == label) for part in parts] for label in classes])
        rng = stream(drawn(self.data_seed, seed), TEST)
        return _fill_empty(_cut_classes(groups, held / held.sum(axis=1, keepdims=True), rng))  # n_cm / n_c


@dataclass(frozen=True)
class BalancedDirichlet:
    """Every client draws a class prior ~ Dir(alpha 1_C) and gets exactly floor(N / M) samples (fiarse).

    For every sample: a client drawn uniformly among those not full, a class drawn from its prior restricted to the
    classes that still have samples (uniform among these if the restricted prior vanishes), the next sample of that
    class in data-set order. Then every client's list is shuffled. fiarse fixes `data_seed` 0; None takes the seed of
    the run instead.
    """

    alpha: Prior
    data_seed: Seed | None = 0

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        groups, rng = by_class(labels), stream(drawn(self.data_seed, seed), TRAIN)
        return _deal(list(groups.values()), rng.dirichlet(np.full(len(groups), self.alpha), size=clients), rng)

    def priors(self, classes: int, clients: int, seed: int) -> Floats:
        """The priors [clients, classes in ascending order] of a split, with which its stream begins."""
        return stream(drawn(self.data_seed, seed), TRAIN).dirichlet(np.full(classes, self.alpha), size=clients)

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        """Local test sets of floor(N_test / M) samples by the same rule, with the priors of the training parts."""
        classes = list(by_class(train_labels))
        groups, priors = _test_groups(test_labels, classes), self.priors(len(classes), clients, seed)
        return _deal(groups, priors, stream(drawn(self.data_seed, seed), TEST))


def _cut_classes(groups: Sequence[Indices], shares: Floats, rng: np.random.Generator) -> list[Indices]:
    """Each class shuffled and cut by its row of `shares` [classes, clients]."""
    cuts = [cut(rng.permutation(indices), row) for indices, row in zip(groups, shares, strict=True)]
    return joined([[pieces[client] for pieces in cuts] for client in range(shares.shape[1])])


def _test_groups(test_labels: Labels, classes: list[int]) -> list[Indices]:
    """The test samples of each class of the training set."""
    groups = by_class(test_labels)
    if set(groups) - set(classes):
        raise UserError("the test set has a class that the training set has not")
    return [groups.get(label, np.empty(0, np.int64)) for label in classes]


def _fill_empty(parts: list[Indices]) -> list[Indices]:
    for client, part in enumerate(parts):
        if not len(part):
            donor = max(range(len(parts)), key=lambda i: len(parts[i]))
            parts[client], parts[donor] = parts[donor][-1:], parts[donor][:-1]
    return parts


def _deal(groups: Sequence[Indices], priors: Floats, rng: np.random.Generator) -> list[Indices]:
    """The loop of `BalancedDirichlet` on plain lists: one sample at a time, equal sizes, without rejection."""
    clients, quota = len(priors), sum(map(len, groups)) // len(priors)
    pools = [iter(indices.tolist()) for indices in groups]
    left = np.array([len(indices) for indices in groups])  # samples of each class that nobody has yet
    cumulative = _restricted(priors, left > 0)
    taken: list[list[int]] = [[] for _ in range(clients)]
    waiting = list(range(clients))  # who is not full
    for where, which in rng.random((clients * quota, 2)).tolist():
        slot = int(where * len(waiting))
        samples = taken[waiting[slot]]
        k = pick(cumulative[waiting[slot]], which)
        samples.append(next(pools[k]))
        left[k] -= 1
        if not left[k]:
            cumulative = _restricted(priors, left > 0)
        if len(samples) == quota:
            waiting[slot] = waiting[-1]
            waiting.pop()
    return [rng.permutation(np.array(indices, np.int64)) for indices in taken]


def _restricted(priors: Floats, left: NDArray[np.bool_]) -> list[list[float]]:
    """Cumulative prior mass on the classes that are there; a client without any is uniform on them."""
    mass = priors * left
    mass = np.where(mass.sum(axis=1, keepdims=True) > 0, mass, left.astype(np.float64))
    rows: list[list[float]] = np.cumsum(mass, axis=1).tolist()
    return rows
