"""FedACS (Weng et al., arXiv 2505.11304): sampling that makes up for lost updates and unequal local work.

With it CA-FedAvg (Perazzone et al., INFOCOM 2022); equal step lengths, the rate at which an algorithm moves as far per
round as FedAvg (App. I.2); and a step that shrinks (Fig. 4: `decay SGD`, which can be read in two ways).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Names, Participants, RoundContext, State, objective, observe
from reproduce.declare.values import Count, Floats, Fraction
from reproduce.engine.requests import Train, Trained
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class Calibration:
    """The scaling of an algorithm's step to the expected length of FedAvg's.

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
        """The factors of the local and the server's learning rate."""
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


@dataclass(frozen=True)
class FedACS(Calibrated):
    """Clients are drawn from p_m ~ w_m / (s_m A_m) (eq. 15); what arrives is summed and divided by the number of draws
    (Algorithm 1, eq. 3). The expected step is then along the gradient of the true objective (eq. 16).
    """

    draws: ClassVar[bool] = True

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        p = self._needs(env, now)  # p_m ~ w_m / (s_m A_m) [N], eq. 15
        return self.participation.draw(env, now, p / p.sum())

    def step_length(self, env: Env, now: RoundContext) -> float:
        """1 / sum_m w_m / (s_m A_m), eq. (112)."""
        return float(1 / self._needs(env, now).sum())

    def _needs(self, env: Env, now: RoundContext) -> Floats:
        w, reach = objective(env, now)[now.members], (now.success * now.norm)[now.members]
        reach = np.where(w > 0, reach, 1.0)  # who has no samples is never drawn
        if (reach <= 0).any():
            raise ValueError("FedACS needs clients that do at least one step and are heard with positive probability")
        needs = np.zeros(env.clients)
        needs[now.members] = w / reach  # w_m / (s_m A_m)
        return needs


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
