"""Submodels that are smaller dense networks: what HeteroFL, FedRolex, FjORD and ScaleFL have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from reproduce.algorithms.base import Env, Names, Participants, Play, RoundContext, State, Tensor
from reproduce.algorithms.submodels import Submodels, partial_average
from reproduce.engine.requests import Evaluate, Request
from reproduce.engine.rule import Rule
from reproduce.models.submodels import positions

if TYPE_CHECKING:
    from reproduce.models.model import Model


@dataclass(frozen=True)
class Narrower(Submodels):
    """Clients of a size train one network, whose parameters are some of the whole's; the server averages every
    coordinate over the clients that hold it. Subclasses give `network` and, if the local rule is theirs, `inner`."""

    names: ClassVar[Names] = {}

    def network(self, whole: Model, size: float) -> Model:
        """The network of a size, its parameters named as in `whole`, which is that of size 1; ValueError if none is."""
        raise NotImplementedError

    def inner(self, whole: Model, sizes: Sequence[float], size: float, round: int) -> Rule:
        """The local rule of the clients of a size; sizes: of all clients."""
        return self.rule()

    def offset(self, round: int) -> int:
        """The first channel that is kept in a round."""
        return 0

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        for size in (*system.capacity.sizes, *self.sweep):
            self.network(problem.model, size)

    def part(self, env: Env, size: float, round: int) -> tuple[Any, Any]:
        """The network of a size and where its parameters are in the whole; (None, all) if it is the whole."""
        whole: Any = env.split.problem.model
        model = self.network(whole, size)
        if model == whole:
            return None, slice(None)
        return model, positions(whole.axes, model.axes, self.offset(round))

    def round(self, env: Env, state: State, now: RoundContext) -> Play:
        cohort = self.choose(env, now, None)
        gamma = self.capacity(env)[cohort.ids]
        whole: Any = env.split.problem.model
        requests: list[Request] = []
        places = []
        for size in np.unique(gamma)[::-1].tolist():
            ids = cohort.ids[gamma == size]
            model, place = self.part(env, size, now.round)
            request = self.local(env, state, now, Participants(ids, np.ones(len(ids))))
            rule = self.inner(whole, env.system.capacity.sizes, size, now.round)
            requests.append(replace(request, model=model, start=state["x"][place], rule=rule))
            places.append((place, int(now.arrived[ids].sum())))
        answers = yield requests
        total, count = env.zeros(env.parameters), env.zeros(env.parameters)
        for (place, heard), trained in zip(places, answers, strict=True):
            total[place] += trained.sums[0]  # sum of the updates of this size, at its coordinates
            count[place] += heard  # how many hold each coordinate
        self.watch(env, state, now, cohort)
        state["x"] = partial_average(state["x"], total, count, self.server_lr)
        state["work"] += env.processed(cohort.ids, now.steps[cohort.ids])

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        found: list[Tensor | Evaluate] = []
        for size in sizes:
            model, place = self.part(env, size, max(state["round"] - 1, 0))
            found.append(state["x"] if model is None else Evaluate(state["x"][place][None], model=model))
        return found

    def holds(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor]:
        masks = []
        for size in sizes:
            mask = env.zeros(env.parameters).bool()
            mask[self.part(env, size, state["round"])[1]] = True
            masks.append(mask)
        return masks
