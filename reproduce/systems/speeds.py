"""The clients' pace: seconds of a local step and of a transfer, and how the speeds differ (DeFedAvg, Sec. 4.1.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from reproduce.declare.values import Bounds

SPEED_STREAM = 11  # numpy.random.default_rng([seed, SPEED_STREAM]); 12 is the sampling of clients
LONGEST = 1e12
"""Seconds, 32,000 years, beyond which a duration is a slip; slow-down factors have the same bound."""
Seconds = Annotated[float, Bounds(0, LONGEST)]
Factor = Annotated[float, Bounds(1 / LONGEST, LONGEST)]


class Speeds(ABC):
    """Base of the rules for the clients' slow-down factors, which stay the same during a run."""

    @abstractmethod
    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        """Factor s_m by which client m's steps take longer than `Pace.step`: float64, shape (clients,), > 0."""


@dataclass(frozen=True)
class UniformSlowdown(Speeds):
    """Drawn once per client and seed from numpy.random.default_rng([seed, 11]).uniform(low, high).

    The paper says that "computation speeds" are uniform on [1, 5]. `model` "slowdown" takes the number as the slow-down
    factor, which its times support; "rate" takes it literally, as the speed v with high <-> the fastest: s = high / v.
    """

    low: Factor = 1.0
    high: Factor = 5.0
    model: Literal["slowdown", "rate"] = "slowdown"

    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        drawn = np.random.default_rng([seed, SPEED_STREAM]).uniform(self.low, self.high, clients)
        return drawn if self.model == "slowdown" else self.high / drawn


@dataclass(frozen=True)
class Explicit(Speeds):
    """Given slow-down factors; asking for another number of clients is an error."""

    values: tuple[Factor, ...]

    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        if clients != len(self.values):
            raise ValueError(f"slow-down factors are given for {len(self.values)} clients, not for {clients}")
        return np.array(self.values, dtype=float)


@dataclass(frozen=True)
class Pace:
    """Virtual seconds: `step` per local step of a client with slow-down 1, `upload` and `download` per model sent.

    Transfers of different clients do not disturb each other; aggregating, sampling and evaluating take no time.
    """

    step: Seconds
    upload: Seconds
    download: Seconds
    speeds: Speeds = field(default_factory=UniformSlowdown)

    def __post_init__(self) -> None:
        if not (self.step or self.upload or self.download):
            raise ValueError("a step and transfers cannot all take no time")

    def step_seconds(self, seed: int, clients: int) -> np.ndarray:
        """Seconds of a step of every client: float64, shape (clients,)."""
        return self.speeds.slowdowns(seed, clients) * self.step


def paper_pace(flop: float, size: float) -> Pace:
    """`flop` operations per step at 10 GFLOP/s for the fastest client; a model of `size` bytes over 400 Mbit/s."""
    seconds = size * 8 / 400e6
    return Pace(step=flop / 1e10, upload=seconds, download=seconds)


FASHION_MNIST = paper_pace(17.0e6, 2.2e6)  # 1.70 ms per step, 44.0 ms per transfer
CIFAR10 = paper_pace(31.4e6, 3.53e6)  # 3.14 ms per step, 70.6 ms per transfer
