"""FedAvg with a step that shrinks (FedACS, Fig. 4: `decay SGD`, which can be read in two ways).

The other local solvers of that figure are numbers of algorithms that exist: FedProx(mu), FedAvg(momentum).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reproduce.algorithms.base import Env, FedAvg, Names, RoundContext
from reproduce.declare.values import Fraction
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class DecayFedAvg(FedAvg):
    """FedAvg whose local step number k = 0, 1, ... has the rate lr (1 - decay)^k, from lr again in every round."""

    names: ClassVar[Names] = {"decay": {}}

    decay: Fraction = 0.005

    def rule(self) -> Rule:
        return replace(super().rule(), decay=self.decay)


@dataclass(frozen=True)
class FadingFedAvg(FedAvg):
    """FedAvg whose rate in round r = 0, 1, ... is lr (1 - decay)^r: the other reading of a decay rate."""

    names: ClassVar[Names] = {"fading": {}}

    decay: Fraction = 0.005

    def learning_rate(self, env: Env, now: RoundContext) -> float:
        return super().learning_rate(env, now) * (1 - self.decay) ** now.round
