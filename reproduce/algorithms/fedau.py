"""FedAU (Wang & Ji, ICLR 2024): weights from the observed intervals between a client's participations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, objective
from reproduce.declare.values import Count
from reproduce.engine.requests import Train, Trained


@dataclass(frozen=True)
class FedAU(FedAvg):
    """X <- X + sum over received clients of w_m W_m U_m; W_m is the mean of the client's closed intervals, 1 at first.

    A client takes part in a round if it was sampled and its update arrived, however often it was drawn. An interval
    ends with the round of a participation, or is cut off when it is `cutoff` rounds long.
    """

    memory: ClassVar[tuple[str, ...]] = ("waited", "interval_sum", "intervals")

    cutoff: Count = 50

    def setup(self, env: Env, state: State) -> None:
        super().setup(env, state)
        state.update({name: np.zeros(env.clients) for name in ("waited", "interval_sum", "intervals")})

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        total, count = state["interval_sum"], state["intervals"]
        mean = np.where(count > 0, total / np.maximum(count, 1), 1.0)  # W_m [N]
        weight = (objective(env, now) * mean * now.arrived)[cohort.ids]  # w_m W_m [C], 0 where the update is lost
        return replace(super().local(env, state, now, cohort), weights=env.tensor(weight[None, :]))

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        super().aggregate(env, state, now, cohort, trained)
        received = np.zeros(env.clients, dtype=bool)
        received[cohort.ids] = now.arrived[cohort.ids]
        waited = state["waited"] + 1
        closed = received | (waited >= self.cutoff)
        state["interval_sum"] = state["interval_sum"] + np.where(closed, waited, 0.0)
        state["intervals"] = state["intervals"] + closed
        state["waited"] = np.where(closed, 0.0, waited)
