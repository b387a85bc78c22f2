"""How large a part of the model each client can hold: its capacity, a share of the parameters in (0, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Share


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
