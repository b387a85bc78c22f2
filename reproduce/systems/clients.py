"""The share of the model's parameters that each client can hold, in (0, 1], and the clients present in a session (all
its rounds). Sessions and clients count from 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Count, Share


class Capacity(ABC):
    """Base of the rules."""

    @abstractmethod
    def capacities(self, clients: int) -> np.ndarray:
        """Share of the model's parameters that each client holds: float64, shape (clients,), in (0, 1]."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[float, ...]:
        """The different capacities, largest first."""


@dataclass(frozen=True)
class FullCapacity(Capacity):
    """Every client holds the whole model."""

    def capacities(self, clients: int) -> np.ndarray:
        return np.ones(clients)

    @property
    def sizes(self) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True)
class SplitCapacity(Capacity):
    """Clients divided evenly over the given sizes, in index order from the largest (FIARSE, Sec. 5 and its code).

    `values` descend strictly, e.g. (1, 1/4, 1/16, 1/64): of 100 clients 0-24 hold all, 25-49 a quarter, and so on. If
    the clients cannot be divided evenly, group sizes differ by at most one.
    """

    values: tuple[Share, ...]

    def capacities(self, clients: int) -> np.ndarray:
        if clients < len(self.values):
            raise ValueError(f"{clients} clients cannot be divided over {len(self.values)} capacities")
        group = np.arange(clients) * len(self.values) // clients
        return np.array(self.values, dtype=float)[group]

    @property
    def sizes(self) -> tuple[float, ...]:
        return tuple(float(v) for v in self.values)


class Membership:
    """Groups of clients that take turns; subclasses say how many clients each has, and whose turn it is when.

    Clients are numbered group after group.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clients of each group."""
        raise NotImplementedError

    @property
    def turns(self) -> tuple[int, ...]:
        """The groups in the order of their sessions; after the last turn the first one comes again."""
        return tuple(range(len(self.sizes)))

    @property
    def clients(self) -> int:
        """Number of clients in all groups together."""
        return sum(self.sizes)

    def group(self, session: int) -> int:
        """The group whose turn `session` is."""
        return self.turns[session % len(self.turns)]

    def members(self, session: int) -> np.ndarray:
        """Ids of the clients of `session`: int64, ascending."""
        group = self.group(session)
        first = sum(self.sizes[:group])
        return np.arange(first, first + self.sizes[group], dtype=np.int64)


@dataclass(frozen=True)
class Alternating(Membership):
    """`groups` groups of equally many clients: session s is the turn of group s mod `groups` (dynamic_init, Sec. 4)."""

    groups: Count
    clients_per_group: Count

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.clients_per_group,) * self.groups


@dataclass(frozen=True)
class Rotation(Membership):
    """Groups of different sizes; `order` says whose turn each session is, and starts again. Empty: 0, 1, 2, ...

    (20, 20, 20) in the order (0, 1, 0, 1, 0, 2) are two groups in turns, and a third in the last of six sessions.
    """

    clients_per_group: tuple[Count, ...]
    order: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.clients_per_group

    @property
    def turns(self) -> tuple[int, ...]:
        return self.order or super().turns
