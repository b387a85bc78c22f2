"""Other ways to draw, weigh and sum in fedacs: its choices, and readings that its printed numbers may rest on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reproduce.algorithms import base
from reproduce.algorithms.base import Env, FedAvg, Participants, Play, RoundContext, State, WeightedDraws
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.fedau import FedAU
from reproduce.declare.values import Floats
from reproduce.engine.requests import Request, Train, Trained
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
    """FedACS with the draws of `DrawnTwice`."""


@dataclass(frozen=True)
class DistinctDraws(WeightedDraws):
    """k distinct clients, one after the other from p [N] (default: the members' w); 1 / k each."""

    def draw(self, env: Env, now: RoundContext, p: Floats | None = None) -> Participants:
        p = base.objective(env, now) if p is None else p
        drawn = rng("sampling", env.seed, now.round).choice(env.clients, size=self.k, replace=False, p=p)
        return Participants(np.sort(drawn), np.full(self.k, 1 / self.k))


@dataclass(frozen=True)
class FedACSByLinks(FedACS):
    """p_m ~ w_m / s_m, whatever the clients' work, and the sum divided by the draws that arrived in place of all k: a
    step 1 / sum p s times as long as it is calibrated for."""

    def _needs(self, env: Env, now: RoundContext) -> Floats:
        needs: Floats = base.objective(env, now) / now.success  # w_m / s_m [N]
        return needs

    def step_length(self, env: Env, now: RoundContext) -> float:
        """sum p s A with p = (w / s) / sum (w / s)."""
        return float((base.objective(env, now) * now.norm).sum() / self._needs(env, now).sum())

    def message_weights(self, env: Env, now: RoundContext, cohort: Participants) -> Floats:
        heard = (cohort.weight * now.arrived[cohort.ids]).sum()
        return cohort.weight / heard if heard else cohort.weight  # n_m / (draws that arrived) [C]


@dataclass(frozen=True)
class FedAUByDraws(FedAU):
    """FedAU summed as CA-FedAvg is in (113): n_m / k in place of w_m, a step M / k times as long."""

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        request, w = super().local(env, state, now, cohort), base.objective(env, now)[cohort.ids]
        assert request.weights is not None
        return replace(request, weights=request.weights * env.tensor(cohort.weight / w)[None, :])
