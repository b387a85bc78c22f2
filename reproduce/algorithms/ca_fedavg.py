"""Communication-aware FedAvg (Perazzone et al., INFOCOM 2022; FedACS eq. 113): reciprocal success probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reproduce.algorithms.base import Env, Floats, Names, Participants, RoundContext
from reproduce.algorithms.calibration import Calibrated, reliable_length


@dataclass(frozen=True)
class CAFedAvg(Calibrated):
    """X <- X + sum over received clients of weight_m U_m / (1 - q_m)."""

    names: ClassVar[Names] = {"ca_fedavg": {}}

    def message_weights(self, env: Env, now: RoundContext, cohort: Participants) -> Floats:
        return cohort.weight / now.success[cohort.ids]  # p_m / s_m, s_m = 1 - q_m [C]

    def step_length(self, env: Env, now: RoundContext) -> float:
        return reliable_length(env, now)
