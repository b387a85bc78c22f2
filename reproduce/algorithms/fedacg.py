"""FedACG: the server sends a model that looks ahead along its momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, Tensor
from reproduce.declare.values import NonNegative
from reproduce.engine.requests import Train, Trained
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class FedACG(FedAvg):
    """m <- lam m + sum p_k U_k;  X <- X + m;  clients start from X + lam m (Kim et al., CVPR 2024, Algorithm 1).

    beta: strength of the local pull towards that start. lam = beta = 0 is FedAvg.
    with_statistics: running statistics of the model look ahead and have a momentum like parameters, which can make
        variances negative (the code of arXiv 2410.05662); otherwise they are averaged, and that is all.
    """

    memory: ClassVar[tuple[str, ...]] = ("m",)

    lam: NonNegative = 0.85
    beta: NonNegative = 0.01
    with_statistics: bool = False

    @property
    def averages_statistics(self) -> bool:  # type: ignore[override]
        return not self.with_statistics

    def setup(self, env: Env, state: State) -> None:
        state["m"] = env.zeros(env.parameters)

    def rule(self) -> Rule:
        return replace(super().rule(), mu=self.beta)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        # y_0 = X + lam m [P]
        return replace(super().local(env, state, now, cohort), start=state["x"] + self.carried(env, state))

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        state["m"] = self.carried(env, state) + trained.sums[0]  # m <- lam m + sum_k p_k U_k [P]
        state["x"] = state["x"] + self.server_lr * state["m"]  # X <- X + m

    def carried(self, env: Env, state: State) -> Tensor:
        """lam m [P], with or without the running statistics."""
        momentum: Tensor = self.lam * state["m"]
        return momentum if self.with_statistics else env.only_trained(momentum)
