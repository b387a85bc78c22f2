"""A server step, the same for every clock, and the history that a run writes down: rows (round, time, metric, key,
value), and whether the run diverged."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, State, Tensor, record
from reproduce.clocks.traffic import sent
from reproduce.declare.values import Count, Floats, Ints
from reproduce.engine.requests import Evaluate, Train, Trained, listed
from reproduce.engine.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The options of every clock.

    lr_decay: of the learning rate over the rounds (over those of a session, over the aggregations); "": as the clock
    has it. traffic: record the bytes sent so far to all clients and by them, `bytes_down` and `bytes_up`; the state
    has them as `sent`.
    """

    lr_decay: Literal["", "constant", "cosine", "step", "sqrt"] = ""
    traffic: bool = False

    def begin(self, state: State, **entries: Any) -> None:
        """Create the clock's entries of the state."""
        state.update(entries, **({"sent": np.zeros(2, dtype=np.int64)} if self.traffic else {}))

    def decayed(self, lr: float, t: Any, total: int) -> Any:
        """The learning rate after t of `total` rounds; t: a number, or several [C]."""
        share = t / total
        if self.lr_decay == "cosine":
            return lr * (1 + np.cos(np.pi * share)) / 2
        if self.lr_decay == "step":  # a tenth from half of the rounds on, a hundredth from three quarters on
            return lr * 0.1 ** np.searchsorted([0.5, 0.75], share, side="right")
        return lr / np.sqrt(t + 1) if self.lr_decay == "sqrt" else lr + 0 * share


@dataclass(frozen=True)
class Target:
    """The target of a run: the mean of the last `over` evaluations of `metric` (main key) is at least `value`.

    With fewer evaluations the mean is over those there are, as in `report.metrics.smooth`.
    """

    metric: str
    value: float
    over: Count = 1

    def reached(self, state: State) -> bool:
        """Tells whether the latest evaluation reaches it."""
        latest: list[float] = []
        for _, _, metric, key, value in reversed(state["history"]):
            if metric == self.metric and key == "":
                latest.append(value)
                if len(latest) == self.over:
                    break
        return bool(latest) and sum(latest) / len(latest) >= self.value


def measure(
    env: Env,
    algorithm: FedAvg,
    state: State,
    round: int,
    view: str = "test",
    time: float = math.nan,
    by_class: bool = False,
    by_client: bool = False,
    tuned: bool = False,
) -> Generator[Any, Any, None]:
    """Evaluate the algorithm's models and record its metrics (`FedAvg.models`, `FedAvg.metrics`).

    by_class: also the first model's accuracy on the samples of each label, as `class_accuracy` with the label as key.
    by_client: also the accuracy on the data of each client (`per_client`, with the client as key), of the worst
    one, and its standard deviation, `worst_client` and `client_spread`; where models of several sizes are evaluated, by
    their mean. tuned: also after one local epoch of SGD at each (`per_client_tuned`), of the whole model.
    An evaluation with a number that is not finite is recorded, and after training the run has diverged: what a model
    says of a sample may overflow while its parameters do not.
    """
    models = algorithm.models(env, state)
    answers = yield [m if isinstance(m, Evaluate) else Evaluate(m[None], view) for m in models.values()]
    ends = (yield from after_an_epoch(env, algorithm, state, round)) if tuned else ()
    if "sent" in state:
        for metric, value in zip(("bytes_down", "bytes_up"), state["sent"].tolist(), strict=True):
            record(state, round, metric, value, time=time)
    for metric, key, value in algorithm.metrics(env, state, dict(zip(models, answers, strict=True))):
        record(state, round, metric, value, key, time)
    if round and not all(np.isfinite(v).all() for answer in answers for v in answer.metrics.values()):
        state["status"] = "diverged"
    if by_class:
        labels, correct = env.split.labels(view), answers[0].correct[0]  # type: ignore[union-attr]
        for label in sorted(set(labels.tolist())):
            record(state, round, "class_accuracy", 100 * correct[labels == label].mean(), str(label), time)
    if by_client:
        right = np.mean([row for answer in answers for row in answer.correct], axis=0)  # type: ignore[union-attr]
        each = env.split.by_client(right)  # type: ignore[union-attr]
        record(state, round, "worst_client", np.nanmin(each), time=time)
        record(state, round, "client_spread", np.nanstd(each), time=time)
        for metric, values in (("per_client", each), ("per_client_tuned", ends)):
            for client, value in enumerate(values):
                if not math.isnan(value):
                    record(state, round, metric, value, str(client), time)


def after_an_epoch(env: Env, algorithm: FedAvg, state: State, round: int) -> Generator[Any, Any, Floats]:
    """Accuracy [N] on the data of each client of the server's model after one more epoch at that client alone."""
    steps, found = env.split.steps(np.ones(env.clients), "epochs"), np.full(env.clients, math.nan)
    for clients in np.array_split(np.arange(env.clients), -(-env.clients // 10)):
        plain = Rule(momentum=algorithm.momentum)
        trained = yield Train(clients, steps[clients], state["x"], algorithm.lr, round, plain)
        answer = yield Evaluate(state["x"] + trained.updates)
        for client, right in zip(clients, answer.correct, strict=True):
            found[client] = env.split.by_client(right)[client]  # type: ignore[union-attr]
    return found


def diverged(env: Env, state: State) -> bool:
    """Tells whether a parameter of the server model is not finite; then the run ends, and says so."""
    if bool(state["x"].isfinite().index_fill(0, env.statistics, True).all()):
        return False
    state["status"] = "diverged"
    return True


# --- one server step --------------------------------------------------------------------------------------------------

Weights = Callable[[Train], Floats]


def step(
    env: Env, algorithm: FedAvg, state: State, play: Generator[Any, Any, None], weights: Weights, keep: float = 0.0
) -> Generator[Any, Any, Ints]:
    """Play a round or an aggregation to its end; returns the local steps [N] that each client did in it.

    Running statistics are averaged, whatever the server's step makes of the rest: a step that goes further than the
    clients went, or weighs them unequally, would make variances negative. The server keeps the share `keep` of its own,
    the rest is the mean of the clients', weighted by `weights` [C] of each request; all of its own if nothing was
    received.
    """
    done, answer, played = np.zeros(env.clients, dtype=np.int64), None, []
    state["x"] = state["x"].clone()  # a clock may remember the model that it was, and a hook may change this one
    average = Average(env, state["x"]) if len(env.statistics) and algorithm.averages_statistics else None
    while True:
        try:
            request = play.send(answer)
        except StopIteration:
            break
        answer = yield request
        for r, a in zip(listed(request), listed(answer), strict=True):
            played += [(r, a)] if "sent" in state else []
            if isinstance(r, Train):
                np.add.at(done, r.clients, r.steps)
                if average is not None:
                    average.add(r, a, weights(r))
    if average is not None:
        state["x"] = average.into(state["x"], keep)
    if played:
        state["sent"] = state["sent"] + sent(env, algorithm, state["round"], played)
    return done


class Average:
    """The mean of the clients' running statistics, of a server whose model was `x` [P]."""

    def __init__(self, env: Env, x: Tensor) -> None:
        self.env, self.where = env, env.statistics
        self.old, self.sum, self.total = x[self.where], x.new_zeros(len(self.where)), 0.0
        self.ends: list[Tensor] = []

    def add(self, request: Train, answer: Trained, weight: Floats) -> None:
        """Count the clients of an answer by `weight` [C]; what was lost, of weight 0, must not count as NaN either."""
        if answer.statistics is not None:
            received = np.flatnonzero(weight)
            ends = answer.statistics[received]
            self.sum += self.env.tensor(weight[received]) @ ends
            self.total += float(weight.sum())
            self.ends += ends

    def into(self, x: Tensor, keep: float) -> Tensor:
        """The model `x` with the share `keep` of the server's old statistics and the rest of the mean."""
        if not self.total > 0:
            return x.index_copy(0, self.where, self.old)
        new = (1 - keep) * self.sum / self.total
        new, of = (keep * self.old + new, [*self.ends, self.old]) if keep else (new, self.ends)
        each = self.env.stack(of)  # a mean lies between what it is of: of equal numbers it is the same
        return x.index_copy(0, self.where, new.clamp(each.amin(0), each.amax(0)))
