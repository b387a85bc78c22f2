"""FedProx (Li et al., MLSys 2020): local steps are pulled towards the model that the round started from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduce.algorithms.base import FedAvg
from reproduce.declare.values import NonNegative
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class FedProx(FedAvg):
    """y <- y - lr (g(y) + mu (y - X)) in every local step, FedAvg otherwise."""

    mu: NonNegative = 0.1

    def rule(self) -> Rule:
        return replace(super().rule(), mu=self.mu)  # g(y) + mu (y - X) in every step
