"""FedNova (Wang et al., NeurIPS 2020): every update is divided by the length of the local run that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext
from reproduce.declare.values import Floats


@dataclass(frozen=True)
class FedNova(FedAvg):
    """X <- X + tau_eff * sum over received clients of weight_m U_m / A_m.

    tau_eff, the effective number of local steps: "population" - sum w s A / sum w s over all members, known from the
    system (FedACS eq. 116b); "received" - the average of A over the received clients, weighted as in the cohort
    (as in the published code of FedNova). With full participation and perfect links both are sum w A.
    """

    effective_steps: Literal["population", "received"] = "population"

    def message_weights(self, env: Env, now: RoundContext, cohort: Participants) -> Floats:
        if self.effective_steps == "population":
            weight, norm = env.weights[now.members] * now.success[now.members], now.norm[now.members]
        else:
            weight, norm = cohort.weight * now.arrived[cohort.ids], now.norm[cohort.ids]
        total = weight.sum()
        # tau_eff = sum p A / sum p
        tau = (weight * norm).sum() / total if total > 0 else 0.0  # nothing was received: the server stays where it is
        norm = now.norm[cohort.ids]
        # p_m tau_eff / A_m [C]
        return cohort.weight * tau / np.where(norm > 0, norm, 1.0)  # a client without samples has nothing to send
