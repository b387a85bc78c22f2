"""Common parts of the partitions: their interface, the one check of what they give, and sharing out a class."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from reproduce.declare.values import Bounds, Floats, Indices, Labels, calling, foreign
from reproduce.errors import UserError

TRAIN, TEST = 1, 2  # key of the stream that cuts the training set and the test set
Prior = Annotated[float, Bounds(above=0, most=1e100)]  # alpha: the gamma variates of a larger one would overflow
ATTEMPTS = 1000  # redraws before a partition is called impossible


class Partition(Protocol):
    """A rule that gives samples to clients: to each at least one, and none to two of them.

    A record says where it does otherwise (`checked`): with `shares_samples = True` a sample may be of several clients,
    with `leaves_empty = True` clients may have none. A `data_seed` that is not None says that no run's seed enters.
    """

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        """Positions in `labels` as an array per client; the same for the same arguments on every machine."""


@dataclass(frozen=True)
class Over:
    """A partition made of another, whose properties it has."""

    partition: Any

    shares_samples = property(lambda self: getattr(self.partition, "shares_samples", False))
    leaves_empty = property(lambda self: getattr(self.partition, "leaves_empty", False))
    data_seed = property(lambda self: getattr(self.partition, "data_seed", None))


def stream(seed: int, *keys: int) -> np.random.Generator:
    """The random stream of (seed, keys); keys start at 1, since NumPy takes (s, 1) and (s, 1, 0) for the same."""
    return np.random.default_rng([seed, *keys])


def checked(
    what: str, partition: object, split: Callable[[], Iterable[object]], clients: int, samples: int, seed: int
) -> list[Indices]:
    """The clients' samples as `split` of a partition gives them: the one check of all partitions.

    Raises UserError that begins with `what` unless there are `clients` lists of positions below `samples`, without a
    sample twice or a client without any, where the record does not say otherwise (`Partition`).
    """
    if samples < clients and not getattr(partition, "leaves_empty", False):
        raise UserError(f"{what}: {samples} samples cannot give {clients} clients 1 each; use fewer clients")
    with calling(what, "split", seed) if foreign(partition) else nullcontext():
        parts = [_positions(f"{what} gives client {m}", part, samples) for m, part in enumerate(split())]
    if len(parts) != clients:
        raise UserError(f"{what} makes {len(parts)} parts for {clients} clients")
    empty = [m for m, part in enumerate(parts) if not len(part)]
    if len(empty) == clients or (empty and not getattr(partition, "leaves_empty", False)):
        line = f"{what} gives client {empty[0]} no samples: use fewer clients"
        raise UserError(f"{line} (or say `leaves_empty = True`)" if foreign(partition) else f"{line}, or more samples")
    holders = np.bincount(np.concatenate(parts), minlength=samples)
    if holders.max() > 1:
        twice = [m for m, part in enumerate(parts) if len(np.unique(part)) < len(part)]
        if twice:
            raise UserError(f"{what} gives client {twice[0]} a sample twice")
        if not getattr(partition, "shares_samples", False):
            line = f"sample {holders.argmax()} to {holders.max()} clients"
            raise UserError(f"{what} gives {line}: give each to one (or say `shares_samples = True`)")
    return parts


def _positions(what: str, part: object, samples: int) -> Indices:
    """The positions of one client; `what` names it in errors."""
    positions = np.asarray(part)
    if positions.shape == (0,):
        return np.empty(0, np.int64)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        mask = ", np.flatnonzero(mask)" * (positions.dtype.kind == "b")
        raise UserError(f"{what} {positions.dtype} {list(positions.shape)}: give a list of whole numbers{mask}")
    for end in (positions.min(), positions.max()):
        if not 0 <= end < samples:
            raise UserError(f"{what} the sample {end}: there are 0 to {samples - 1}")
    return positions.astype(np.int64)


def impossible(what: str, clients: int) -> UserError:
    """The error of a partition that was redrawn too often."""
    return UserError(
        f"no partition among {clients} clients found in {ATTEMPTS} draws ({what}); use fewer clients or a larger alpha"
    )


def drawn(data_seed: int | None, seed: int) -> int:
    """The seed of a record that may have its own."""
    return seed if data_seed is None else data_seed


def by_class(labels: Labels) -> dict[int, Indices]:
    """The positions of each class that occurs, both ascending."""
    return {int(c): np.flatnonzero(labels == c).astype(np.int64, copy=False) for c in np.unique(labels)}


def pick(row: list[float], u: float) -> int:
    """The class k with row[k - 1] <= u * row[-1] < row[k]; row: cumulative masses, u: uniform on [0, 1)."""
    return min(bisect_right(row, u * row[-1]), bisect_left(row, row[-1]))


def cut(indices: Indices, shares: Floats) -> list[Indices]:
    """`indices` in consecutive pieces at floor(cumulative share * length); the last piece takes the rest."""
    return np.split(indices, (np.cumsum(shares) * len(indices)).astype(np.int64)[:-1])


def evenly(
    labels: Labels, owners: Mapping[int, Sequence[int]], clients: int, rng: np.random.Generator
) -> list[Indices]:
    """Share each class out among its owners, in shuffled order and in pieces whose sizes differ by at most 1.

    `owners` maps a class to its clients, the first of which take the surplus samples; a class without owners is unused.
    """
    pieces: list[list[Indices]] = [[] for _ in range(clients)]
    groups = by_class(labels)
    for label, holders in owners.items():
        if holders:
            shares = np.array_split(rng.permutation(groups[label]), len(holders))
            for client, piece in zip(holders, shares, strict=True):
                pieces[client].append(piece)
    return joined(pieces)


def joined(pieces: Sequence[Sequence[Indices]]) -> list[Indices]:
    """Each client's pieces as one array."""
    return [np.concatenate([*p, np.empty(0, np.int64)]).astype(np.int64, copy=False) for p in pieces]
