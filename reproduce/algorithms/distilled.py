"""Distillation beside FedProx, SCAFFOLD as released and FedACG: the baseline "Continuous" of dynamic_init, read as an
addition to an algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reproduce.algorithms.base import Env, Names, State
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import ScaffoldAsReleased


@dataclass(frozen=True)
class DistilledFedProx(FedProx, Distillation):
    """y <- y - lr (g(y) + kappa d(y) + mu (y - X)), d the gradient of `Distillation`'s second term."""

    names: ClassVar[Names] = {}  # of no benchmark, like the next: choices of dynamic_init


@dataclass(frozen=True)
class DistilledScaffold(ScaffoldAsReleased, Distillation):
    """The server's step is SCAFFOLD's as released, the local loss that of `Distillation`."""

    names: ClassVar[Names] = {}


@dataclass(frozen=True)
class DistilledFedACG(FedACG, Distillation):
    """Clients start ahead of the model and are pulled there, and distil."""

    memory: ClassVar[tuple[str, ...]] = FedACG.memory + Distillation.memory
    names: ClassVar[Names] = {}

    def setup(self, env: Env, state: State) -> None:
        super().setup(env, state)
        Distillation.setup(self, env, state)
