"""The number of local steps of each client in a round.

Amounts are in the record's `unit`: whole numbers >= 1 of "steps" (mini-batches), or "epochs" (passes over the client's
own data), of which there may be a part. Rounds and clients are counted from 0. The rules with a random draw per round
(FedACS) depend on (seed, round, client) only and are thus common to all algorithms; those of FedaGrac repeat the
published code, where no seed enters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import numpy as np

from reproduce.declare.values import MOST, Bounds, Count, NonNegative, Positive, Share
from reproduce.streams import per_client

Unit = Literal["steps", "epochs"]
Mode = Literal["fixed", "random"]
Range = tuple[Count, Count]


class Work(ABC):
    """Base of the rules; `unit` says what is counted."""

    unit: Unit

    @abstractmethod
    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        """Work of every client in `round`, shape (clients,): int64, all >= 1; epochs may be fractions, all > 0."""


@dataclass(frozen=True)
class Steps(Work):
    """`k` mini-batch steps for every client in every round."""

    k: Count
    unit = "steps"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        return np.full(clients, self.k, dtype=np.int64)


@dataclass(frozen=True)
class Epochs(Work):
    """`e` passes over the client's own data for every client in every round; of a part of a pass, what is begun of a
    batch counts."""

    e: Annotated[float, Bounds(above=0, most=MOST)]
    unit = "epochs"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        return np.full(clients, self.e)


@dataclass(frozen=True)
class PerClient(Work):
    """A given amount for every client, the same in all rounds; asking for another number of clients is an error."""

    values: tuple[Count, ...]
    unit: Unit = "steps"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        if clients != len(self.values):
            raise ValueError(f"work is given for {len(self.values)} clients, not for {clients}")
        return np.array(self.values, dtype=np.int64)


@dataclass(frozen=True)
class Linear(Work):
    """Client m does `first + step * m`, the same in all rounds.

    Static system of FedACS (App. I.3.1): Linear(1, 2), i.e. 1, 3, ..., 39 for 20 clients; its Fig. 4 (middle): (1, 1).
    """

    first: Count = 1
    step: Annotated[int, Bounds(-MOST, MOST)] = 2
    unit: Unit = "epochs"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        values = self.first + self.step * np.arange(clients, dtype=np.int64)
        if clients and values.min() < 1:
            raise ValueError(f"linear work {self.first} + {self.step} m falls below 1 for {clients} clients")
        return values


@dataclass(frozen=True)
class Halves(Work):
    """Fresh uniform draws in every round, from another range for each half of the clients.

    Both ends of a range belong to it; with an odd number of clients the second half is the larger. The defaults are the
    dynamic system of FedACS (App. I.3.1): clients 0..M/2-1 draw from {1, ..., 10}, the others from {20, ..., 30}.
    """

    first: Range = (1, 10)
    second: Range = (20, 30)
    unit: Unit = "epochs"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        slow = np.arange(clients) < clients // 2
        low = np.where(slow, self.first[0], self.second[0])
        high = np.where(slow, self.first[1], self.second[1])
        u = per_client(clients, "work", seed, round)
        values: np.ndarray = (low + np.floor(u * (high - low + 1))).astype(np.int64)
        return values


@dataclass(frozen=True)
class Gaussian(Work):
    """max(1, int(|x|)) steps with x ~ N(mean, variance): FedaGrac (Sec. 6), drawn as in its published code.

    `fixed`: one draw per client for the whole run; `random`: a new draw in every round from the client's own stream,
    whose first equals the fixed one. The streams are part of the published code: the run's seed does not enter.
    `variance` is a variance, not a standard deviation; 0 gives `mean` to all.
    """

    mean: Annotated[float, Bounds(1, MOST)]
    variance: NonNegative
    mode: Mode = "fixed"
    unit = "steps"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        if self.variance == 0:
            return np.full(clients, max(1, int(self.mean)), dtype=np.int64)
        x = _published("normal", self.mean, self.variance**0.5, clients, self.mode, round)
        return np.maximum(1, np.abs(x).astype(np.int64))


@dataclass(frozen=True)
class Uniform(Work):
    """Uniform on {low, ..., high}, drawn like `Gaussian` from the published streams of FedaGrac."""

    low: Count
    high: Count
    mode: Mode = "fixed"
    unit = "steps"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        return _published("randint", self.low, self.high + 1, clients, self.mode, round).astype(np.int64)


@dataclass(frozen=True)
class DeviceClasses(Work):
    """Slow devices and, as the last client, one fast one that works for as long (FedaGrac, Table 2).

    A slow device does `base` steps per round, the fast one the nearest whole number to utilisation * ratio * base, at
    least 1; `ratio` is how many times faster it takes a step (`DEVICE_RATIOS`) and `utilisation` in (0, 1] the share of
    the round that it may work.
    """

    base: Count = 10
    ratio: Positive = 100.0
    utilisation: Share = 1.0
    unit = "steps"

    def amounts(self, seed: int, round: int, clients: int) -> np.ndarray:
        values = np.full(clients, self.base, dtype=np.int64)
        # The nearest whole number, halves upwards (to within rounding errors of the product).
        values[-1:] = max(1, int(np.rint(self.utilisation * self.ratio * self.base + 1e-9)))
        return values


# Speed of an RTX 3080 Ti relative to each device of FedaGrac's Table 2. The paper gives none: `peak` is the ratio of
# peak arithmetic, `overhead` what remains when launching kernels dominates, `default` lies between.
DEVICES = ("rpi4", "jetson_nano", "gtx1080ti", "gtx2080ti")
DEVICE_RATIOS: dict[str, dict[str, float]] = {
    "default": dict(zip(DEVICES, (100.0, 30.0, 3.0, 2.5), strict=True)),
    "peak": dict(zip(DEVICES, (1000.0, 144.0, 3.0, 2.5), strict=True)),
    "overhead": dict(zip(DEVICES, (20.0, 6.0, 1.3, 1.1), strict=True)),
}


def _published(method: str, a: float, b: float, clients: int, mode: Mode, round: int) -> np.ndarray:
    """Values of `RandomState.<method>(a, b)` for every client in a round [clients]."""
    at = 0 if mode == "fixed" else round
    return _first(method, a, b, clients, 1 << at.bit_length())[:, at]  # a power of two: rounds share few arrays


@cache
def _first(method: str, a: float, b: float, clients: int, draws: int) -> np.ndarray:
    """The first draws of every client [clients, draws], as in FedaGrac's code: client i = 1, 2, ... has the legacy
    generator that is seeded by the first draw of seed 42 i."""
    seeds = [np.random.RandomState(42 * i).randint(12345) for i in range(1, clients + 1)]
    return np.array([getattr(np.random.RandomState(seed), method)(a, b, draws) for seed in seeds])
