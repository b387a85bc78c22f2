"""Algorithms and a clock that are choices of dynamic_init: "Continuous" read as an addition to an algorithm, and
fingerprints at another rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reproduce.algorithms.base import Env, FedAvg, RoundContext, State
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.moon import Distillation
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.clocks.sessions import Sessions
from reproduce.declare.values import Positive

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DistilledFedProx(FedProx, Distillation):
    """y <- y - lr (g(y) + kappa d(y) + mu (y - X)), d the gradient of `Distillation`'s second term."""


@dataclass(frozen=True)
class DistilledScaffold(ScaffoldAsReleased, Distillation):
    """The server's step is SCAFFOLD's as released, the local loss that of `Distillation`."""


@dataclass(frozen=True)
class DistilledFedACG(FedACG, Distillation):
    """Clients start ahead of the model and are pulled there, and distil."""

    memory: ClassVar[tuple[str, ...]] = FedACG.memory + Distillation.memory

    def setup(self, env: Env, state: State) -> None:
        super().setup(env, state)
        Distillation.setup(self, env, state)


@dataclass(frozen=True)
class OtherFingerprints(Sessions):
    """A fingerprint is taken with `share` of the first rate, which is a half in `Sessions`."""

    share: Positive = 1.0

    def _now(
        self, env: Env, algorithm: FedAvg, session: int, round: int, lr: float, steps_done: np.ndarray
    ) -> RoundContext:
        beyond = round >= self.sessions * self.rounds  # those of fingerprints
        return super()._now(env, algorithm, session, round, self.share * algorithm.lr if beyond else lr, steps_done)
