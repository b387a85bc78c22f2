"""Partitions of dynamic_init: two groups of clients with their own label sets (4.2, 4.3) and the label
distributions of 4.6.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Floats, Fraction, Indices, Labels, Whole
from reproduce.errors import UserError
from reproduce.partitions.base import ATTEMPTS, TRAIN, Prior, by_class, cut, evenly, impossible, joined, pick, stream


def label_groups(n_labels: int, overlap: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Label sets A and B of the two groups; `overlap` is the shared part of each set (4.2).

    With overlap 0, A is the first floor(L/2) labels and B the rest. Otherwise both have G = floor(L / (2 - overlap))
    labels of which floor(G overlap) are shared; labels above that are unused.
    """
    if n_labels < 2:
        raise UserError(f"two label groups need at least 2 labels, not {n_labels}")
    # without the last digits, so that 100 / (2 - 0.2) * 0.2 and the like floor as on paper
    group = math.floor(round(n_labels / (2 - overlap), 9))
    shared = math.floor(round(group * overlap, 9))
    if shared == 0 or group <= shared:
        half = n_labels // 2
        return tuple(range(half)), tuple(range(half, n_labels))
    own = group - shared
    return tuple(range(group)), tuple(range(own, own + group))


@dataclass(frozen=True)
class GroupedDirichlet:
    """Groups of equally many clients with label sets of their own; inside a group a Dirichlet prior per client (4.3).

    overlap: the two label sets of `label_groups`. label_sets: instead, those of any number of groups; labels of none
    are unused, and a session of a group that others share no label with is one of unseen labels (Table 12).

    Quotas inside a group differ by at most 1. Client after client fills its quota from one shuffled pool per label:
    up to 3 |labels| + 5 draws of a label from its prior until a pool is not empty, else a uniformly chosen pool that is
    not empty. Everything is assigned; late clients get what is left. Samples of shared labels go to both groups, which
    are partitioned independently (stream: seed, 1, group). Result: the first group's clients, then the second's, ...
    """

    alpha: Prior
    overlap: Fraction = 0.0
    label_sets: tuple[tuple[int, ...], ...] = ()

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        samples = by_class(labels)
        groups = self.groups(list(samples))
        if clients % len(groups) or not clients:
            name = "an even number" if len(groups) == 2 else f"a multiple of {len(groups)}"
            raise UserError(f"{len(groups)} groups of equally many clients need {name} of clients, not {clients}")
        parts: list[Indices] = []
        for group, label_set in enumerate(groups, start=1):
            pools = [samples[label] for label in label_set]
            parts += self.split_group(pools, clients // len(groups), stream(seed, TRAIN, group))
        return parts

    @property
    def shares_samples(self) -> bool:
        """Samples of a label that two groups have go to a client of each."""
        labels = [label for given in self.label_sets for label in given]
        return self.overlap > 0 or len(set(labels)) < len(labels)

    def groups(self, classes: list[int]) -> list[list[int]]:
        """The label set of each group, given the labels that occur."""
        if not self.label_sets:
            return [[classes[k] for k in positions] for positions in label_groups(len(classes), self.overlap)]
        for given in self.label_sets:
            if absent := sorted(set(given) - set(classes)):
                raise UserError(f"no sample has the labels {absent} of the group {given}")
        return [list(given) for given in self.label_sets]

    def split_group(self, samples: list[Indices], clients: int, rng: np.random.Generator) -> list[Indices]:
        """All `samples` of the group, given for each of its labels, among `clients` clients.

        The tries of 4.3 are drawn at once, which is the same law: with s the prior mass on non-empty pools, at least
        one of T tries succeeds with probability 1 - (1 - s)^T, and its label then follows the prior restricted to them.
        """
        pools = [rng.permutation(indices).tolist() for indices in samples]
        total, tries = sum(map(len, pools)), 3 * len(pools) + 5
        priors = rng.dirichlet(np.full(len(pools), self.alpha), size=clients)
        draws = iter(rng.random((total, 2)).tolist())
        parts = []
        for i, prior in enumerate(priors):
            positions: list[int] = []
            row, hit = _restricted(prior, pools, tries)
            for u, which in itertools.islice(draws, total // clients + (i < total % clients)):
                if u < hit:
                    k = pick(row, which)
                else:
                    filled = [k for k, pool in enumerate(pools) if pool]
                    k = filled[int(which * len(filled))]
                positions.append(pools[k].pop())
                if not pools[k]:
                    row, hit = _restricted(prior, pools, tries)
            parts.append(np.array(positions, np.int64))
        return parts


@dataclass(frozen=True)
class GroupedShares(GroupedDirichlet):
    """Another reading of the split: groups as in `GroupedDirichlet`; inside one, each label is cut by shares
    ~ Dir(alpha 1_n) over its n clients.

    All samples of the group are used, and clients differ in size. A group is redrawn until each of its clients has at
    least `min_size` samples (as in `DirichletClass`); UserError if none is found.
    """

    min_size: Whole = 10

    def split_group(self, samples: list[Indices], clients: int, rng: np.random.Generator) -> list[Indices]:
        for _ in range(ATTEMPTS):
            # p_c ~ Dir(alpha 1_n) for each label c
            pieces = [cut(rng.permutation(own), rng.dirichlet(np.full(clients, self.alpha))) for own in samples]
            parts = joined([*zip(*pieces, strict=True)])
            if min(map(len, parts)) >= max(1, self.min_size):
                return parts
        raise impossible(f"GroupedShares {self.alpha}, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class HalfLabels:
    """The first half of the clients shares the first half of the labels evenly, the others the rest (4.6 `half`)."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        middle = len(np.unique(labels)) // 2
        return _two_halves(labels, clients, middle, middle, stream(seed, TRAIN))


@dataclass(frozen=True)
class PartialOverlap:
    """The first half of the clients holds labels 0 .. 0.6L-1, the others 0.4L .. L-1 (4.6 `partial_overlap`).

    Of a label in both sets the first half of the shuffled samples goes to the first group, the rest to the second; each
    label is split evenly inside its group.
    """

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        count = len(np.unique(labels))
        return _two_halves(labels, clients, round(0.4 * count), round(0.6 * count), stream(seed, TRAIN))


def _two_halves(labels: Labels, clients: int, begin: int, end: int, rng: np.random.Generator) -> list[Indices]:
    """Labels before `begin` to the first half of the clients, from `end` on to the others, half of the rest to each."""
    if clients < 2:
        raise UserError("two halves of clients need at least 2 clients")
    first, second = range(clients // 2), range(clients // 2, clients)
    pieces: list[list[Indices]] = [[] for _ in range(clients)]
    for k, indices in enumerate(by_class(labels).values()):
        shuffled = rng.permutation(indices)
        middle = len(shuffled) if k < begin else 0 if k >= end else len(shuffled) // 2
        for group, part in ((first, shuffled[:middle]), (second, shuffled[middle:])):
            for client, piece in zip(group, np.array_split(part, len(group)), strict=True):
                pieces[client].append(piece)
    return joined(pieces)


@dataclass(frozen=True)
class TwoShard:
    """Each label's samples in two halves that go to different clients, 2 L / N labels per client (4.6 `two_shard`).

    batched: the shuffled labels form N batches of L / N (10 labels: 1; 100 labels: 10) and both halves of a batch go to
    two random clients with a free one of their two slots; restarted if the last step finds no two. Otherwise
    (200 labels, N = 20) each client draws 2 L / N of the remaining halves with distinct labels, restarted likewise.
    """

    batched: bool = True

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        rng, classes = stream(seed, TRAIN), np.unique(labels).tolist()
        if clients < 2 or (len(classes) if self.batched else 2 * len(classes)) % clients:
            raise UserError(f"two shards: {len(classes)} labels cannot be dealt to {clients} clients in equal numbers")
        deal = self._deal_batches if self.batched else self._deal_halves
        for _ in range(ATTEMPTS):
            holders = deal(len(classes), clients, rng)
            if holders is not None:
                owners = {label: holders[k] for k, label in enumerate(classes)}
                return evenly(labels, owners, clients, rng)
        raise impossible("two shards", clients)

    def _deal_batches(self, count: int, clients: int, rng: np.random.Generator) -> list[list[int]] | None:
        slots = np.full(clients, 2)
        holders: list[list[int]] = [[] for _ in range(count)]
        for batch in rng.permutation(count).reshape(clients, -1).tolist():
            free = np.flatnonzero(slots)
            if len(free) < 2:
                return None
            pair = rng.choice(free, 2, replace=False)
            slots[pair] -= 1
            for k in batch:
                holders[k] = pair.tolist()
        return holders

    def _deal_halves(self, count: int, clients: int, rng: np.random.Generator) -> list[list[int]] | None:
        left, each = np.full(count, 2), 2 * count // clients
        holders: list[list[int]] = [[] for _ in range(count)]
        for client in range(clients):
            halves = rng.permutation(np.repeat(np.arange(count), left)).tolist()
            labels = list(dict.fromkeys(halves))[:each]
            if len(labels) < each:
                return None
            left[labels] -= 1
            for k in labels:
                holders[k].append(client)
        return holders


@dataclass(frozen=True)
class DistinctLabels:
    """Client i has all samples of the labels i L/N .. (i+1) L/N - 1 (4.6 `distinct`; N = 10, 10 or 100 labels)."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        classes = np.unique(labels).tolist()
        if clients < 1 or len(classes) % clients:
            raise UserError(f"distinct labels: {len(classes)} labels cannot be dealt to {clients} clients equally")
        each = len(classes) // clients
        owners = {label: [k // each] for k, label in enumerate(classes)}
        return evenly(labels, owners, clients, stream(seed, TRAIN))


def _restricted(prior: Floats, pools: list[list[int]], tries: int) -> tuple[list[float], float]:
    """Cumulative prior on the non-empty pools, and the chance that one of `tries` draws of the prior hits one."""
    row: list[float] = np.cumsum([p if pool else 0.0 for p, pool in zip(prior.tolist(), pools, strict=True)]).tolist()
    mass = min(1.0, row[-1])
    if all(pools):
        return row, 1.0
    return row, 1 - (1 - mass) ** tries
