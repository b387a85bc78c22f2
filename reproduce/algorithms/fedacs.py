"""FedACS (Weng et al., arXiv 2505.11304): sampling that makes up for lost updates and unequal local work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.base import Env, Floats, Participants, RoundContext, objective
from reproduce.algorithms.calibration import Calibrated


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
