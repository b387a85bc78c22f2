"""HeteroFL (Diao et al., ICLR 2021) and FedRolex (Alam et al., NeurIPS 2022): narrower networks for weaker clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.algorithms.base import Now, Participants, Play, State
from reproduce.algorithms.submodels import Submodels, partial_average
from reproduce.engine.requests import Evaluate, Request
from reproduce.problems.submodels import positions

if TYPE_CHECKING:
    from torch import Tensor

    from reproduce.engine.task import Env


@dataclass(frozen=True)
class HeteroFL(Submodels):
    """A client of capacity gamma trains the first ceil(sqrt(gamma) c) of the c channels of every layer, which is about
    the share gamma of the parameters; the server averages every coordinate over the clients that hold it.

    rolling: the kept channels move on by one in every round, cyclically (FedRolex, Algorithm 1). FedRolex does not say
        which submodel of a size is meant when one is evaluated; here the one of the last trained round.
    """

    rolling: bool = False

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        problem.model.narrowed(math.sqrt(min(system.capacity.sizes)))

    def part(self, env: Env, size: float, round: int) -> tuple[Any, Any]:
        """The narrower model of a size in a round, and where its parameters are in the whole; (None, all) for size 1.

        The narrower network divides the outputs of its convolutions by sqrt(gamma) (the scaler of HeteroFL).
        """
        if size == 1:
            return None, slice(None)
        whole: Any = env.task.problem.model
        model = whole.narrowed(math.sqrt(size))
        return model, positions(whole.shapes, model.shapes, round if self.rolling else 0)

    def round(self, env: Env, state: State, now: Now) -> Play:
        cohort = self.choose(env, now, None)
        gamma = self.capacity(env)[cohort.ids]
        requests: list[Request] = []
        places = []
        for size in np.unique(gamma)[::-1].tolist():
            ids = cohort.ids[gamma == size]
            model, place = self.part(env, size, now.round)
            request = self.local(env, state, now, Participants(ids, np.ones(len(ids))))
            requests.append(replace(request, model=model, start=state["x"][place]))
            places.append((place, int(now.arrived[ids].sum())))
        answers = yield requests
        total, count = env.zeros(env.parameters), env.zeros(env.parameters)
        for (place, heard), trained in zip(places, answers, strict=True):
            total[place] += trained.update[0]
            count[place] += heard
        state["x"] = partial_average(state["x"], total, count, self.server_lr)
        state["work"] += env.processed(cohort.ids, now.steps[cohort.ids])

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        found: list[Tensor | Evaluate] = []
        for size in sizes:
            model, place = self.part(env, size, max(state["round"] - 1, 0))
            found.append(state["x"] if model is None else Evaluate(state["x"][place][None], model=model))
        return found
