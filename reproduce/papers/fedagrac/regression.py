"""The linear regression behind Fig. 1: y = a x + b with two clients whose data lie around different lines.

The paper draws a schematic and gives no numbers; data, step counts and rates are ours. One client with few steps
("slow") sees a wide range of x, one with many ("fast") a narrow one. F_i(a, b) = mean (a x + b - y)^2 is a quadratic
with the Hessian 2 mean [x, 1]'[x, 1], so the engine trains on quadratics and all gradients are exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import FedaGrac
from reproduce.algorithms.fedlin import FedLin
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Panel
from reproduce.problems import Quadratic
from reproduce.systems import System
from reproduce.systems.work import PerClient

Floats = NDArray[np.float64]

SLOW, FAST = 0, 1
STEPS = (2, 40)
RATE = 0.01
ROUNDS = 300
START = (0.0, 0.0)

ALGORITHMS = {
    "fedavg": FedAvg(RATE),
    "fednova": FedNova(RATE),
    "fedprox": FedProx(RATE, mu=0.1),
    "fedlin": FedLin(RATE),
    "scaffold": FedaGrac(RATE, scheme="avg", start="full_gradient"),
    "fedagrac": FedaGrac(RATE, start="full_gradient"),
    "fedagrac_first": FedaGrac(RATE, scheme="first", start="full_gradient"),
    "fedagrac_reverse": FedaGrac(RATE, scheme="reverse", start="full_gradient"),
}
"""SCAFFOLD is the average scheme with lambda = 1 (Sec. 4.2), and so starts from full gradients like the others."""


@cache
def data() -> tuple[tuple[Floats, Floats], ...]:
    """x and y [100] of the slow and of the fast client."""
    noise = np.random.RandomState(0)
    slow, fast = np.linspace(-2.1, 2.1, 100), np.linspace(-0.55, 0.55, 100)
    return (
        (slow, 1.2 * slow + 2.6 + 0.1 * noise.standard_normal(100)),
        (fast, -2.9 * fast + 0.7 + 0.1 * noise.standard_normal(100)),
    )


@cache
def quadratics() -> tuple[Floats, Floats]:
    """Minimisers (a, b) [2, 2] and Hessians [2, 2, 2] of the clients."""
    minimisers, hessians = [], []
    for x, y in data():
        rows = np.stack([x, np.ones_like(x)], axis=1)
        minimisers.append(np.linalg.lstsq(rows, y, rcond=None)[0])
        hessians.append(2 * rows.T @ rows / len(x))
    return np.array(minimisers), np.array(hessians)


def optimum() -> Floats:
    """The minimiser (a, b) of the two clients' mean objective."""
    e, h = quadratics()
    solution: Floats = np.linalg.solve(h.sum(0), np.einsum("cij,cj->i", h, e))
    return solution


@cache
def panel() -> Panel:
    """All algorithms from the same start; the same at every scale."""
    e, h = quadratics()
    problem = Quadratic(2, 2, minimisers=_nested(e), hessians=tuple(_nested(m) for m in h), start=START)
    return Panel(
        "fig1",
        tuple(
            Experiment(
                {"instance": "reference", "algorithm": name},
                problem,
                System(work=PerClient(STEPS)),
                algorithm,
                Rounds(ROUNDS, every=10, trace=1),
            )
            for name, algorithm in ALGORITHMS.items()
        ),
        (0,),
    )


def _nested(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in row) for row in matrix)


def local_paths(name: str, server: Floats, rounds: int) -> list[list[Floats]]:
    """For drawing: the clients' ways between the models of the path `server` [T, 2]; [round][client] -> [K + 1, 2]."""
    e, h = quadratics()
    mean_steps = sum(STEPS) / len(STEPS)
    mu = 0.1 if name == "fedprox" else 0.0
    calibrated = isinstance(ALGORITHMS[name], FedaGrac)
    nu = own = np.zeros((2, 2))
    out = []
    for t in range(rounds):
        full = np.einsum("cij,cj->ci", h, server[t] - e)
        if name == "fedlin" or (t == 0 and calibrated):
            nu, own = full.mean(0), full
        paths, means = [], []
        for i, steps in enumerate(STEPS):
            rate = RATE * mean_steps / steps if name == "fedlin" else RATE
            y, gradients = [server[t]], []
            for _ in range(steps):
                gradients.append(h[i] @ (y[-1] - e[i]))
                y.append(y[-1] - rate * (gradients[-1] + (nu - own)[i] + mu * (y[-1] - server[t])))
            paths.append(np.array(y))
            means.append(np.mean(gradients, axis=0))
        out.append(paths)
        if calibrated:
            first = {"fedagrac": [FAST], "fedagrac_first": [SLOW, FAST], "fedagrac_reverse": [SLOW]}.get(name, [])
            own = np.array(means)
            nu = np.mean([full[i] if i in first else own[i] for i in (SLOW, FAST)], axis=0)
    return out
