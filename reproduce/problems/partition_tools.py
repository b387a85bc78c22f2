"""What the partitions share: their interface, keyed random streams, and sharing one class out among clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reproduce.errors import UserError

Indices = NDArray[np.int64]
Labels = NDArray[np.integer]

TRAIN, TEST = 1, 2  # key of the stream that cuts the training set and the test set
ATTEMPTS = 1000  # redraws before a partition is called impossible


class Partition(Protocol):
    """A rule that gives samples to clients."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        """One array of positions in `labels` per client; the same for the same arguments on every machine."""


def stream(seed: int, *keys: int) -> np.random.Generator:
    """The random stream of (seed, keys); keys start at 1, since NumPy takes (s, 1) and (s, 1, 0) for the same."""
    return np.random.default_rng([seed, *keys])


def check(labels: Labels, clients: int, least: int = 1) -> None:
    """Refuse a split that cannot give every client `least` samples (at least one)."""
    if clients < 1:
        raise UserError(f"a partition among {clients} clients; use at least 1")
    if len(labels) < clients * max(1, least):
        raise UserError(f"{len(labels)} samples cannot give {clients} clients {max(1, least)} each; use fewer clients")


def impossible(what: str, clients: int) -> UserError:
    """The error of a partition that was redrawn too often."""
    return UserError(
        f"no partition among {clients} clients found in {ATTEMPTS} draws ({what}); use fewer clients or a larger alpha"
    )


def classes_of(labels: Labels) -> list[int]:
    """The classes that occur, ascending."""
    return [int(c) for c in np.unique(labels)]


def members(labels: Labels, label: int) -> Indices:
    """Positions of the class `label`, ascending."""
    return np.flatnonzero(labels == label).astype(np.int64, copy=False)


def cut(indices: Indices, shares: NDArray[np.float64]) -> list[Indices]:
    """`indices` in consecutive pieces at floor(cumulative share * length); the last piece takes the rest."""
    points = (np.cumsum(shares) * len(indices)).astype(np.int64)[:-1]
    return [np.asarray(piece) for piece in np.split(indices, points)]


def evenly(
    labels: Labels, owners: Mapping[int, Sequence[int]], clients: int, rng: np.random.Generator
) -> list[Indices]:
    """Share each class out among its owners, in shuffled order and in pieces whose sizes differ by at most 1.

    `owners` maps a class to its clients, the first of which take the surplus samples; a class without owners is unused.
    """
    pieces: list[list[Indices]] = [[] for _ in range(clients)]
    for label, holders in owners.items():
        if holders:
            shares = np.array_split(rng.permutation(members(labels, label)), len(holders))
            for client, piece in zip(holders, shares, strict=True):
                pieces[client].append(piece)
    return nonempty(joined(pieces))


def joined(pieces: Sequence[Sequence[Indices]]) -> list[Indices]:
    """Each client's pieces as one array."""
    return [np.concatenate([*p, np.empty(0, np.int64)]).astype(np.int64, copy=False) for p in pieces]


def nonempty(parts: list[Indices]) -> list[Indices]:
    """`parts`, none of which may be empty."""
    if not all(len(part) for part in parts):
        raise UserError(f"too few samples of some class for {len(parts)} clients; use fewer clients or more samples")
    return parts
