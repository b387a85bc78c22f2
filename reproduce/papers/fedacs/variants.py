"""Clients that train, and send, as often as they are drawn: a choice of fedacs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Floats, Participants, Play, RoundContext, State, WeightedDraws
from reproduce.algorithms.fedacs import FedACS
from reproduce.engine.requests import Request, Trained
from reproduce.streams import rng

APART = 10**6
"""Between the rounds whose batches a client takes when it trains again in the same one."""


@dataclass(frozen=True)
class DrawnTwice(FedAvg):
    """A client that is drawn n_m times trains n_m times, on batches of its own each time, and the link of each of its
    updates is drawn alone; they weigh 1 / k each."""

    def round(self, env: Env, state: State, now: RoundContext) -> Play:
        assert isinstance(self.participation, WeightedDraws)
        probe = yield from self.probe(env, state, now)
        cohort = self.choose(env, now, probe)
        times = np.rint(cohort.weight * self.participation.k).astype(int)  # n_m [C]
        requests: list[Request] = []
        for again in range(times.max()):
            drawn = cohort.ids[times > again]
            once = Participants(drawn, np.full(len(drawn), 1 / self.participation.k))
            requests.append(self.local(env, state, self._again(env, now, again), once))
            state["work"] += env.processed(drawn, now.steps[drawn])
        answers = yield requests
        total = sum(trained.sums[0] for trained in answers)
        self.aggregate(env, state, now, cohort, Trained(total[None], summed=True))

    def _again(self, env: Env, now: RoundContext, again: int) -> RoundContext:
        """The round as it is when its clients train for the time number `again`, from 0 on."""
        if not again:
            return now
        luck: Floats = rng("drawn again", env.seed, now.round, again).random(env.clients)
        return replace(now, round=now.round + again * APART, arrived=luck < now.success)


@dataclass(frozen=True)
class FedACSDrawnTwice(DrawnTwice, FedACS):
    """The same for FedACS."""
