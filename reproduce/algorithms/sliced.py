"""Algorithms that know of no capacities, on clients that hold only a part of the model."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.algorithms.base import Env, FedAvg, Floats, Names, Now, Play, State, Tensor
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.engine.requests import Evaluate, Evaluated, Gradient, Ints, Request, Train, Trained
from reproduce.engine.rule import Rule
from reproduce.systems.capacity import FullCapacity

SLICES = HeteroFL()
"""What a client of a size holds, and how the sizes are judged."""


@dataclass(frozen=True)
class Sliced(FedAvg):
    """`algorithm` with clients that train HeteroFL's submodel of their size; the server does not notice.

    What the server sends (model, correction, anchor, teacher, previous model) is cut to the client's submodel. What a
    client reports (update, mean and first gradient, probed gradient) is filled up: a coordinate that it does not hold
    is taken to be what those that trained, were heard and hold it report in the mean, weighted as the server sums them
    up, equally where it asks for them one by one; 0 where nobody holds it. So a control variate never says of a client
    that its gradient is zero where it has none, and FedAvg with equal weights and no lost updates is HeteroFL.

    Evaluated is as with HeteroFL, size by size. The rates and who takes part are the algorithm's: `Sliced.of`.
    """

    names: ClassVar[Names] = {}
    trains_parts: ClassVar[bool] = True

    algorithm: FedAvg = field(default_factory=FedAvg)

    @classmethod
    def of(cls, algorithm: FedAvg) -> Sliced:
        """The algorithm in parts, with its own rates."""
        return cls(**common(algorithm), algorithm=algorithm)

    def __post_init__(self) -> None:
        if common(self) != common(self.algorithm):
            raise ValueError("Sliced has the rates of its algorithm, as Sliced.of gives it")
        if self.algorithm.trains_parts or isinstance(self.algorithm, Asynchronous):
            raise ValueError(f"{type(self.algorithm).__name__} is not for Sliced")

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        self.algorithm.check(problem, replace(system, capacity=FullCapacity()))
        SLICES.check(problem, system)

    def setup(self, env: Env, state: State) -> None:
        self.algorithm.setup(env, state)

    def fingerprinted(self, state: State, scratch: State) -> None:
        self.algorithm.fingerprinted(state, scratch)

    def rule(self) -> Rule:
        return self.algorithm.rule()

    def norms(self, steps: Ints, lr: float) -> Floats:
        return self.algorithm.norms(steps, lr)

    def round(self, env: Env, state: State, now: Now) -> Play:
        play, answer = self.algorithm.round(env, state, now), None
        while True:
            try:
                request = play.send(answer)
            except StopIteration:
                return
            if isinstance(request, list):
                answer = []
                for one in request:
                    answer.append((yield from sliced(env, one, now.arrived)))
            else:
                answer = yield from sliced(env, request, now.arrived)

    def models(self, env: Env, state: State) -> Mapping[str, Tensor | Evaluate]:
        return SLICES.models(env, state)

    def metrics(self, env: Env, state: State, answers: Mapping[str, Evaluated]) -> Iterator[tuple[str, str, float]]:
        return SLICES.metrics(env, state, answers)


def common(algorithm: FedAvg) -> dict[str, Any]:
    """The fields that every algorithm has, with its values."""
    return {f.name: getattr(algorithm, f.name) for f in fields(FedAvg)}


@dataclass(frozen=True)
class Slice:
    """Which rows of a request have a size: their network (None: the whole), where its parameters lie in the whole."""

    rows: Ints
    model: Any
    where: Any

    def cut(self, value: Any) -> Any:
        """What this slice gets of a field: [P], [C, P] or a number per client [C]; one number or None as it is."""
        if value is None or np.ndim(value) == 0:
            return value
        if isinstance(value, np.ndarray):
            return value[self.rows]
        return value[self.where] if value.dim() == 1 else value[self.rows][:, self.where]


def sliced(env: Env, request: Any, arrived: NDArray[np.bool_]) -> Generator[Any, Any, Any]:
    """The answer to a request of an algorithm's round, asked for size by size. arrived: of whom reports arrive, of all.

    Raises ValueError for a request that is of a part already.
    """
    if not isinstance(request, Train | Gradient):
        return (yield request)
    if request.model is not None or getattr(request, "thresholds", None) is not None:
        raise ValueError("an algorithm with submodels or masks of its own says so itself (`trains_parts`)")
    gamma = SLICES.capacity(env)[request.clients]
    slices = [Slice((gamma == size).nonzero()[0], *SLICES.part(env, size, 0)) for size in np.unique(gamma)[::-1]]
    answers = yield [_part(request, s) for s in slices]
    if isinstance(request, Gradient):
        return _filled(env, slices, answers, np.ones(len(gamma)))
    heard = ((np.asarray(request.steps) > 0) & arrived[request.clients]).astype(float)

    def rows(name: str) -> Any:
        found = [getattr(answer, name) for answer in answers]
        return None if found[0] is None else _filled(env, slices, found, heard)

    gradients = rows("mean_gradient"), rows("first_gradient")
    if request.weights is None:
        return Trained(rows("updates"), *gradients)
    sums = _summed(env, slices, [a.sums for a in answers], request.weights * env.tensor(heard))
    return Trained(sums, *gradients, summed=True)


CUT = ("start", "lr", "round", "offset", "correction", "anchor", "teacher", "previous")


def _part(request: Train | Gradient, s: Slice) -> Request:
    """What the clients of one size are asked for."""
    mine = request.clients[s.rows]
    if isinstance(request, Gradient):
        return replace(request, clients=mine, x=s.cut(request.x), model=s.model)
    values = {name: s.cut(getattr(request, name)) for name in CUT}
    weights = None if request.weights is None else request.weights[:, s.rows]
    return replace(request, clients=mine, steps=request.steps[s.rows], model=s.model, weights=weights, **values)


def _filled(env: Env, slices: list[Slice], parts: list[Tensor], heard: Floats) -> Tensor:
    """Reports [C, P] from those of the slices; what a client that is `heard` [C] does not hold is the holders' mean."""
    total, count = env.zeros(env.parameters), env.zeros(env.parameters)
    for s, part in zip(slices, parts, strict=True):
        total[s.where] += part[heard[s.rows].nonzero()[0]].sum(0)
        count[s.where] += float(heard[s.rows].sum())
    full = env.tensor(heard)[:, None] * (total / count.clamp(min=1))
    for s, part in zip(slices, parts, strict=True):
        mine = full[s.rows]
        mine[:, s.where] = part
        full[s.rows] = mine
    return full


def _summed(env: Env, slices: list[Slice], parts: list[Tensor], weights: Tensor) -> Tensor:
    """Weighted sums [M, P] from those of the slices, as if who does not hold a coordinate moved as the holders do."""
    total, share = env.zeros(len(weights), env.parameters), env.zeros(len(weights), env.parameters)
    for s, part in zip(slices, parts, strict=True):
        total[:, s.where] += part
        share[:, s.where] += weights[:, s.rows].sum(1, keepdim=True)
    held = env.zeros(env.parameters)
    for s in slices:
        held[s.where] += len(s.rows)
    # Where all hold a coordinate there is nothing to make up for, in no order of the sum.
    rest = weights.sum(1, keepdim=True) / share.where(share != 0, 1.0)
    return total.where(held == weights.shape[1], total * rest)
