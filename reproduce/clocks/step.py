"""One server step as every clock plays it: what clocks learn from its requests, what holds for any algorithm."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.engine.requests import Ints, Train, Trained, checked_model, listed

if TYPE_CHECKING:
    from reproduce.algorithms.base import FedAvg, Floats, State
    from reproduce.engine.task import Env

Weights = Callable[[Train], "Floats"]


def step(
    env: Env, algorithm: FedAvg, state: State, play: Generator[Any, Any, None], weights: Weights, keep: float = 0.0
) -> Generator[Any, Any, Ints]:
    """Play a round or an aggregation to its end; returns the local steps [N] that each client did in it.

    Running statistics are averaged, whatever the server's step makes of the rest: a step that goes further than the
    clients went, or weighs them unequally, would make variances negative. The server keeps the share `keep` of its own,
    the rest is the mean of the clients', weighted by `weights` [C] of each request; all of its own if nobody was heard.

    Raises OwnCodeError for a model of another shape or type.
    """
    done = np.zeros(env.clients, dtype=np.int64)
    where, answer = env.statistics, None
    old, mean, total = state["x"][where], state["x"].new_zeros(len(where)), 0.0
    while True:
        try:
            request = play.send(answer)
        except StopIteration:
            break
        answer = yield request
        for r, a in zip(listed(request), listed(answer), strict=True):
            if isinstance(r, Train):
                np.add.at(done, r.clients, r.steps)
            if isinstance(a, Trained) and a.statistics is not None:
                weight = weights(r)
                heard = np.flatnonzero(weight)  # what was lost, of weight 0, must not count as NaN either
                mean += env.tensor(weight[heard]) @ (r.start[..., where] + a.statistics)[heard]
                total += float(weight.sum())
    state["x"] = checked_model(env.task, state["x"])
    if len(where) and algorithm.averages_statistics:
        new = keep * old + (1 - keep) * mean / total if total > 0 else old
        state["x"] = state["x"].index_copy(0, where, new)
    return done
