"""FedLin (Mitra et al., NeurIPS 2021): local steps along the gradient of the global objective, as seen from X."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, Tensor
from reproduce.engine.requests import Gradient, Request, Train


@dataclass
class Measured(Participants):
    """A cohort whose mean gradients [C, P] at the server model are known."""

    gradients: Tensor | None = None


@dataclass(frozen=True)
class FedLin(FedAvg):
    """y <- y - lr_m (g(y) - grad F_m(X) + sum over the cohort of weight_m grad F_m(X)), lr_m = lr * mean(K) / K_m.

    The rate divides by the client's steps as in the paper; the mean of the cohort's steps, weighted, makes `lr` mean
    the same as in the other algorithms. Nothing is sparsified.
    """

    def probe(self, env: Env, state: State, now: RoundContext) -> Generator[Request, Any, Any]:
        return (yield Gradient(now.members, state["x"], now.round))

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        return measured(super().choose(env, now, probe), now, probe)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        assert isinstance(cohort, Measured)
        assert cohort.gradients is not None
        request = super().local(env, state, now, cohort)
        mean = env.tensor(cohort.weight) @ cohort.gradients  # [C] @ [C, P]: the cohort's gradient at X
        # eta_m = eta mean(K) / K_m [C]; a client without samples has 0 steps
        scale = (cohort.weight * request.steps).sum() / np.maximum(request.steps, 1)
        return replace(request, lr=request.lr * scale, correction=mean - cohort.gradients)


def measured(cohort: Participants, now: RoundContext, gradients: Tensor | None) -> Measured:
    """The cohort with its rows of the members' gradients."""
    rows = None if gradients is None else gradients[np.searchsorted(now.members, cohort.ids)]
    return Measured(cohort.ids, cohort.weight, rows)
