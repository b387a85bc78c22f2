"""What a run writes down: rows (round, time, metric, key, value) of its history, and whether it diverged."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, State, record
from reproduce.declare.values import Count
from reproduce.engine.requests import Evaluate


@dataclass(frozen=True)
class Target:
    """What a run is after: the mean of the last `over` evaluations of `metric` (main key) is at least `value`.

    With fewer evaluations the mean is over those there are, as in `report.metrics.smooth`.
    """

    metric: str
    value: float
    over: Count = 1

    def reached(self, state: State) -> bool:
        """Is it reached by the latest evaluation?"""
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
) -> Generator[Any, Any, None]:
    """Evaluate the algorithm's models and record its metrics (`FedAvg.models`, `FedAvg.metrics`).

    by_class: also the first model's accuracy on the samples of each label, as `class_accuracy` with the label as key.
    by_client: also the accuracy on the data of the worst client, and its standard deviation over clients, as
    `worst_client` and `client_spread`; where models of several sizes are evaluated, by their mean.
    An evaluation with a number that is not finite is recorded, and the run has diverged: what a model says of a sample
    may overflow while its parameters do not.
    """
    models = algorithm.models(env, state)
    answers = yield [m if isinstance(m, Evaluate) else Evaluate(m[None], view) for m in models.values()]
    for metric, key, value in algorithm.metrics(env, state, dict(zip(models, answers, strict=True))):
        record(state, round, metric, value, key, time)
    if not all(np.isfinite(v).all() for answer in answers for v in answer.metrics.values()):
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


def diverged(state: State) -> bool:
    """Has the server model become non-finite? Then the run ends, and says so."""
    if bool(state["x"].isfinite().all()):
        return False
    state["status"] = "diverged"
    return True
