"""Lossy uplinks: with which probability a client's update is lost, and whose update arrives in a round.

The downlink is perfect and a lost update is not sent again (FedACS, Sec. 2). Clients and rounds are counted from 0.
Everything random depends on (seed, round, client) only, so that all algorithms meet the same losses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reproduce.declare.values import Probability
from reproduce.streams import per_client, rng

Pairing = Literal["same", "reverse", "random"]
Interval = tuple[Probability, Probability]


class Link(ABC):
    """Base of the links."""

    @abstractmethod
    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        """Probability q_m that the update of client m is lost in `round`: float64, shape (clients,), in [0, 1]."""

    def arrived(self, seed: int, round: int, clients: int) -> np.ndarray:
        """Marks the clients whose update would arrive in `round`: bool, shape (clients,).

        One draw per client and round, whether or not, and however often, the client was sampled: u_m >= q_m.
        """
        return per_client(clients, "link", seed, round) >= self.failure(seed, round, clients)


@dataclass(frozen=True)
class Reliable(Link):
    """Nothing is lost."""

    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        return np.zeros(clients)


@dataclass(frozen=True)
class Same(Link):
    """The same loss probability `q` for all clients; FedACS Fig. 4 (left): 0.2."""

    q: Probability

    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        return np.full(clients, float(self.q))


@dataclass(frozen=True)
class PerClient(Link):
    """A given loss probability for every client; asking for another number of clients is an error."""

    q: tuple[Probability, ...]

    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        if clients != len(self.q):
            raise ValueError(f"loss probabilities are given for {len(self.q)} clients, not for {clients}")
        return np.array(self.q, dtype=float)


@dataclass(frozen=True)
class StaticLink(Link):
    """Success probabilities `success + step * m`, the same in all rounds.

    The defaults are the static system of FedACS (App. I.3.1): 0.60, 0.62, ..., 0.98 for 20 clients; its Fig. 4 (middle)
    is StaticLink(0.70, 0.01), i.e. q_m = 0.30 - 0.01 m. The paper does not say which client has which link. `pairing`:
    "same" - client m has the m-th, so that slow clients have bad links; "reverse" - the m-th from the end; "random" - a
    permutation drawn once per seed.
    """

    success: float = 0.60
    step: float = 0.02
    pairing: Pairing = "same"

    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        position = np.arange(clients)
        if self.pairing == "reverse":
            position = position[::-1]
        elif self.pairing == "random":
            position = rng("link pairing", seed).permutation(clients)
        q: np.ndarray = np.round(1.0 - (self.success + self.step * position), 12)
        if q.min() < 0 or q.max() > 1:
            raise ValueError(f"{self} is no probability for all of {clients} clients")
        return q


@dataclass(frozen=True)
class Halves(Link):
    """Fresh loss probabilities in every round, uniform on another interval for each half of the clients.

    With an odd number of clients the second half is the larger. The defaults are the dynamic system of FedACS (App.
    I.3.1): U(0.4, 0.5) for clients 0..M/2-1 and U(0, 0.1) for the others; its Fig. 4 (right): (0.2, 0.4) and (0, 0.2).
    """

    first: Interval = (0.4, 0.5)
    second: Interval = (0.0, 0.1)

    def failure(self, seed: int, round: int, clients: int) -> np.ndarray:
        bad = np.arange(clients) < clients // 2
        low = np.where(bad, self.first[0], self.second[0])
        high = np.where(bad, self.first[1], self.second[1])
        q: np.ndarray = low + (high - low) * per_client(clients, "link quality", seed, round)
        return q
