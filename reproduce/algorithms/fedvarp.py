"""FedVARP (Jhunjhunwala et al., UAI 2022): the last update of a client stands in when the new one is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from reproduce.algorithms.base import Env, Participants, RoundContext, State, Tensor, objective
from reproduce.algorithms.fedacs import Calibrated, reliable_length
from reproduce.engine.requests import Trained


@dataclass(frozen=True)
class FedVARP(Calibrated):
    """Y_m is the last received update of client m, zero before the first; S are the sampled, R the received clients.

    "paper" (FedACS eq. 114):  X <- X + sum over R of weight_m U_m + sum over S without R of weight_m Y_m
    "original":                X <- X + sum_m w_m Y_m + mean over R of (U_m - Y_m); an empty R leaves only the first sum
    """

    memory: ClassVar[tuple[str, ...]] = ("last_updates",)
    per_client: ClassVar[int] = 1

    variant: Literal["paper", "original"] = "paper"

    def setup(self, env: Env, state: State) -> None:
        super().setup(env, state)
        state["last_updates"] = env.zeros(env.clients, env.parameters)

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None  # the server keeps every received update

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        memory, arrived = state["last_updates"], now.arrived[cohort.ids]
        received = cohort.ids[arrived]
        new = trained.updates[arrived]  # U_m of R [R, P]
        filled = memory.clone()  # Y_m, in R replaced by U_m [N, P]
        filled[received] = new
        if self.variant == "paper":
            step = env.tensor(cohort.weight) @ filled[cohort.ids]  # sum over S, eq. 114
        else:
            step = env.tensor(objective(env, now)) @ memory  # sum_m w_m Y_m
            if len(received):
                step = step + (new - memory[received]).mean(0)  # mean over R of U_m - Y_m
        state["x"] = state["x"] + self.server_lr * self.factors(env, state, now)[1] * step
        state["last_updates"] = filled

    def step_length(self, env: Env, now: RoundContext) -> float:
        return reliable_length(env, now)
