"""One server step as every clock plays it: what clocks learn from its requests, what holds for any algorithm."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Floats, State, Tensor
from reproduce.engine.requests import Ints, Train, Trained, listed

Weights = Callable[[Train], Floats]


def step(
    env: Env, algorithm: FedAvg, state: State, play: Generator[Any, Any, None], weights: Weights, keep: float = 0.0
) -> Generator[Any, Any, Ints]:
    """Play a round or an aggregation to its end; returns the local steps [N] that each client did in it.

    Running statistics are averaged, whatever the server's step makes of the rest: a step that goes further than the
    clients went, or weighs them unequally, would make variances negative. The server keeps the share `keep` of its own,
    the rest is the mean of the clients', weighted by `weights` [C] of each request; all of its own if nobody was heard.
    """
    done, answer = np.zeros(env.clients, dtype=np.int64), None
    average = Average(env, state["x"]) if len(env.statistics) and algorithm.averages_statistics else None
    while True:
        try:
            request = play.send(answer)
        except StopIteration:
            break
        answer = yield request
        for r, a in zip(listed(request), listed(answer), strict=True):
            if isinstance(r, Train):
                np.add.at(done, r.clients, r.steps)
                if average is not None:
                    average.add(r, a, weights(r))
    if average is not None:
        state["x"] = average.into(state["x"], keep)
    return done


class Average:
    """The mean of the clients' running statistics, of a server whose model was `x` [P]."""

    def __init__(self, env: Env, x: Tensor) -> None:
        self.env, self.where = env, env.statistics
        self.old, self.sum, self.total = x[self.where], x.new_zeros(len(self.where)), 0.0

    def add(self, request: Train, answer: Trained, weight: Floats) -> None:
        """Count the clients of an answer by `weight` [C]; what was lost, of weight 0, must not count as NaN either."""
        if answer.statistics is not None:
            heard = np.flatnonzero(weight)
            ends = request.start[..., self.where] + answer.statistics
            self.sum += self.env.tensor(weight[heard]) @ ends[heard]
            self.total += float(weight.sum())

    def into(self, x: Tensor, keep: float) -> Tensor:
        """The model `x` with the share `keep` of the server's old statistics and the rest of the mean."""
        new = keep * self.old + (1 - keep) * self.sum / self.total if self.total > 0 else self.old
        return x.index_copy(0, self.where, new)
