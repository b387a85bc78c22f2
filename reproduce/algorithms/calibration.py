"""Equal step lengths: the rate at which an algorithm moves as far per round as FedAvg (FedACS, App. I.2); and
communication-aware FedAvg (Perazzone et al., INFOCOM 2022)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Floats, Names, Participants, RoundContext, State, objective, observe
from reproduce.declare.values import Count
from reproduce.engine.requests import Train, Trained


@dataclass(frozen=True)
class Calibration:
    """How an algorithm's step is scaled to the expected length of FedAvg's.

    when: "per_round" - by the steps and links of the round; "mean" - once, by their mean over `rounds` rounds.
    target: "local" - the clients' learning rate; "server" - the aggregate, which leaves the local drift as it is.
    """

    when: Literal["per_round", "mean"] = "per_round"
    target: Literal["local", "server"] = "local"
    rounds: Count = 1000


@dataclass(frozen=True)
class Calibrated(FedAvg):
    """Base of the algorithms whose expected step length differs from FedAvg's; None leaves the rate as it is."""

    memory: ClassVar[tuple[str, ...]] = ("calibration",)
    names: ClassVar[Names] = {}

    calibration: Calibration | None = None

    def step_length(self, env: Env, now: RoundContext) -> float:
        """Expected length of the server step per unit of the local rate, along the weighted mean gradient."""
        raise NotImplementedError

    def setup(self, env: Env, state: State) -> None:
        super().setup(env, state)
        if self.calibration and self.calibration.when == "mean":
            rounds = list(self._preview(env, self.calibration.rounds))
            length = sum(self.step_length(env, now) for now in rounds)
            state["calibration"] = sum(fedavg_length(env, now) for now in rounds) / length  # E[l_FedAvg] / E[l]

    def _preview(self, env: Env, rounds: int) -> Iterator[RoundContext]:
        nothing = np.zeros(env.clients, dtype=np.int64)
        return (observe(env, self, r, nothing) for r in range(rounds))

    def factors(self, env: Env, state: State, now: RoundContext) -> tuple[float, float]:
        """What to multiply the local and the server's rate by."""
        if self.calibration is None:
            return 1.0, 1.0
        mean = self.calibration.when == "mean"
        factor = state["calibration"] if mean else fedavg_length(env, now) / self.step_length(env, now)
        return (factor, 1.0) if self.calibration.target == "local" else (1.0, factor)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        request = super().local(env, state, now, cohort)
        return replace(request, lr=request.lr * self.factors(env, state, now)[0])  # eta l_FedAvg / l

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        rate = self.server_lr * self.factors(env, state, now)[1]
        state["x"] = state["x"] + rate * trained.sums[0]


def fedavg_length(env: Env, now: RoundContext) -> float:
    """sum w s A, the expected length of FedAvg's step per unit rate (eq. 111)."""
    return float((objective(env, now) * now.success * now.norm).sum())


def reliable_length(env: Env, now: RoundContext) -> float:
    """sum w A, that of an algorithm which makes up for lost updates (eqs. 113, 115)."""
    return float((objective(env, now) * now.norm).sum())


@dataclass(frozen=True)
class CAFedAvg(Calibrated):
    """X <- X + sum over received clients of weight_m U_m / (1 - q_m), FedACS eq. (113)."""

    names: ClassVar[Names] = {"ca_fedavg": {}}

    def message_weights(self, env: Env, now: RoundContext, cohort: Participants) -> Floats:
        return cohort.weight / now.success[cohort.ids]  # p_m / s_m, s_m = 1 - q_m [C]

    def step_length(self, env: Env, now: RoundContext) -> float:
        return reliable_length(env, now)
