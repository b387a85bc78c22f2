"""Optimal client sampling (Chen, Horvath & Richtarik, TMLR 2022): clients with large gradients or updates first."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.base import (
    Env,
    FedAvg,
    Full,
    Names,
    Participants,
    RoundContext,
    State,
    Tensor,
    objective,
    received,
)
from reproduce.declare.values import Count, Floats, Whole
from reproduce.engine.requests import Gradient, Request, Trained
from reproduce.streams import rng

FLOOR = 1e-12
"""A norm below this counts as this, so that a stationary client keeps a positive probability."""


@dataclass(frozen=True)
class OptimalSampling(FedAvg):
    """Draws with replacement from p_m ~ w_m ||grad F_m(X)||; updates are weighted by w_m / p_m (FedACS eq. 20).

    probe_batch: samples of the gradient that a client's norm is taken of; 0 = all of its data.
    """

    names: ClassVar[Names] = {"os": {}}
    draws: ClassVar[bool] = True

    probe_batch: Whole = 0

    def probe(self, env: Env, state: State, now: RoundContext) -> Generator[Request, Any, Any]:
        gradients = yield Gradient(clients=now.members, x=state["x"], round=now.round, batch=self.probe_batch)
        norms = np.zeros(env.clients)
        norms[now.members] = lengths(gradients)
        return norms

    def probe_bytes(self, env: Env, round: int) -> int:
        return env.zeros(1).element_size()  # the norm

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        w = objective(env, now)
        p = w * np.maximum(probe, FLOOR)  # w_m ||grad F_m(X)|| [N], eq. 20
        p = p / p.sum()
        cohort = self.participation.draw(env, now, p)
        chance = np.where(p > 0, p, 1.0)[cohort.ids]  # of a client without samples, whose share w is 0, too
        return Participants(cohort.ids, cohort.weight * w[cohort.ids] / chance)  # n_m / k * w_m / p_m [C]


@dataclass(frozen=True)
class OptimalSamplingOriginal(FedAvg):
    """The published algorithm: all clients train, each is included independently with probability p_m, and the received
    ones of those count w_m / p_m. On average `expected` clients are included.
    """

    names: ClassVar[Names] = {"os_original": {}}

    expected: Count = 6

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        return Full().draw(env, now)

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        p = inclusion(cohort.weight * np.maximum(lengths(trained.updates), FLOOR), self.expected)
        included = rng("inclusion", env.seed, now.round).random(len(p)) < p
        trained.sent = included
        counted = included & now.arrived[cohort.ids]
        weight = np.where(counted, cohort.weight / np.where(counted, p, 1.0), 0.0)  # w_m / p_m of who counts [C]
        state["x"] = state["x"] + self.server_lr * received(env.tensor(weight), trained.updates)


def lengths(rows: Tensor) -> Floats:
    """The norms [C] of rows [C, P]. Where some overflow or are no numbers, 1 for these and 0 for the rest: the limit of
    what sampling makes of them, by which a run that diverges comes to its end."""
    norms = rows.norm(dim=1).cpu().numpy().astype(np.float64)
    finite = np.isfinite(norms)
    return norms if finite.all() else np.where(finite, 0.0, 1.0)


def inclusion(u: Floats, expected: int) -> Floats:
    """The probabilities that minimise the variance if they sum to `expected`: those of the l
    smallest norms are proportional to them, the others are 1, with the largest l for which none exceeds 1."""
    clients = len(u)
    if expected >= clients:
        return np.ones(clients)
    ordered = np.sort(u)
    sums = np.cumsum(ordered)
    count = np.arange(1, clients + 1)
    left = expected + count - clients  # l + expected - N: what is to be shared out among the l smallest
    smallest = int(count[(left > 0) & (left <= sums / ordered)].max())
    # p_m = min(1, (l + expected - N) u_m / sum of the l smallest u)
    return np.minimum(1.0, left[smallest - 1] * u / sums[smallest - 1])
