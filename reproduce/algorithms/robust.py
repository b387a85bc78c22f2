"""Server rules that withstand clients which send anything, as long as these are few.

n clients of a round sent an update U_m [P]; each counts once, whatever its weight in the objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from reproduce.algorithms.base import Env, FedAvg, Names, Participants, RoundContext, State, Tensor
from reproduce.declare.values import Bounds
from reproduce.engine.requests import Trained

Half = Annotated[float, Bounds(0, 0.5)]


@dataclass(frozen=True)
class Robust(FedAvg):
    """X <- X + server_lr * A(U_1, ..., U_n); subclasses say what A is. If nothing was received the server stays."""

    names: ClassVar[Names] = {}

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        sends = now.arrived[cohort.ids] & (now.steps[cohort.ids] > 0)  # without data there is nothing to send
        if sends.any():
            state["x"] = state["x"] + self.server_lr * self.combined(env, trained.updates[sends])

    def combined(self, env: Env, updates: Tensor) -> Tensor:
        """A [P] of the updates [n, P]."""
        raise NotImplementedError


@dataclass(frozen=True)
class TrimmedMean(Robust):
    """A_j is the mean of the n coordinates j without the floor(trim n) least and as many of the greatest (Yin et al.,
    ICML 2018, Definition 2); with trim 0.5 the one or two in the middle are left, their median (Definition 1)."""

    names: ClassVar[Names] = {"trimmed_mean": {}, "median": {"trim": 0.5}}

    trim: Half = 0.2

    def combined(self, env: Env, updates: Tensor) -> Tensor:
        n = len(updates)
        cut = min(share_of(self.trim, n), (n - 1) // 2)
        return updates.sort(dim=0).values[cut : n - cut].mean(0)


@dataclass(frozen=True)
class Krum(Robust):
    """A is the update with the least score, the sum of its squared distances to the n - f - 2 nearest others; f =
    floor(share n) of the clients may attack (Blanchard et al., NeurIPS 2017). `multi`: the mean of the n - f best."""

    names: ClassVar[Names] = {"krum": {}, "multi_krum": {"multi": True}}

    share: Half = 0.2
    multi: bool = False

    def combined(self, env: Env, updates: Tensor) -> Tensor:
        import torch

        n, f = len(updates), share_of(self.share, len(updates))
        trained = updates.index_fill(1, env.statistics, 0.0)  # running statistics are no part of a distance
        distances = torch.cdist(trained, trained, compute_mode="donot_use_mm_for_euclid_dist").square()  # [n, n]
        nearest = distances.sort(dim=1).values[:, 1 : 1 + max(1, n - f - 2)]  # the first is the one to itself
        best = nearest.sum(1).argsort(stable=True)  # no numbers come last
        return updates[best[: n - f if self.multi else 1]].mean(0)


def share_of(share: float, n: int) -> int:
    """floor(share n), of which rounding takes no one away: 29 of 100 for 0.29."""
    return int(share * n + 1e-9)
