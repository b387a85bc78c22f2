"""FedAvg (McMahan et al., AISTATS 2017) and the hooks that every synchronous algorithm fills in.

Legend: N clients, C of them in the round, P parameters. X is the server model [P]; U = end - start are the clients'
updates [C, P]; w [N] the clients' weights in the objective, summing to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Count, Floats, Fraction, Ints, Positive
from reproduce.engine.requests import Evaluate, Evaluated, Request, Train, Trained
from reproduce.engine.rule import Rule
from reproduce.errors import UserError
from reproduce.streams import rng

if TYPE_CHECKING:
    from torch import Tensor as Tensor

    from reproduce.engine.client_split import Env as Env
else:  # which are words in annotations: declaring and planning need no torch
    Env = Tensor = Any

State = dict[str, Any]
Play = Generator[Request | list[Request], Any, None]
Names = Mapping[str, Mapping[str, Any]]


@dataclass
class RoundContext:
    """The system in one round: steps K_m, accumulation norms A_m, success probabilities s_m, arrivals Z_m, all [N].

    `members`: the clients that exist in this round; `lr`: the clock's learning rate, None leaves it to the algorithm;
    `offset` [N]: batches every client has done in earlier rounds.
    """

    round: int
    members: Ints
    steps: Ints
    norm: Floats
    success: Floats
    arrived: NDArray[np.bool_]
    offset: Ints
    lr: float | None = None

    def weights(self, env: Env) -> Callable[[Train], Floats]:
        """The shares in the objective [C] of the clients of a request, 0 for those whose update was lost."""
        return lambda request: (env.weights * self.arrived)[request.clients]


@dataclass
class Participants:
    """The clients that train in a round: distinct ids [C] and their aggregation weights [C] (before the link)."""

    ids: Ints
    weight: Floats

    def __post_init__(self) -> None:
        ids = np.asarray(self.ids)
        if ids.dtype.kind not in "iu" or ids.shape != np.shape(self.weight) or len(np.unique(ids)) < len(ids):
            given = f"{ids.dtype} {ids.tolist()} and {np.shape(self.weight)}"
            raise UserError(f"participants are distinct whole numbers [C] and their weights [C], not {given}")


def objective(env: Env, now: RoundContext) -> Floats:
    """The weights w [N] of the members in their objective, which sum to one; 0 for who is not there."""
    if len(now.members) == env.clients:
        return env.weights
    w = np.zeros(env.clients)
    w[now.members] = env.weights[now.members]
    return w / w.sum()


class Participation(Protocol):
    """A scheme of client sampling: which clients, with which aggregation weights."""

    def check(self, members: int, clients: int) -> None:
        """Raises ValueError if it cannot choose among `members` of all `clients` in a round."""
        return

    def draw(self, env: Env, now: RoundContext, p: Floats | None = None) -> Participants: ...


@dataclass(frozen=True)
class Full(Participation):
    """All members take part; their weights are w, normalised over the members."""

    def draw(self, env: Env, now: RoundContext, p: Floats | None = None) -> Participants:
        weight = env.weights[now.members]  # w [C]
        return Participants(now.members, weight / weight.sum())


@dataclass(frozen=True)
class WeightedDraws(Participation):
    """k draws with replacement from p [N] (default: `objective`, the members' w); a client drawn n_m times trains once
    and weighs n_m / k."""

    k: Count

    def draw(self, env: Env, now: RoundContext, p: Floats | None = None) -> Participants:
        p = objective(env, now) if p is None else p
        drawn = rng("sampling", env.seed, now.round).choice(env.clients, size=self.k, p=p)
        ids, multiplicity = np.unique(drawn, return_counts=True)
        return Participants(ids, multiplicity / self.k)


@dataclass(frozen=True)
class DistinctClients:
    """k distinct clients, uniformly. Weights N/k * w_m; with `average`, 1/k each."""

    k: Count
    average: bool = False

    def check(self, members: int, clients: int) -> None:
        if self.k > members:
            raise ValueError(f"there are no {self.k} distinct clients among the {members} of a round")

    def draw(self, env: Env, now: RoundContext, p: Floats | None = None) -> Participants:
        drawn = rng("sampling", env.seed, now.round).choice(now.members, size=self.k, replace=False)
        ids = np.sort(drawn)
        # 1 / k, or w_m N / k: then the sum is w-weighted in expectation
        weight = np.full(self.k, 1 / self.k) if self.average else objective(env, now)[ids] * len(now.members) / self.k
        return Participants(ids, weight)


@dataclass(frozen=True)
class FedAvg:
    """X <- X + server_lr * sum over received clients of weight_m U_m. Subclasses override the hooks below."""

    memory: ClassVar[tuple[str, ...]] = ()
    """Names that the algorithm keeps in the run's state from round to round, beside the model `x`."""
    per_client: ClassVar[int] = 0
    """Vectors [P] that it keeps there for each client, by which the memory of a job is estimated."""
    names: ClassVar[Names] = {"fedavg": {}}
    """Its names for `play`, with the fields that each stands for. A class that says nothing is named like itself, in
    small letters; {} is of a base that is no algorithm by itself."""
    draws: ClassVar[bool] = False
    """Does it say itself with which probability a client is drawn?"""
    trains_parts: ClassVar[bool] = False
    """Does a client train what it can hold of the model?"""
    trains_exits: ClassVar[bool] = False
    """Does a client train all classifiers of a network with several?"""
    averages_statistics: ClassVar[bool] = True
    """Are running statistics of the network averaged, whatever else the server does? No is for code as released."""

    lr: Positive = 0.1
    participation: Participation = field(default=Full())
    server_lr: Positive = 1.0
    momentum: Fraction = 0.0

    def check(self, problem: Any, system: Any) -> None:
        """Raises ValueError if the algorithm cannot run on this problem with this system (None: it needs none)."""
        if problem.model is None and (terms := self.rule().network_terms):
            raise ValueError(f"a quadratic has no network for `{'`, `'.join(terms)}` of {type(self).__name__}")
        if system is not None and system.capacity.sizes != (1.0,) and not self.trains_parts:
            raise ValueError(f"{type(self).__name__} trains the whole model, but some clients hold only a part")
        if problem.model is not None and len(problem.model.exits) > 1 and not self.trains_exits:
            count = len(problem.model.exits)
            raise ValueError(f"{type(self).__name__} trains one classifier, and the network has {count} exits")

    def setup(self, env: Env, state: State) -> None:
        """Create the memories: `state[name]` = tensor; `state["x"]` is there already."""

    def fingerprinted(self, state: State, scratch: State) -> None:
        """The memories in `scratch` that a session's fingerprint (`Sessions`) changes: none."""

    def probe(self, env: Env, state: State, now: RoundContext) -> Generator[Request, Any, Any]:
        """Requests before the cohort is chosen; the return value is handed to `choose`."""
        return None
        yield

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        """Client sampling."""
        return self.participation.draw(env, now)

    def learning_rate(self, env: Env, now: RoundContext) -> float:
        """The local step size of this round."""
        return self.lr if now.lr is None else now.lr

    def rule(self) -> Rule:
        """The local rule (momentum, proximal pull, which gradients to report)."""
        return Rule(momentum=self.momentum)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        """The local work of the cohort; overriders use `dataclasses.replace(super().local(...), correction=...)`."""
        return Train(
            clients=cohort.ids,
            steps=now.steps[cohort.ids],
            start=state["x"],
            lr=self.learning_rate(env, now),
            round=now.round,
            rule=self.rule(),
            offset=now.offset[cohort.ids],
            weights=self.reduction(env, now, cohort),
        )

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        """[1, C] if the server step is a weighted sum known before training (then no [C, P] is kept), else None."""
        return env.tensor((self.message_weights(env, now, cohort) * now.arrived[cohort.ids])[None, :])  # p_m Z_m

    def message_weights(self, env: Env, now: RoundContext, cohort: Participants) -> Floats:
        """Aggregation weights [C] of the updates, if they arrive."""
        return cohort.weight

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        """The server step; changes `state` in place, the last thing that happens in a round."""
        state["x"] = state["x"] + self.server_lr * trained.sums[0]  # X + eta_s sum_m p_m U_m, all [P]

    def round(self, env: Env, state: State, now: RoundContext) -> Play:
        """One synchronous round as a generator of requests; `state` changes only after the last one."""
        probe = yield from self.probe(env, state, now)
        cohort = self.choose(env, now, probe)
        trained = yield self.local(env, state, now, cohort)
        self.aggregate(env, state, now, cohort, trained)
        state["work"] += env.processed(cohort.ids, now.steps[cohort.ids])

    def models(self, env: Env, state: State) -> Mapping[str, Tensor | Evaluate]:
        """The models to evaluate: key -> parameters [P], or a request of its own (a submodel)."""
        return {"": state["x"]}

    def metrics(self, env: Env, state: State, answers: Mapping[str, Evaluated]) -> Iterator[tuple[str, str, float]]:
        """The records of an evaluation: (metric, key, value)."""
        for key, answer in answers.items():
            for metric, values in answer.metrics.items():
                yield metric, key, float(values[0])

    def message_bytes(self, env: Env, request: Train) -> tuple[Ints, Ints]:
        """Bytes [C] of the model that each client of a request is sent, and of the update that it sends."""
        vector = request.start if request.start.dim() == 1 else request.start[0]
        size = np.full(len(request.clients), vector.nbytes)
        return size, size

    def probe_bytes(self, env: Env, round: int) -> int:
        """Bytes that a client sends of a gradient that is asked for before the round; 0 if it keeps it to itself."""
        return (env.parameters - len(env.statistics)) * env.zeros(1).element_size()

    def norms(self, steps: Ints, lr: float) -> Floats:
        """Accumulation norms A_m = ||a_m||_1 of the local solver (`Rule.norms`); K_m for plain SGD."""
        return self.rule().norms(steps, lr)


def received(weights: Tensor, updates: Tensor) -> Tensor:
    """The sum [P] of weights [C] times updates [C, P]; what was lost, of weight 0, must not count as NaN either."""
    counts = (weights != 0)[:, None]
    return weights @ (updates if bool(counts.all()) else updates.where(counts, 0.0))


def record(state: State, round: int, metric: str, value: float, key: str = "", time: float = math.nan) -> None:
    """Append one number to the run's history."""
    state["history"].append((round, time, str(metric), str(key), float(value)))


def observe(env: Env, algorithm: FedAvg, round: int, steps_done: np.ndarray, lr: float | None = None) -> RoundContext:
    """The system's state in a round, as the server may see it before sampling; lr: the clock's learning rate."""
    work, link = env.system.work, env.system.link
    steps = env.split.steps(work.amounts(env.seed, round, env.clients), work.unit)
    return RoundContext(
        round=round,
        members=np.arange(env.clients),
        steps=steps,
        norm=algorithm.norms(steps, algorithm.lr if lr is None else lr),
        success=1 - link.failure(env.seed, round, env.clients),
        arrived=link.arrived(env.seed, round, env.clients),
        offset=steps_done,
        lr=lr,
    )
