"""Fig. 1 without the engine: random instances, and the clients' ways between the server's models.

The paper draws one schematic. How often FedaGrac's path is the straighter one is asked of random lines and ranges of x;
steps, rate and start are those of the reference instance. All gradients are exact, so a round is an affine map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduce.algorithms.fedagrac import FedaGrac
from reproduce.algorithms.fedlin import FedLin
from reproduce.declare.experiment import Experiment
from reproduce.papers.fedagrac.regression import FAST, RATE, SLOW, STEPS, Floats

ROUNDS = 300
COUNT = 300
RIVALS = ("fedavg", "fednova", "scaffold")
TIE = 1e-9
"""Relative deviations that differ by less are rounding."""


def random_quadratics(count: int = COUNT, seed: int = 0) -> tuple[Floats, Floats]:
    """Minimisers (a, b) [n, 2, 2] and Hessians [n, 2, 2, 2] of two clients: lines with slope and intercept uniform in
    [-3, 3], x spread evenly over [-r, r] with r uniform in [0.5, 2.5]."""
    generator = np.random.default_rng(seed)
    minimisers = generator.uniform(-3, 3, (count, 2, 2))
    hessians = np.zeros((count, 2, 2, 2))
    hessians[..., 0, 0] = 2 * generator.uniform(0.5, 2.5, (count, 2)) ** 2 / 3
    hessians[..., 1, 1] = 2
    return minimisers, hessians


def server_paths(algorithm: str, minimisers: Floats, hessians: Floats, rounds: int = ROUNDS) -> Floats:
    """The server's models [rounds + 1, n, 2] from the origin; SCAFFOLD and FedaGrac (lambda 1) start from full
    gradients."""
    steps = np.array(STEPS, float)
    shrink = np.stack(
        [np.linalg.matrix_power(np.eye(2) - RATE * hessians[:, i], STEPS[i]) for i in (SLOW, FAST)], axis=1
    )
    x = np.zeros((len(minimisers), 2))
    correction = np.zeros_like(minimisers)
    path = [x]
    for t in range(rounds):
        gradients = np.einsum("ncij,ncj->nci", hessians, x[:, None] - minimisers)
        if t == 0 and algorithm in ("scaffold", "fedagrac"):
            correction = gradients.mean(1, keepdims=True) - gradients
        goal = minimisers - np.linalg.solve(hessians, correction[..., None])[..., 0]
        moved = x[:, None] - goal - np.einsum("ncij,ncj->nci", shrink, x[:, None] - goal)
        if algorithm in ("scaffold", "fedagrac"):
            own = moved / (RATE * steps[:, None]) - correction
            sent = own.copy()
            if algorithm == "fedagrac":
                sent[:, FAST] = gradients[:, FAST]
            correction = sent.mean(1, keepdims=True) - own
        if algorithm == "fednova":
            moved = moved / steps[:, None] * steps.mean()
        x = x - moved.mean(1)
        path.append(x)
    return np.array(path)


def deviations(algorithm: str, minimisers: Floats, hessians: Floats) -> Floats:
    """Largest distance [n] of the server's path from the straight line to the optimum, relative to its length."""
    paths = server_paths(algorithm, minimisers, hessians)
    best = np.linalg.solve(hessians.sum(1), np.einsum("ncij,ncj->ni", hessians, minimisers)[..., None])[..., 0]
    length = np.linalg.norm(best, axis=1)
    across = np.stack([-best[:, 1], best[:, 0]], axis=1) / length[:, None]
    found: Floats = np.abs(np.einsum("tni,ni->tn", paths, across)).max(0) / length
    return found


def local_paths(experiment: Experiment, server: Floats, rounds: int) -> list[list[Floats]]:
    """For drawing: the clients' ways between the models of the path `server` [T, 2]; [round][client] -> [K + 1, 2]."""
    problem: Any = experiment.problem
    algorithm, numbers = experiment.algorithm, experiment.system.work.values
    e, h = problem.minima(), np.array(problem.hessians)
    mu, calibrated = getattr(algorithm, "mu", 0.0), isinstance(algorithm, FedaGrac)
    first = {"fedagrac": [FAST], "first": [SLOW, FAST], "reverse": [SLOW]}.get(getattr(algorithm, "scheme", ""), [])
    nu = own = np.zeros((2, 2))
    out = []
    for t in range(rounds):
        full = np.einsum("cij,cj->ci", h, server[t] - e)
        if isinstance(algorithm, FedLin) or (t == 0 and calibrated):
            nu, own = full.mean(0), full
        paths, means = [], []
        for i, steps in enumerate(numbers):
            rate = algorithm.lr * np.mean(numbers) / steps if isinstance(algorithm, FedLin) else algorithm.lr
            y, gradients = [server[t]], []
            for _ in range(steps):
                gradients.append(h[i] @ (y[-1] - e[i]))
                y.append(y[-1] - rate * (gradients[-1] + (nu - own)[i] + mu * (y[-1] - server[t])))
            paths.append(np.array(y))
            means.append(np.mean(gradients, axis=0))
        out.append(paths)
        if calibrated:
            own = np.array(means)
            nu = np.mean([full[i] if i in first else own[i] for i in (SLOW, FAST)], axis=0)
    return out
