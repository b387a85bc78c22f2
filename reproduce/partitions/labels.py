"""Partitions that are IID or fix which classes a client may hold."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reproduce.declare.values import Count, Indices, Labels, Seed, Share
from reproduce.errors import UserError
from reproduce.partitions.base import TRAIN, Over, by_class, drawn, evenly, joined, stream


@dataclass(frozen=True)
class IID:
    """A random permutation cut into consecutive parts whose sizes differ by at most 1 (defedavg).

    Stream: `default_rng([seed, 1])`.
    """

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        return np.array_split(stream(seed, TRAIN).permutation(len(labels)), clients)


@dataclass(frozen=True)
class ShuffledBlocks:
    """All positions shuffled, consecutive blocks of floor(N / clients), the rest unused (fedagrac, "i.i.d.").

    The paper's code shuffles with Python's `random.Random(1234)` whatever the seed of the run; `data_seed=None` takes
    the seed of the run instead.
    """

    data_seed: Seed | None = 1234

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        order = list(range(len(labels)))
        random.Random(drawn(self.data_seed, seed)).shuffle(order)
        size = len(order) // clients
        return [np.array(order[i * size : (i + 1) * size], np.int64) for i in range(clients)]


@dataclass(frozen=True)
class ClassPerClient:
    """One class per client, each class split evenly among its clients; all samples used (fedacs).

    contiguous: client m of M has class floor(m C / M), so that fast and slow halves of the clients see different
    classes; modulo: class m mod C, so that both halves see every class.
    """

    order: Literal["contiguous", "modulo"] = "contiguous"

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        classes = np.unique(labels).tolist()
        if clients < len(classes):
            raise UserError(f"one class per client: {clients} clients cannot hold {len(classes)} classes")
        owners: dict[int, list[int]] = {label: [] for label in classes}
        for m in range(clients):
            k = m * len(classes) // clients if self.order == "contiguous" else m % len(classes)
            owners[classes[k]].append(m)
        return evenly(labels, owners, clients, stream(seed, TRAIN))


@dataclass(frozen=True)
class TwoClasses:
    """Client i owns class i mod C and one more class drawn uniformly from the others (defedavg, non-IID).

    Each class is shuffled and split as evenly as possible among its owners, in client order. All samples are used when
    there are at least as many clients as classes. Stream: `default_rng([seed, 1])`.
    """

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        classes, rng = np.unique(labels).tolist(), stream(seed, TRAIN)
        count = len(classes)
        if count < 2:
            raise UserError("two classes per client need data with at least two classes")
        steps = rng.integers(1, count, size=clients)  # second class = first + step (mod C): uniform on the other C - 1
        owners: dict[int, list[int]] = {label: [] for label in classes}
        for i, step in enumerate(steps.tolist()):
            owners[classes[i % count]].append(i)
            owners[classes[(i + step) % count]].append(i)
        return evenly(labels, owners, clients, rng)


@dataclass(frozen=True)
class Shards:
    """Samples sorted by label, cut into `per_client` x clients shards, each client gets `per_client` random ones.

    The other common reading of two classes per client (defedavg).
    """

    per_client: Count = 2

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        shards = np.array_split(np.argsort(labels, kind="stable").astype(np.int64), clients * self.per_client)
        order = stream(seed, TRAIN).permutation(len(shards)).reshape(clients, self.per_client)
        return [np.concatenate([shards[k] for k in row]) for row in order]


@dataclass(frozen=True)
class Sharding:
    """Five classes per client, unequal sizes (fedagrac, DP2; "pathological" in the published code).

    Label slots are a permutation of the C classes followed by uniform draws; a client with a repeated label gets
    distinct ones instead. A class with h holders gives floor(n_c / h) shuffled samples to each in client order and
    drops the remainder; every client's list is then shuffled. Legacy generator seeded 1234 as in the paper's code;
    `data_seed=None` takes the seed of the run instead.
    """

    per_client: Count = 5
    data_seed: Seed | None = 1234

    def slots(self, classes: int, clients: int, rng: np.random.RandomState) -> Indices:
        """Positions of the classes each client holds, shape [clients, per_client]."""
        if not self.per_client <= classes <= clients * self.per_client:
            raise UserError(f"{clients} clients x {self.per_client} labels cannot cover {classes} classes once each")
        extra = clients * self.per_client - classes
        slots = np.concatenate([rng.permutation(classes), rng.randint(0, classes, extra)])
        slots = slots.reshape(clients, self.per_client)
        for row in slots:
            if len(set(row.tolist())) < self.per_client:
                row[:] = rng.choice(classes, self.per_client, replace=False)
        return slots.astype(np.int64)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        rng = np.random.RandomState(drawn(self.data_seed, seed))  # the paper's
        groups = by_class(labels)
        slots = self.slots(len(groups), clients, rng)
        parts: list[list[Indices]] = [[] for _ in range(clients)]
        for k, indices in enumerate(groups.values()):
            rng.shuffle(indices)
            holders = np.flatnonzero((slots == k).any(axis=1))
            size = len(indices) // max(1, len(holders))  # floor(n_c / h)
            for position, client in enumerate(holders.tolist()):
                parts[client].append(indices[position * size : (position + 1) * size])
        lists = joined(parts)
        for indices in lists:
            rng.shuffle(indices)
        return lists


@dataclass(frozen=True)
class Head(Over):
    """The first `share` of every client's list of another partition, at least one sample: the same proportions of
    clients and classes, up to chance, on less data (fedagrac, reduced scale)."""

    share: Share

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts = self.partition.split(labels, clients, seed)
        return [part[: max(1, math.ceil(self.share * len(part)))] for part in parts]
