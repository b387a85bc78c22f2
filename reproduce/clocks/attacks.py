"""Clients that attack, whatever the algorithm: they send other vectors than they should, or train on wrong labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Play, State, Tensor, received
from reproduce.algorithms.robust import share_of
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data.dataset import Dataset
from reproduce.declare.values import Indices, Ints, Labels, Share
from reproduce.engine.requests import Gradient, Train, listed
from reproduce.errors import UserError
from reproduce.partitions.base import Over
from reproduce.partitions.split import chosen, loaded
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import rng


@dataclass(frozen=True)
class Attack:
    """floor(share N) of N clients, at least one, are attackers, drawn by a seed."""

    share: Share

    def attackers(self, seed: int, clients: int) -> Ints:
        return rng("attackers", seed).permutation(clients)[: max(1, share_of(self.share, clients))]


@dataclass(frozen=True)
class Scaled(Attack):
    """Attackers train as they should, and send `factor` times each vector: the update, the mean or the first gradient,
    a gradient that is asked for before the round. Running statistics are sent as they are. -1 flips the sign."""

    factor: float = -10.0

    def changed(self, vector: Tensor, draw: np.random.Generator) -> Tensor:
        """The vector [P] that is sent in place of another."""
        return self.factor * vector

    def put(self, experiment: Any) -> Any:
        kinds: dict[type, Any] = {Rounds: AttackedRounds, Sessions: AttackedSessions, Events: AttackedEvents}
        clock = experiment.clock
        return replace(experiment, clock=kinds[type(clock)](attack=self, **vars(clock)))

    def play(self, env: Env, state: State, play: Play) -> Play:
        """The requests of a run, which is answered with what attackers send."""
        answer = None
        while True:
            try:
                request = play.send(answer)
            except StopIteration:
                return
            if state["pending"]:  # an evaluation, for which clients may train a model that they keep
                answer = yield request
                continue
            asked = listed(request)
            given = yield [replace(r, weights=None) if isinstance(r, Train) else r for r in asked]
            sent = [self.sent(env, *pair) for pair in zip(asked, given, strict=True)]
            answer = sent if isinstance(request, list) else sent[0]

    def sent(self, env: Env, request: Train | Gradient, answer: Any) -> Any:
        """The answer to a request as the server gets it, given each client's vectors."""
        if isinstance(request, Gradient):
            return self.vectors(env, request, answer, "gradient")
        names = ("rows", "mean_gradient", "first_gradient")
        changes: dict[str, Any] = {
            n: self.vectors(env, request, v, n) for n in names if (v := getattr(answer, n)) is not None
        }
        if request.weights is not None:
            sums = [received(weights, changes["rows"]) for weights in request.weights]
            changes |= {"rows": env.stack(sums), "summed": True}
        return replace(answer, **changes)

    def vectors(self, env: Env, request: Train | Gradient, honest: Tensor, what: str) -> Tensor:
        """Vectors [C, P] of a request's clients with those of attackers changed."""
        from reproduce.engine.layout import layout_of

        rounds, found = np.broadcast_to(request.round, len(request.clients)), honest.clone()
        for row in np.flatnonzero(np.isin(request.clients, self.attackers(env.seed, env.clients))):
            found[row] = self.changed(honest[row], rng("attack", what, env.seed, rounds[row], request.clients[row]))
        kept = layout_of(request.model).statistics if request.model else env.statistics
        found[:, kept] = honest[:, kept]
        return found


@dataclass(frozen=True)
class Noise(Scaled):
    """Attackers send `factor` times Gaussian noise, whose expected square is that of the vector."""

    factor: float = 10.0

    def changed(self, vector: Tensor, draw: np.random.Generator) -> Tensor:
        noise = vector.new_tensor(draw.standard_normal(len(vector)))
        return self.factor * vector.norm() / math.sqrt(len(vector)) * noise


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """A clock under attack."""

    attack: Scaled

    def play(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        return self.attack.play(env, state, super().play(env, algorithm, state))  # type: ignore[misc]


@dataclass(frozen=True)
class AttackedRounds(Attacked, Rounds): ...


@dataclass(frozen=True)
class AttackedSessions(Attacked, Sessions): ...


@dataclass(frozen=True)
class AttackedEvents(Attacked, Events): ...


@dataclass(frozen=True)
class FlippedLabels(Attack):
    """Attackers, drawn by the seed of the split, train on C - 1 - y in place of the label y of C classes (Fang et al.,
    USENIX Security 2020)."""

    def put(self, experiment: Any) -> Any:
        problem = experiment.problem
        if not isinstance(problem, Classification):
            raise UserError("a function has no labels to flip")
        flipped = Flipped(problem.partition, problem, self)
        changes: dict[str, Any] = {"train_samples": 0, "test_samples": 0, "subset_balanced": False}
        return replace(experiment, problem=replace(problem, data=flipped, partition=flipped, **changes))


@dataclass(frozen=True)
class Flipped(Over):
    """Data, and their split: the samples in use of a `problem`, whose training samples are twice, the second time with
    flipped labels; attackers have these, and other clients the first ones, as another partition gives them."""

    problem: Classification
    attack: FlippedLabels
    data: None = None

    by_place: ClassVar[bool] = True
    sample = property(lambda self: self.problem.source.sample)
    sizes = property(lambda self: (2 * self.problem.sizes[0], self.problem.sizes[1]))
    classes = property(lambda self: self.problem.source.classes)
    of = property(lambda self: next(iter(self.problem.requires), ""))  # the data set that must be there

    def __post_init__(self) -> None:
        if self.data is not None:  # of which a part is held out
            raise UserError("--tune holds out training samples, and some have flipped labels: leave one of both out")

    def load(self) -> Dataset:
        data = loaded(self.problem, settings())
        train, test = chosen(self.problem, data)
        x, y = data.train_x[np.tile(train, 2)], data.train_y[train]
        whole = replace(data, train_x=x, train_y=np.concatenate([y, data.n_classes - 1 - y]))
        return replace(whole, test_x=data.test_x[test], test_y=data.test_y[test], train_text=None, test_text=None)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        half = len(labels) // 2
        parts = [*self.partition.split(labels[:half], clients, seed)]
        for client in self.attack.attackers(seed, clients):
            parts[client] = np.asarray(parts[client]) + half
        return parts

    def split_test(self, labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts: list[Indices] = self.partition.split_test(labels[: len(labels) // 2], test_labels, clients, seed)
        return parts
