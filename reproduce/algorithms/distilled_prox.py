"""Distillation beside FedProx: the baseline "Continuous" of dynamic_init, read as an addition to an algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reproduce.algorithms.base import Names
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.fedprox import FedProx


@dataclass(frozen=True)
class DistilledFedProx(FedProx, Distillation):
    """y <- y - lr (g(y) + kappa d(y) + mu (y - X)), d the gradient of `Distillation`'s second term."""

    names: ClassVar[Names] = {}  # of no benchmark: a choice of dynamic_init
