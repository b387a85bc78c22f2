"""FedAvg with a local step that shrinks during the round (FedACS, Fig. 4: `decay SGD`).

The other local solvers of that figure are numbers of algorithms that exist: FedProx(mu), FedAvg(momentum).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.rule import Rule


@dataclass(frozen=True)
class DecayFedAvg(FedAvg):
    """FedAvg whose local step number k = 0, 1, ... has the rate lr (1 - decay)^k, from lr again in every round."""

    decay: float = 0.005

    def rule(self) -> Rule:
        return replace(super().rule(), decay=self.decay)
