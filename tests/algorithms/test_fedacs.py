"""FedACS and its baselines against a plain loop over rounds and clients, written from the paper."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from runs import run as play_all

from reproduce.algorithms.base import DistinctClients, FedAvg, WeightedDraws
from reproduce.algorithms.fedacs import CAFedAvg, Calibration, DecayFedAvg, FedACS
from reproduce.algorithms.fedau import FedAU
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fedvarp import FedVARP
from reproduce.algorithms.os_sampling import OptimalSampling, OptimalSamplingOriginal, inclusion
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.objectives import Objectives, QuadraticSplit
from reproduce.papers.fedacs.variants import DistinctDraws, FedACSByLinks, FedAUByDraws
from reproduce.problem import Quadratic
from reproduce.streams import rng
from reproduce.systems import System, link, work

M, D, K, ETA, ROUNDS, SEED = 6, 3, 4, 0.03, 25, 7
POINTS = np.random.default_rng(1).normal(size=(M, D))
PROBLEM = Quadratic(M, D, minimisers=tuple(map(tuple, POINTS.tolist())))
SYSTEM = System(work.Halves((1, 3), (4, 7), "steps"), link.Halves((0.3, 0.6), (0.1, 0.2)))
W = np.array([0.25, 0.05, 0.15, 0.1, 0.3, 0.15])
"""Not equal, so that a share that is forgotten, or that of another client, shows."""
DRAWS = WeightedDraws(K)


@pytest.fixture(autouse=True)
def shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients' shares in the objective are W; a quadratic by itself has equal ones."""
    plain = QuadraticSplit.__init__

    def unequal(self: QuadraticSplit, arena: Objectives, seed: int) -> None:
        plain(self, arena, seed)
        self.weights = W

    monkeypatch.setattr(QuadraticSplit, "__init__", unequal)


def simulate(algorithm: FedAvg, system: System = SYSTEM, rounds: int = ROUNDS) -> np.ndarray:
    """X_0 .. X_R of the engine."""
    experiment = Experiment({}, PROBLEM, system, algorithm, Rounds(rounds, every=rounds, trace=1))
    runs = play_all([experiment], [SEED], dtype=torch.float64)
    values = [v for _, _, metric, _, v in runs[0].state["history"] if metric == "x"]
    return np.vstack([np.zeros(D), np.array(values).reshape(rounds, D)])


class World:
    """One round as the paper describes it: T, q, who arrives, draws, local runs from x."""

    def __init__(self, r: int, x: np.ndarray) -> None:
        self.r, self.x = r, x
        self.t = SYSTEM.work.amounts(SEED, r, M).astype(float)
        self.s = 1 - SYSTEM.link.failure(SEED, r, M)
        self.z = SYSTEM.link.arrived(SEED, r, M)

    def draw(self, p: np.ndarray) -> np.ndarray:
        """n_m, how often each client is drawn."""
        drawn = rng("sampling", SEED, self.r).choice(M, size=K, p=p)
        return np.array([(drawn == m).sum() for m in range(M)])

    def distinct(self) -> np.ndarray:
        """Which K clients are drawn without replacement."""
        return np.isin(np.arange(M), rng("sampling", SEED, self.r).choice(M, size=K, replace=False))

    def update(self, m: int, eta: float) -> np.ndarray:
        y = self.x.copy()
        for _ in range(int(self.t[m])):
            y = y - eta * (y - POINTS[m])
        return y - self.x

    @property
    def length(self) -> float:
        return float((W * self.s * self.t).sum())


def naive(step: Callable[[World], np.ndarray]) -> np.ndarray:
    x = np.zeros(D)
    path = [x]
    for r in range(ROUNDS):
        x = x + step(World(r, x))
        path.append(x)
    return np.array(path)


def check(algorithm: FedAvg, step: Callable[[World], np.ndarray]) -> None:
    expected = naive(step)
    assert np.abs(np.diff(expected, axis=0)).max() > 1e-3
    np.testing.assert_allclose(simulate(algorithm), expected, rtol=0, atol=1e-12)


def test_nobody_arrives() -> None:
    """The server stays where it is, except for algorithms that remember updates."""
    deaf = System(work.Steps(3), link.Same(1.0))
    received = FedNova(ETA, DRAWS, effective_steps="received")
    varp = (FedVARP(ETA, DRAWS), FedVARP(ETA, DRAWS, variant="original"))
    for algorithm in (FedAvg(ETA, DRAWS), FedAU(ETA, DRAWS), received, *varp, OptimalSampling(ETA, DRAWS)):
        assert np.all(simulate(algorithm, deaf, 4) == 0)
    with pytest.raises(ValueError, match="positive probability"):
        simulate(FedACS(ETA, DRAWS), deaf, 4)


def average(w: World, n: np.ndarray, eta: float, weight: np.ndarray) -> np.ndarray:
    return sum((n[m] * weight[m] / K * w.update(m, eta) for m in range(M) if w.z[m]), np.zeros(D))


def test_fedavg() -> None:
    check(FedAvg(ETA, DRAWS), lambda w: average(w, w.draw(W), ETA, np.ones(M)))


def fedacs(w: World, eta: float) -> np.ndarray:
    p = W / (w.s * w.t)
    return average(w, w.draw(p / p.sum()), eta, np.ones(M))


def acs_factor(w: World) -> float:
    return w.length * float((W / (w.s * w.t)).sum())


def test_fedacs() -> None:
    check(FedACS(ETA, DRAWS), lambda w: fedacs(w, ETA))


def test_fedacs_calibrated_per_round() -> None:
    check(FedACS(ETA, DRAWS, calibration=Calibration()), lambda w: fedacs(w, ETA * acs_factor(w)))


def test_fedacs_calibrated_at_the_server() -> None:
    algorithm = FedACS(ETA, DRAWS, calibration=Calibration(target="server"))
    check(algorithm, lambda w: acs_factor(w) * fedacs(w, ETA))


def test_fedacs_by_links_alone() -> None:
    """p ~ w / s, calibrated for a division by all draws; divided by those that arrived."""

    def step(w: World) -> np.ndarray:
        p = W / w.s / (W / w.s).sum()
        n, eta = w.draw(p), ETA * w.length / (p * w.s * w.t).sum()
        heard = (n * w.z).sum()
        return K / heard * average(w, n, eta, np.ones(M)) if heard else np.zeros(D)

    check(FedACSByLinks(ETA, DRAWS, calibration=Calibration()), step)


def test_fedacs_with_distinct_clients() -> None:
    def step(w: World) -> np.ndarray:
        p = W / (w.s * w.t)
        drawn = rng("sampling", SEED, w.r).choice(M, size=K, replace=False, p=p / p.sum())
        return acs_factor(w) * average(w, np.isin(np.arange(M), drawn), ETA, np.ones(M))

    check(FedACS(ETA, DistinctDraws(K), calibration=Calibration(target="server")), step)


def test_fedacs_calibrated_by_the_mean() -> None:
    worlds = [World(r, np.zeros(D)) for r in range(40)]
    length = sum(1 / (W / (w.s * w.t)).sum() for w in worlds)
    eta = ETA * sum(w.length for w in worlds) / length
    check(FedACS(ETA, DRAWS, calibration=Calibration("mean", rounds=40)), lambda w: fedacs(w, eta))


@pytest.mark.parametrize("calibrated", [False, True])
def test_ca_fedavg(calibrated: bool) -> None:
    def step(w: World) -> np.ndarray:
        eta = ETA * w.length / (W * w.t).sum() if calibrated else ETA
        return average(w, w.draw(W), eta, 1 / w.s)

    check(CAFedAvg(ETA, DRAWS, calibration=Calibration() if calibrated else None), step)


@pytest.mark.parametrize("participation", [DRAWS, DistinctClients(K)])
@pytest.mark.parametrize("target", ["", "local", "server"])
def test_fedvarp_of_the_paper(target: Any, participation: WeightedDraws | DistinctClients) -> None:
    memory: dict[int, np.ndarray] = {}

    def step(w: World) -> np.ndarray:
        factor = w.length / (W * w.t).sum()
        eta = ETA * factor if target == "local" else ETA
        n, g, new = w.draw(W) if participation is DRAWS else M * W * w.distinct(), np.zeros(D), {}
        for m in range(M):
            if n[m] and w.z[m]:
                new[m] = w.update(m, eta)
                g = g + n[m] / K * new[m]
            elif n[m] and m in memory:
                g = g + n[m] / K * memory[m]
        memory.update(new)
        return factor * g if target == "server" else g

    check(FedVARP(ETA, participation, calibration=Calibration(target=target) if target else None), step)


def test_fedvarp_as_published() -> None:
    memory = np.zeros((M, D))

    def step(w: World) -> np.ndarray:
        n, g = w.draw(W), W @ memory
        heard = [m for m in range(M) if n[m] and w.z[m]]
        updates = {m: w.update(m, ETA) for m in heard}
        for m in heard:
            g = g + (updates[m] - memory[m]) / len(heard)
        for m in heard:
            memory[m] = updates[m]
        return g

    check(FedVARP(ETA, DRAWS, variant="original"), step)


def test_fednova() -> None:
    def population(w: World) -> np.ndarray:
        tau = (W * w.s * w.t).sum() / (W * w.s).sum()
        return tau * average(w, w.draw(W), ETA, 1 / w.t)

    def received(w: World) -> np.ndarray:
        n = w.draw(W) * w.z
        tau = (n * w.t).sum() / n.sum() if n.sum() else 0.0
        return tau * average(w, n, ETA, 1 / w.t)

    check(FedNova(ETA, DRAWS), population)
    check(FedNova(ETA, DRAWS, effective_steps="received"), received)


@pytest.mark.parametrize("by_draws", [False, True])
@pytest.mark.parametrize("cutoff", [3, 50])
def test_fedau(cutoff: int, by_draws: bool) -> None:
    """by_draws: an update weighs n / K in place of w."""
    intervals: list[list[int]] = [[] for _ in range(M)]
    waited = [0] * M

    def step(w: World) -> np.ndarray:
        n, g = w.draw(W), np.zeros(D)
        for m in range(M):
            mean = sum(intervals[m]) / len(intervals[m]) if intervals[m] else 1.0
            if n[m] and w.z[m]:
                g = g + (n[m] / K if by_draws else W[m]) * mean * w.update(m, ETA)
                intervals[m].append(waited[m] + 1)
                waited[m] = 0
            else:
                waited[m] += 1
                if waited[m] >= cutoff:
                    intervals[m].append(waited[m])
                    waited[m] = 0
        return g

    check((FedAUByDraws if by_draws else FedAU)(ETA, DRAWS, cutoff=cutoff), step)
    assert max(map(max, intervals)) == min(cutoff, max(map(max, intervals))) > 2


def test_optimal_sampling() -> None:
    def step(w: World) -> np.ndarray:
        p = np.array([W[m] * np.linalg.norm(w.x - POINTS[m]) for m in range(M)])
        p = p / p.sum()
        return average(w, w.draw(p), ETA, W / p)

    check(OptimalSampling(ETA, DRAWS), step)


def test_optimal_sampling_as_published() -> None:
    def step(w: World) -> np.ndarray:
        updates = np.array([w.update(m, ETA) for m in range(M)])
        u = np.array([W[m] * np.linalg.norm(updates[m]) for m in range(M)])
        p = brute_force_inclusion(u, 4)
        inside = rng("inclusion", SEED, w.r).random(M) < p
        return sum((W[m] / p[m] * updates[m] for m in range(M) if inside[m] and w.z[m]), np.zeros(D))

    check(OptimalSamplingOriginal(ETA, expected=4), step)


def brute_force_inclusion(u: np.ndarray, k: int) -> np.ndarray:
    """Among all sets of clients with probability one, the feasible solution with the least sum of u^2 / p."""
    best, found = np.inf, np.ones(len(u))
    for size in range(k + 1):
        for saturated in itertools.combinations(range(len(u)), size):
            rest = [m for m in range(len(u)) if m not in saturated]
            p = np.ones(len(u))
            p[rest] = (k - size) * u[rest] / u[rest].sum()
            if (p[rest] <= 1 + 1e-12).all() and (p > 0).all() and (u**2 / p).sum() < best - 1e-15:
                best, found = (u**2 / p).sum(), p
    return found


def test_inclusion_probabilities() -> None:
    generator = np.random.default_rng(3)
    for u in (*generator.lognormal(0, 1.5, (30, 6)), np.array([1.0, 1, 1, 1, 1, 100])):
        for k in (1, 3, 5):
            p = inclusion(u, k)
            assert p.sum() == pytest.approx(k)
            np.testing.assert_allclose(p, brute_force_inclusion(u, k), atol=1e-12)
    np.testing.assert_array_equal(inclusion(u, 6), np.ones(6))


def test_local_solvers() -> None:
    def run(w: World, m: int, mu: float = 0.0, decay: float = 0.0, momentum: float = 0.0) -> np.ndarray:
        y, v = w.x.copy(), np.zeros(D)
        for t in range(int(w.t[m])):
            v = momentum * v + (y - POINTS[m]) + mu * (y - w.x)
            y = y - ETA * (1 - decay) ** t * v
        return y - w.x

    for algorithm, options in (
        (FedProx(ETA, DRAWS, mu=1.0), {"mu": 1.0}),
        (DecayFedAvg(ETA, DRAWS, decay=0.05), {"decay": 0.05}),
        (FedAvg(ETA, DRAWS, momentum=0.3), {"momentum": 0.3}),
    ):

        def step(w: World, options: dict[str, float] = options) -> np.ndarray:
            n = w.draw(W)
            return sum((n[m] / K * run(w, m, **options) for m in range(M) if w.z[m]), np.zeros(D))

        check(algorithm, step)
