"""The points where the algorithms converge on quadratics, and checks of the theory without a counterpart in the paper.

With F_m(x) = 0.5 |x - e_m|^2, as all toys of the paper have, t local steps move the client by K_t (e_m - x), and the
expected server step is x -> x - B x + c with B = sum f_m K_m, c = sum f_m K_m e_m (appendix C). The fixed point is
B^{-1} c. (Equations (36) and (38) print (I - B)^{-1} c, which contradicts (39).) f_m is what the algorithm makes of
client m's update on average; in a system that changes from round to round, B and c are averages over rounds.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.values import Floats, Ints
from reproduce.engine.rule import Rule
from reproduce.report.histories import Histories
from reproduce.streams import rng
from reproduce.systems import System

# ---- limits (appendix C)

FACTORS: Mapping[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "fedavg": lambda w, s, a: w * s,
    "os": lambda w, s, a: w * s,
    "ca_fedavg": lambda w, s, a: w,
    "fedvarp": lambda w, s, a: w,
    "fedau": lambda w, s, a: w,
    "fednova": lambda w, s, a: (w * s * a).sum() / (w * s).sum() * w * s / a,
    "fedacs": lambda w, s, a: w / a / (w / (s * a)).sum(),
}
"""f_m [N] of every algorithm from weights w, success probabilities s and accumulation norms A, all [N]."""

RATES: Mapping[str, Callable[[Floats, Floats, Floats], float]] = {
    "fedacs": lambda w, s, a: float((w * s * a).sum() * (w / (s * a)).sum()),
    "ca_fedavg": lambda w, s, a: float((w * s * a).sum() / (w * a).sum()),
    "fedvarp": lambda w, s, a: float((w * s * a).sum() / (w * a).sum()),
}
"""The calibrated rate in units of FedAvg's (appendix I.2); 1 for the algorithms that are not listed."""


def draws(system: System, clients: int, rounds: int = 1000) -> tuple[Ints, Floats]:
    """Steps and success probabilities [R, N] of the system's first rounds for seed 0; one row if it is static."""
    steps = np.stack([system.work.amounts(0, r, clients) for r in range(rounds)])
    success = np.stack([1 - system.link.failure(0, r, clients) for r in range(rounds)])
    if (steps == steps[0]).all() and (success == success[0]).all():
        return steps[:1], success[:1]
    return steps, success


def toy(e: Any) -> tuple[str, Ints, Floats, Floats]:
    """(algorithm, steps, success, minimisers) of a declared run.
    The algorithm is the one that its label begins with: "fedavg_prox_sgd" is FedAvg with another local rule."""
    minima = e.problem.minima()
    name = next(n for n in FACTORS if str(e.labels["algorithm"]).startswith(n))
    return name, *draws(e.system, len(minima)), minima


def step_of(e: Any, calibrated: bool = False) -> tuple[Floats, Floats]:
    """`expected_step` of a declared run."""
    name, steps, success, minima = toy(e)
    return expected_step(name, steps, success, e.algorithm.lr, minima, e.algorithm.rule(), calibrated)


def limit(e: Any, calibrated: bool = False) -> Floats:
    """The closed-form end point of a declared run."""
    return fixed_point(*step_of(e, calibrated))


def limit_to_zero(e: Any) -> tuple[Floats, Floats]:
    """(weights in the surrogate objective [N], end point) of a declared run in a static system with equal weights, as
    the rate goes to zero."""
    name, steps, success, minima = toy(e)
    w = np.full(len(minima), 1 / len(minima))
    weights = surrogate(name, w, success[0], steps[0].astype(float))
    return weights, weights @ minima


def surrogate(algorithm: str, w: Floats, s: Floats, a: Floats) -> Floats:
    """Omega [N]: the weights of the objective that the algorithm minimises as the rate goes to zero."""
    omega = FACTORS[algorithm](w, s, a) * a
    return omega / omega.sum()


def local_map(steps: int, lr: float, rule: Rule) -> Floats:
    """K [steps + 1]: after t local steps the client has moved by K[t] (e - x)."""
    moved, velocity = np.zeros(steps + 1), 0.0
    for t in range(steps):
        velocity = rule.momentum * velocity + 1 - moved[t] - rule.mu * moved[t]
        moved[t + 1] = moved[t] + lr * (1 - rule.decay) ** t * velocity
    return moved


def expected_step(
    algorithm: str, steps: Ints, success: Floats, lr: float, e: Floats, rule: Rule | None = None,
    calibrated: bool = False,
) -> tuple[Floats, Floats]:  # fmt: skip
    """B [d, d] and c [d] for equal weights and minimisers e [N, d]; steps and success [R, N] are draws of the system,
    one row if it is static."""
    rule = rule or Rule()
    clients, dim = e.shape
    w = np.full(clients, 1 / clients)
    b, c = 0.0, np.zeros(dim)
    for t, s in zip(steps, success, strict=True):
        a = rule.norms(t, lr)
        rate = lr * RATES[algorithm](w, s, a) if calibrated and algorithm in RATES else lr
        moved = local_map(int(steps.max()), rate, rule)[t]  # K_m [N]
        for share, point in zip(FACTORS[algorithm](w, s, a) * moved, e, strict=True):
            b += share
            c += share * point
    return b / len(steps) * np.eye(dim), c / len(steps)


def fixed_point(b: Floats, c: Floats) -> Floats:
    """B^{-1} c."""
    return np.asarray(np.linalg.solve(b, c), dtype=np.float64)


def expected_path(b: Floats, c: Floats, start: Floats, rounds: int) -> Floats:
    """E[X_r] for r = 0..rounds, [rounds + 1, d]."""
    path = [start]
    for _ in range(rounds):
        path.append(path[-1] - b @ path[-1] + c)
    return np.array(path)


# ---- one surrogate for all schemes of participation (appendix B); no bias where success probability times local work
# ---- is the same for all clients (Corollary 2.2)

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
    steps, success = (values[0] for values in draws(system, clients))
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
        received = np.take_along_axis(arrived, chosen, axis=1)
        total = np.bincount(chosen.ravel(), weights=received.ravel(), minlength=clients) / DRAWS
        yield scheme, float(np.linalg.norm((total * factor) @ updates - truth) / np.linalg.norm(truth))


def cells(histories: Histories, system: System) -> pd.DataFrame:
    """The exact biases, and the deviations of every seed."""
    rows = [(f"fedavg_{scheme}", -1, "closed_form_distance_eta_to_0", value) for scheme, value in consistency()]
    for seed in SEEDS:
        pairs = deviations(seed, system)
        rows += [(f"fedavg_{scheme}", seed, "expected_update_deviation", value) for scheme, value in pairs]
    return pd.DataFrame(rows, columns=["algorithm", "seed", "metric", "value"])
