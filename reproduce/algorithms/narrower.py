"""Submodels that are smaller dense networks: HeteroFL (Diao et al., ICLR 2021), FedRolex (Alam et al., NeurIPS 2022),
FjORD (Horvath et al., NeurIPS 2021) and ScaleFL (Ilhan et al., CVPR 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from reproduce.algorithms.base import Env, Names, Participants, Play, RoundContext, State, Tensor
from reproduce.algorithms.submodels import Submodels, partial_average
from reproduce.declare.values import Count, Ints, NonNegative, Positive, Share, Whole
from reproduce.engine.requests import Evaluate, Request
from reproduce.engine.rule import Exits, OrderedDropout, Rule

if TYPE_CHECKING:
    from reproduce.models.model import Model
    from reproduce.modules.graph import Shapes


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
        for (place, received), trained in zip(places, answers, strict=True):
            total[place] += trained.sums[0]  # sum of the updates of this size, at its coordinates
            count[place] += received  # how many hold each coordinate
        self.watch(env, state, now, cohort)
        state["x"] = partial_average(state["x"], total, count, self.server_lr)
        state["work"] += env.processed(cohort.ids, now.steps[cohort.ids])

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        models: list[Tensor | Evaluate] = []
        for size in sizes:
            model, place = self.part(env, size, max(state["round"] - 1, 0))
            models.append(state["x"] if model is None else Evaluate(state["x"][place][None], model=model))
        return models

    def holds(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor]:
        masks = []
        for size in sizes:
            mask = env.zeros(env.parameters).bool()
            mask[self.part(env, size, state["round"])[1]] = True
            masks.append(mask)
        return masks


def positions(whole: Shapes, part: Shapes, offset: int = 0) -> Ints:
    """Positions [P_part] in the whole model's vector of the parameters of `part`, in the order of `part`.

    `part` has the same parameters, or some of them, with shorter axes. An axis of length c cut to k < c keeps the
    indices offset, offset + 1, ..., offset + k - 1 modulo c; an axis that is not cut (classes, image channels) stays in
    order. All axes of one length are cut alike, so that a layer's inputs are the outputs of the layer before.
    """
    start, pieces = 0, []
    for name, shape in whole.items():
        if name in part:
            axes = [(np.arange(k) + (offset if k < c else 0)) % c for c, k in zip(shape, part[name], strict=True)]
            pieces.append(start + np.ravel_multi_index(np.ix_(*axes), shape).ravel())
        start += math.prod(shape)
    return np.concatenate(pieces)


@dataclass(frozen=True)
class HeteroFL(Narrower):
    """A client of capacity gamma trains the first ceil(sqrt(gamma) c) of the c channels of every layer, which is about
    the share gamma of the parameters; outputs of convolutions are divided by sqrt(gamma) (the scaler of HeteroFL).

    rolling: the kept channels move on by one in every round, cyclically (FedRolex, Algorithm 1). FedRolex does not say
        which submodel of a size is meant when one is evaluated; here the one of the last trained round.
    """

    names: ClassVar[Names] = {"heterofl": {}, "fedrolex": {"rolling": True}}

    rolling: bool = False

    def network(self, whole: Model, size: float) -> Model:
        return whole if size == 1 else whole.narrowed(math.sqrt(size))

    def offset(self, round: int) -> int:
        return round if self.rolling else 0


@dataclass(frozen=True)
class FjORD(Narrower):
    """A client of capacity gamma trains the first ceil(sqrt(gamma) c) of the c channels of every layer.

    In every step it also draws one of the clients' sizes up to its own. The network of that size learns from the
    softmax of the client's network, with weight and temperature 1, on the same batch.
    """

    def network(self, whole: Model, size: float) -> Model:
        return whole if size == 1 else whole.narrowed(math.sqrt(size), scale=False)

    def inner(self, whole: Model, sizes: Sequence[float], size: float, round: int) -> Rule:
        models = tuple(self.network(whole, s) for s in sorted(sizes) if s <= size)
        return replace(self.rule(), inner=OrderedDropout(models))


@dataclass(frozen=True)
class ScaleFL(Narrower):
    """A client of capacity gamma trains the network up to one of its exits, with a share of the channels, by the loss
    of all exits that it has; what it predicts are the logits of its last.

    levels: (size, exits kept, share of the channels), for every size that clients have. Another size that is evaluated
        has the exit of the next larger level, of width w, and the width w sqrt(size / that level's size).
    distill, temperature: of `Exits`; the distillation begins in round `from_round`, counted from 0.
    """

    trains_exits: ClassVar[bool] = True

    levels: tuple[tuple[Share, Count, Share], ...] = ()
    distill: NonNegative = 0.05
    temperature: Positive = 3.0
    from_round: Whole = 0

    def check(self, problem: Any, system: Any) -> None:
        if problem.model is not None and not problem.model.exits:
            raise ValueError(f"ScaleFL needs a network with exits, and a {type(problem.model).__name__} has none")
        super().check(problem, system)
        unknown = set(system.capacity.sizes) - {size for size, _, _ in self.levels}
        if unknown:
            raise ValueError(f"ScaleFL has no level for clients of size {', '.join(map(str, sorted(unknown)))}")

    def network(self, whole: Model, size: float) -> Model:
        fitting = [level for level in self.levels if level[0] >= size]
        if not fitting:
            raise ValueError(f"ScaleFL has no level of size {size} or more")
        known, exits, width = min(fitting)
        return whole.cut(exits, width * math.sqrt(size / known))

    def inner(self, whole: Model, sizes: Sequence[float], size: float, round: int) -> Rule:
        distill = self.distill if round >= self.from_round else 0.0
        return replace(self.rule(), inner=Exits(distill, self.temperature))
