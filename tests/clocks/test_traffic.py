"""Bytes that travel, against counts by hand; rates that decay over rounds, sessions and aggregations."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms import os_sampling
from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.algorithms.base import DistinctClients, FedAvg, WeightedDraws
from reproduce.algorithms.fedagrac import FedaGrac, FedLin
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.moon import Distillation, Moon
from reproduce.algorithms.narrower import HeteroFL
from reproduce.algorithms.os_sampling import OptimalSampling, OptimalSamplingOriginal
from reproduce.algorithms.scaffold import Scaffold
from reproduce.algorithms.session_starts import Proposed
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import Perceptron, Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification, Quadratic
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating, Rotation, SplitCapacity
from reproduce.systems.policies import AsySGPolicy, DeFedAvgIIDPolicy, DeFedAvgNIIDPolicy, FavanoPolicy, FedBuffPolicy
from reproduce.systems.schedule import Explicit, Pace, Policy, Schedule

PROBLEM = Classification("digits", Softmax(64, 10), IID(), clients=5, batches=Shuffled(10), train_samples=100)
VECTOR = (64 * 10 + 10) * 4
"""Bytes of the model in float32."""
TWO, ROUNDS = DistinctClients(2), 3


def sent(e: Experiment) -> tuple[float, float]:
    """Bytes down and up, at the end of a run; without counting them it has the same numbers."""
    plain, counted = run([e, replace(e, clock=replace(e.clock, traffic=True))])
    rows = counted.state["history"]
    found = {metric: value for _, _, metric, _, value in rows if metric.startswith("bytes")}
    assert [r for r in rows if r[2] not in found] == plain.state["history"]
    return found["bytes_down"], found["bytes_up"]


def in_rounds(algorithm: FedAvg, problem: Any = PROBLEM, **system: Any) -> tuple[float, float]:
    return sent(Experiment({"algorithm": "a"}, problem, System(Steps(3), **system), algorithm, Rounds(ROUNDS)))


@pytest.mark.parametrize(("algorithm", "down", "up"), [
    (FedAvg(participation=TWO), 2 * 3, 2 * 3),
    (Moon(participation=TWO), 2 * 3, 2 * 3),  # its previous model is the client's own
    (Distillation(participation=TWO), 4 * 3, 2 * 3),  # x, the teacher
    (Scaffold(participation=TWO), 4 * 3, 4 * 3),  # x, c; update, c_m
    (Scaffold(participation=TWO, control="displacement"), 4 * 3, 2 * 3),  # the server finds c_m from the update
    (FedLin(participation=TWO), (5 + 2) * 3, (5 + 2) * 3),  # x to all; to the cohort the gradient
    (FedaGrac(participation=TWO), 4 * 3, 4 * 3),  # x, nu; update, mean or first gradient
    (FedaGrac(participation=TWO, first_gradient="full_local"), 4 * 3, 4 * 3),
    (FedaGrac(participation=TWO, start="full_gradient"), 5 + 2 + 4 * 2, 5 + 4 * 3),
])  # fmt: skip
def test_vectors_of_rounds(algorithm: FedAvg, down: int, up: int) -> None:
    assert in_rounds(algorithm) == (down * VECTOR, up * VECTOR)


def test_norms_travel_in_place_of_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Train] = []
    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, jobs: asked.extend(r for _, r in jobs) or train(self, jobs))
    down, up = in_rounds(OptimalSampling(participation=WeightedDraws(3)))
    assert (down, up) == (5 * ROUNDS * VECTOR, sum(len(r.clients) for r in asked) * VECTOR + 5 * ROUNDS * 4)
    monkeypatch.setattr(os_sampling, "inclusion", lambda u, k: np.array([1.0, 0, 0, 1, 0]))
    assert in_rounds(OptimalSamplingOriginal()) == (5 * ROUNDS * VECTOR, ROUNDS * (2 * VECTOR + 5 * 4))


def test_parts_of_a_model() -> None:
    """HeteroFL halves the 12 hidden units; FIARSE keeps a quarter of the values, and says by bits where they are."""
    whole, half = 64 * 12 + 12 + 12 * 10 + 10, 64 * 6 + 6 + 6 * 10 + 10
    problem = replace(PROBLEM, model=Perceptron(64, (12,), 10), clients=4)
    sizes = SplitCapacity((1.0, 0.25))
    both = ROUNDS * 2 * (whole + half) * 4
    assert in_rounds(HeteroFL(), problem, capacity=sizes) == (both, both)
    up = ROUNDS * 2 * (whole + whole // 4) * 4
    assert in_rounds(FIARSE(0.001), problem, capacity=sizes) == (up + ROUNDS * 2 * math.ceil(whole / 8), up)


def test_fingerprints_of_sessions_travel_too() -> None:
    """6 sessions of 2 rounds; before each of the last 4 a fingerprint of one. Groups of 2 and 3 clients by turns."""
    clock = Sessions(6, 2, Rotation((2, 3)), start=Proposed(R=1.0, V=1), pilots=2)
    members = [len(clock.membership.members(s)) for s in range(6)]
    count = sum(2 * m for m in members) + sum(members[2:])
    e = Experiment({"algorithm": "a"}, PROBLEM, System(Steps(3)), FedAvg(), clock)
    assert sent(e) == (count * VECTOR, count * VECTOR)


PACE = Pace(0.01, 0.03, 0.02, Explicit((1.0, 1.5, 2.0, 3.0, 5.0)))


@pytest.mark.parametrize(("policy", "algorithm", "broadcast"), [
    (FedBuffPolicy(2), Asynchronous(), False),
    (FavanoPolicy(2), Favano(), False),
    (DeFedAvgNIIDPolicy(3), Asynchronous(), True),
    (DeFedAvgNIIDPolicy(3, empty="skip"), Asynchronous(), True),
    (DeFedAvgIIDPolicy(2), Asynchronous(), True),
    (DeFedAvgIIDPolicy(2, download_on_path=True), Asynchronous(), False),
])  # fmt: skip
def test_models_of_the_event_clock(policy: Policy, algorithm: Asynchronous, broadcast: bool) -> None:
    clock = Events(policy, aggregations=7, every=7)
    updates = sum(len(a.updates) for a in Schedule(policy, 5, 3, PACE).simulate(0, 7))
    e = Experiment({"algorithm": "a"}, PROBLEM, System(Steps(3), pace=PACE), algorithm, clock)
    assert sent(e) == ((7 * 5 if broadcast else updates) * VECTOR, updates * VECTOR)


# --- rates that decay -------------------------------------------------------------------------------------------------

RATES = {
    "constant": [1.0] * 8,
    "cosine": [(1 + math.cos(math.pi * t / 8)) / 2 for t in range(8)],
    "step": [1.0] * 4 + [0.1] * 2 + [0.01] * 2,
    "sqrt": [(t + 1) ** -0.5 for t in range(8)],
}
TOY, LR = Quadratic(clients=4, dim=3), 0.3


def end(clock: Any, algorithm: FedAvg, **system: Any) -> np.ndarray:
    (done,) = run([Experiment({"a": 1}, TOY, System(Steps(1), **system), algorithm, clock)], dtype=torch.float64)
    x: np.ndarray = done.state["x"].numpy()
    return x


@pytest.mark.parametrize("decay", RATES)
def test_a_rate_decays_over_rounds_sessions_and_aggregations(decay: Any) -> None:
    """One gradient step a round has a closed form; a job has the rate of the version that it starts from."""
    mean, left = TOY.minima().mean(0), np.prod([1 - LR * r for r in RATES[decay]])
    np.testing.assert_allclose(end(Rounds(8, lr_decay=decay), FedAvg(LR)), (1 - left) * mean, rtol=1e-12)
    whole = Alternating(1, 4)
    clock = Sessions(2, 8, whole, views=("test",), floor=0.2, lr_decay=decay)
    np.testing.assert_allclose(end(clock, FedAvg(LR)), (1 - left) * mean, rtol=1e-12)
    pace = Pace(0.01, 0.03, 0.02, Explicit((1.0, 1.5, 2.0, 30.0)))
    versions = [np.zeros(3)]
    for a in Schedule(AsySGPolicy(2, concurrency="N"), 4, 1, pace).simulate(0, 8):
        steps = [LR * RATES[decay][u.start_version] * (TOY.minima()[u.client] - versions[u.start_version])
                 for u in a.updates]  # fmt: skip
        versions.append(versions[-1] + np.mean(steps, axis=0))
    clock = Events(AsySGPolicy(2, concurrency="N"), aggregations=8, every=8, lr_decay=decay)
    np.testing.assert_allclose(end(clock, Asynchronous(LR), pace=pace), versions[-1], rtol=1e-12)
