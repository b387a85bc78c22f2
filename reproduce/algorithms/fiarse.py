"""FIARSE (Wu et al., NeurIPS 2024): submodels of the largest weights, with masks that are trained along.

Of the parameters those of convolutions and linear layers can be masked (`Model.maskable`); normalisation is held and
trained by all. A client of capacity gamma holds the coordinates with |x_j| >= theta, where theta is the k-th
largest magnitude, k = floor(gamma d) of the d maskable ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from reproduce.algorithms.base import Env, Names, Participants, RoundContext, State, Tensor
from reproduce.algorithms.submodels import Submodels, partial_average
from reproduce.declare.values import Ints
from reproduce.engine.requests import Evaluate, Train, Trained
from reproduce.engine.rule import Rule

Scope = Literal["model", "stage", "layer"] | tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class FIARSE(Submodels):
    """Algorithm 1: in every local step the mask is taken anew at the round's theta, the gradient follows eq. 3.

    scope: one theta for the whole "model", for each "stage" (stem, groups of blocks, classifier: the layer-wise
        variant of the published code), for each "layer", or for each shard: how the names of the parameters begin
        that share one (App. D.1).
    mask, amplify: "dynamic" with eq. 3 is FIARSE; "dynamic" without what the published code computes (its mask is
        boolean, so that the second term of eq. 3 is never differentiated); "frozen" without is pruning-greedy (Zhou
        et al., NeurIPS 2023): the mask stays what it was at the start of the round.
    count: who enters the average of a coordinate: the clients whose update is not "nonzero" there (Sec. 3 and the
        code), or those whose "mask" at the start of the round holds it (eq. 12).
    """

    names: ClassVar[Names] = {"fiarse": {}, "pruning_greedy": {"mask": "frozen", "amplify": False}}

    scope: Scope = "model"
    mask: Literal["dynamic", "frozen"] = "dynamic"
    amplify: bool = True
    count: Literal["nonzero", "mask"] = "nonzero"

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        if problem.model.buffers:
            raise ValueError("magnitude masks are not for models with running statistics")
        if isinstance(self.scope, tuple):
            known = tuple(begin for shard in self.scope for begin in shard)
            if lost := sorted(name for name in problem.model.maskable if not name.startswith(known)):
                raise ValueError(f"no shard of the thresholds has the stage '{lost[0].rsplit('.', 1)[0]}'")

    def rule(self) -> Rule:
        return replace(super().rule(), mask=self.mask, amplify=self.amplify)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        thetas = thresholds(env, state["x"], self.capacity(env)[cohort.ids].tolist(), self.scope)
        return replace(super().local(env, state, now, cohort), thresholds=thetas)

    def message_bytes(self, env: Env, request: Train) -> tuple[Ints, Ints]:
        assert request.thresholds is not None
        numbers = np.array([int(held(env, request.start, theta).sum()) for theta in request.thresholds])
        places = sum(where.stop - where.start for where in maskable(env).values())  # a bit each says which it holds
        values = numbers * env.zeros(1).element_size()
        return values + np.where(numbers < env.parameters, -(-places // 8), 0), values

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        self.watch(env, state, now, cohort)
        x, received = state["x"], now.arrived[cohort.ids]
        updates = trained.updates[received.nonzero()[0]]  # [received, P]
        if self.count == "nonzero":
            count = (updates != 0).sum(0)  # clients that trained a coordinate [P]
        else:
            count = env.zeros(env.parameters)
            for theta in thresholds(env, x, self.capacity(env)[cohort.ids[received]].tolist(), self.scope):
                count += held(env, x, theta)  # 1 where |x_j| >= theta_m, eq. 12
        state["x"] = partial_average(x, updates.sum(0), count, self.server_lr)

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        x = state["x"]
        return [x * held(env, x, theta) for theta in thresholds(env, x, sizes, self.scope)]

    def holds(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor]:
        x = state["x"]
        can = env.zeros(env.parameters).bool()
        for part in maskable(env).values():
            can[part] = True
        return [held(env, x, theta)[can] for theta in thresholds(env, x, sizes, self.scope)]


def group(parameter: str, scope: Scope) -> str:
    """Names of the parameters' thresholds; parameters with equal names share one."""
    if isinstance(scope, tuple):
        return next(shard[0] for shard in scope if parameter.startswith(shard))
    layer = parameter.rsplit(".", 1)[0]
    return {"model": "", "stage": layer.split(".")[0], "layer": layer}[scope]


def maskable(env: Env) -> dict[str, slice]:
    """Positions of the parameters that masks may leave out."""
    model: Any = env.split.problem.model
    return {name: env.blocks[name] for name in model.maskable}


def thresholds(env: Env, x: Tensor, sizes: Sequence[float], scope: Scope = "model") -> Tensor:
    """theta [len(sizes), parameter tensors] of submodels of x [P]; 0 where all is held (size 1, normalisation)."""
    import torch

    table = env.zeros(len(sizes), len(env.blocks))
    column = {name: i for i, name in enumerate(env.blocks)}
    groups: dict[str, list[str]] = {}
    where = maskable(env)
    for name in where:
        groups.setdefault(group(name, scope), []).append(name)
    for names in groups.values():
        magnitudes = torch.cat([x[where[name]] for name in names]).abs_().cpu().numpy()  # those of the group, d of them
        # theta = |x_(k)|, k = floor(gamma d), in |x_(1)| >= |x_(2)| >= ...
        rank = {size: max(1, int(size * len(magnitudes) + 1e-9)) for size in sizes if size < 1}
        for size, k in sorted(rank.items(), reverse=True):  # the k largest are among those of the size before
            magnitudes = np.partition(magnitudes, -k)[-k:]
            for row in (row for row, other in enumerate(sizes) if other == size):
                table[row, [column[n] for n in names]] = float(magnitudes[0])
    return table


def held(env: Env, x: Tensor, theta: Tensor) -> Tensor:
    """The mask |x_j| >= theta as booleans [P], for thresholds [parameter tensors]."""
    keep = x != x  # booleans of the right shape and place
    for where, t in zip(env.blocks.values(), theta, strict=True):
        keep[where] = x[where].abs() >= t
    return keep
