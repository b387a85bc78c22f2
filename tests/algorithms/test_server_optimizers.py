"""Optimizers on the server against loops written from the papers' pseudocode, together and alone; what `play` gives."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.server_optimizers import FedAdagrad, FedAdam, FedAvgM, FedYogi
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.play import play
from reproduce.play.benchmarks import find
from reproduce.play.specs import ALL, NAMES, parse
from reproduce.problem import Quadratic
from reproduce.systems import System
from reproduce.systems.work import PerClient

STEPS, RATE, ROUNDS = (1, 4, 2), 0.1, 9
PROBLEM = Quadratic(clients=3, dim=5)


def deltas(x: np.ndarray) -> np.ndarray:
    """The mean of x_i^K - x over the clients, after K steps of gradient descent of each."""
    ends = []
    for minimiser, steps in zip(PROBLEM.minima(), STEPS, strict=True):
        y = x.copy()
        for _ in range(steps):
            y = y - RATE * (y - minimiser)
        ends.append(y)
    mean: np.ndarray = np.mean(ends, axis=0) - x
    return mean


def fedavgm(eta: float, beta: float) -> np.ndarray:
    """v <- beta v + dw;  w <- w - v, where dw = w - w_i (Hsu et al., Section 4.3), by which w is left further."""
    w, v = np.zeros(5), np.zeros(5)
    for _ in range(ROUNDS):
        v = beta * v - deltas(w)
        w = w - eta * v
    return w


def adaptive(kind: str, eta: float, beta1: float, beta2: float, tau: float) -> np.ndarray:
    """Algorithm 2 of Reddi et al., coordinate by coordinate."""
    x, m, v = [0.0] * 5, [0.0] * 5, [tau * tau] * 5
    for _ in range(ROUNDS):
        for j, delta in enumerate(deltas(np.array(x)).tolist()):
            m[j] = beta1 * m[j] + (1 - beta1) * delta
            if kind == "adagrad":
                v[j] += delta * delta
            elif kind == "adam":
                v[j] = beta2 * v[j] + (1 - beta2) * delta * delta
            elif v[j] > delta * delta:
                v[j] -= (1 - beta2) * delta * delta
            else:
                v[j] += (1 - beta2) * delta * delta
            x[j] += eta * m[j] / (v[j] ** 0.5 + tau)
    return np.array(x)


CASES: dict[str, tuple[FedAvg, Callable[[], np.ndarray]]] = {
    "fedavgm": (FedAvgM(RATE, server_lr=0.7, beta=0.6), lambda: fedavgm(0.7, 0.6)),
    "fedadagrad": (FedAdagrad(RATE, beta1=0.3, tau=0.01), lambda: adaptive("adagrad", 0.1, 0.3, 0, 0.01)),
    "fedadam": (FedAdam(RATE, server_lr=0.3, beta2=0.8), lambda: adaptive("adam", 0.3, 0.9, 0.8, 1e-3)),
    "fedyogi": (FedYogi(RATE, server_lr=0.3, beta2=0.6, tau=0.1), lambda: adaptive("yogi", 0.3, 0.9, 0.6, 0.1)),
}


def experiments() -> Iterator[Experiment]:
    for name, (algorithm, _) in CASES.items():
        yield Experiment({"algorithm": name}, PROBLEM, System(work=PerClient(STEPS)), algorithm, Rounds(ROUNDS))


def test_they_are_the_loops_of_the_papers_together_and_alone() -> None:
    together = run([*experiments()], dtype=torch.float64)
    alone = [played for e in experiments() for played in run([e], dtype=torch.float64)]
    for played, (_, loop) in zip(together + alone, [*CASES.values()] * 2, strict=True):
        np.testing.assert_allclose(played.state["x"], loop(), rtol=1e-12)


def test_play_knows_them_with_a_rate_of_the_server_of_their_own(folder: Path) -> None:
    place = find("fedagrac-steps", "smoke")
    base = place.template.algorithm
    for name, rate in {"fedavgm": base.server_lr, "fedadam": 0.1, "fedyogi": 0.1, "fedadagrad": 0.1}.items():
        algorithm = place.experiment(parse(name)).algorithm
        assert (algorithm.lr, algorithm.participation, algorithm.server_lr) == (base.lr, base.participation, rate)
    assert place.experiment(parse("fedadam(server_lr=0.5)")).algorithm.server_lr == 0.5
    frame = play(["fedavgm(beta=0)", "fedyogi"], on="fedagrac-steps", scale="smoke", seeds=(0, 1))
    difference = frame.groupby("algorithm")["difference"].apply(lambda d: d.abs().max())
    assert difference["fedavgm(beta=0)"] == pytest.approx(0, abs=1e-9)
    assert difference["fedyogi"] > 0
    others = {*CASES, "median", "trimmed_mean", "krum", "multi_krum"}
    assert set(NAMES) - set(ALL) == others, "of `--all`, and of the committed matrix, are those of the papers"
