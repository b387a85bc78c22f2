"""Partitions by amount alone: samples are IID, and clients have unequal numbers of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Indices, Labels, NonNegative, Whole
from reproduce.partitions.base import ATTEMPTS, TRAIN, Prior, cut, impossible, stream


@dataclass(frozen=True)
class DirichletSizes:
    """A random permutation cut by shares q ~ Dir(alpha 1_M) (quantity skew of NIID-Bench, Li et al., ICDE 2022).

    Redrawn until each client has at least `min_size` samples.
    """

    alpha: Prior
    min_size: Whole = 10

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        rng = stream(seed, TRAIN)
        order = rng.permutation(len(labels))
        for _ in range(ATTEMPTS):
            parts = cut(order, rng.dirichlet(np.full(clients, self.alpha)))
            if min(map(len, parts)) >= max(1, self.min_size):
                return parts
        raise impossible(f"DirichletSizes {self.alpha}, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class PowerLawSizes:
    """A random permutation cut by shares q_i proportional to i^(-exponent), i = 1 .. M; 0 gives equal ones."""

    exponent: NonNegative = 1.0

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        shares = np.arange(1, clients + 1) ** -float(self.exponent)
        return cut(stream(seed, TRAIN).permutation(len(labels)), shares / shares.sum())
