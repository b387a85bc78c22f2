"""Checks of the theory without a counterpart in the paper: one surrogate for all schemes of participation (appendix B),
and no bias where success probability times local work is the same for all clients (Corollary 2.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from reproduce.papers.fedacs import closed_form
from reproduce.papers.fedacs.closed_form import Floats
from reproduce.report.histories import Histories
from reproduce.streams import rng
from reproduce.systems import System

SCHEMES = {"is": "importance", "us": "uniform", "os": "optimal", "full": "all clients"}
SIMULATED = ("is", "us", "os")
SEEDS, DRAWS, RATE = range(5), 200_000, 0.002
STEPS, SUCCESS = np.array([2, 4, 8]), np.array([0.8, 0.4, 0.2])
POINTS = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])


def exact_factors(scheme: str, w: Floats, s: Floats, p: Floats, k: int) -> Floats:
    """f_m [M]: the expected factor of client m's update in the aggregate, summed over all draws of the scheme.

    Equations (18)-(21), with the number of sampled clients in place of that of received ones in (19), as (24) needs.
    """
    m = len(w)
    if scheme == "full":
        return w * s
    f = np.zeros(m)
    if scheme == "us":
        sets = list(itertools.combinations(range(m), k))
        for chosen in sets:
            f[list(chosen)] += m / k * w[list(chosen)] / len(sets)
        return f * s
    p, weight = (w, np.ones(m)) if scheme == "is" else (p, w / p)
    for chosen in itertools.product(range(m), repeat=k):
        for c in chosen:
            f[c] += np.prod(p[list(chosen)]) * weight[c] / k
    return f * s


def consistency() -> Iterator[tuple[str, float]]:
    """(scheme, distance of the limit to X*) for clients with equal s_m A_m, as the rate goes to zero."""
    w = np.full(3, 1 / 3)
    p = np.linalg.norm(POINTS - np.array([1.0, 1.0]), axis=1)  # gradient norms at some model
    for scheme in SCHEMES:
        omega = exact_factors(scheme, w, SUCCESS, p / p.sum(), 2) * STEPS
        yield scheme, float(np.linalg.norm(omega @ POINTS / omega.sum() - POINTS.mean(0)))


def deviations(seed: int, system: System) -> Iterator[tuple[str, float]]:
    """(scheme, relative deviation of a simulated mean aggregate from that of full participation), static system."""
    clients, k = 20, 6
    steps, success = (values[0] for values in closed_form.draws(system, clients))
    w = np.full(clients, 1 / clients)
    e = rng("quadratic", 0).standard_normal((clients, 10))
    updates = (1 - (1 - RATE) ** steps)[:, None] * e
    truth = (w * success) @ updates
    for i, scheme in enumerate(SIMULATED):
        stream = rng("theory", seed, i)
        p = np.linalg.norm(e, axis=1)
        p = p / p.sum() if scheme == "os" else w
        if scheme == "us":
            chosen = np.argsort(stream.random((DRAWS, clients)), axis=1)[:, :k]
            factor = clients / k * w
        else:
            chosen, factor = stream.choice(clients, size=(DRAWS, k), p=p), w / p / k
        arrived = stream.random((DRAWS, clients)) < success
        heard = np.take_along_axis(arrived, chosen, axis=1)
        total = np.bincount(chosen.ravel(), weights=heard.ravel(), minlength=clients) / DRAWS
        yield scheme, float(np.linalg.norm((total * factor) @ updates - truth) / np.linalg.norm(truth))


def cells(histories: Histories, system: System) -> pd.DataFrame:
    """The exact biases, and the deviations of every seed."""
    rows = [(f"fedavg_{scheme}", -1, "closed_form_distance_eta_to_0", value) for scheme, value in consistency()]
    for seed in SEEDS:
        found = deviations(seed, system)
        rows += [(f"fedavg_{scheme}", seed, "expected_update_deviation", value) for scheme, value in found]
    return pd.DataFrame(rows, columns=["algorithm", "seed", "metric", "value"])
