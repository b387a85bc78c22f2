"""Sessions whose fingerprints are taken at another rate: a choice of dynamic_init."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reproduce.algorithms.base import Env, FedAvg, RoundContext
from reproduce.clocks.sessions import Sessions
from reproduce.declare.values import Positive

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class OtherFingerprints(Sessions):
    """A fingerprint is taken with `share` of the first rate, which is a half in `Sessions`."""

    share: Positive = 1.0

    def _now(
        self, env: Env, algorithm: FedAvg, session: int, round: int, lr: float, steps_done: np.ndarray
    ) -> RoundContext:
        beyond = round >= self.sessions * self.rounds  # those of fingerprints
        return super()._now(env, algorithm, session, round, self.share * algorithm.lr if beyond else lr, steps_done)
