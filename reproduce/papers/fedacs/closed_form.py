"""Where the algorithms converge on quadratics: the fixed points of appendix C, corrected (NumPy only).

With F_m(x) = 0.5 x'H_m x - E_m'x + const a local run moves the client by K_m (E_m - H_m x), and the expected server
step is x -> x - B x + c with B = sum f_m K_m H_m, c = sum f_m K_m E_m. The fixed point is B^{-1} c. (Equations (36) and
(38) print (I - B)^{-1} c, which contradicts (39).) f_m is what the algorithm makes of client m's update on average; in
a system that changes from round to round, B and c are averages over rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.engine.rule import Rule
from reproduce.systems import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _fednova(w: Floats, s: Floats, a: Floats) -> Floats:
    return (w * s * a).sum() / (w * s).sum() * w * s / a


def _fedacs(w: Floats, s: Floats, a: Floats) -> Floats:
    return w / a / (w / (s * a)).sum()


FACTORS: Mapping[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "fedavg": lambda w, s, a: w * s,
    "os": lambda w, s, a: w * s,
    "ca_fedavg": lambda w, s, a: w,
    "fedvarp": lambda w, s, a: w,
    "fedau": lambda w, s, a: w,
    "fednova": _fednova,
    "fedacs": _fedacs,
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
    """(algorithm, steps, success, minimisers) of a declared run with identity Hessians, as all toys of the paper have.
    The algorithm is the one that its label begins with: "fedavg_prox_sgd" is FedAvg with another local rule."""
    minima = e.problem.minima()
    name = next(n for n in FACTORS if str(e.labels["algorithm"]).startswith(n))
    return name, *draws(e.system, len(minima)), minima


def step_of(e: Any, calibrated: bool = False) -> tuple[Floats, Floats]:
    """`expected_step` of a declared run."""
    name, steps, success, minima = toy(e)
    return expected_step(name, steps, success, e.algorithm.lr, minima, rule=e.algorithm.rule(), calibrated=calibrated)


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


def local_map(steps: int, lr: float, rule: Rule, hessian: Floats) -> Floats:
    """K [steps + 1, d, d]: after t local steps the client has moved by K[t] (E - H x)."""
    one = np.eye(len(hessian))
    moved = np.zeros((steps + 1, *hessian.shape))
    velocity = np.zeros_like(hessian)
    for t in range(steps):
        velocity = rule.momentum * velocity + one - hessian @ moved[t] - rule.mu * moved[t]
        moved[t + 1] = moved[t] + lr * (1 - rule.decay) ** t * velocity
    return moved


def expected_step(
    algorithm: str,
    steps: Ints,
    success: Floats,
    lr: float,
    e: Floats,
    hessians: Floats | None = None,
    rule: Rule | None = None,
    calibrated: bool = False,
) -> tuple[Floats, Floats]:
    """B [d, d] and c [d] for equal weights; steps and success [R, N] are draws of the system, one row if it is static.

    e [N, d] are the vectors E_m; without `hessians` [N, d, d] all are the identity and E_m are the minimisers.
    """
    rule = rule or Rule()
    clients, dim = e.shape
    w = np.full(clients, 1 / clients)
    # Identity Hessians act on all coordinates alike: one number instead of a matrix, E_m as a row.
    h = np.ones((clients, 1, 1)) if hessians is None else hessians
    right = e[:, None, :] if hessians is None else e[:, :, None]
    b, c = np.zeros(h.shape[1:]), np.zeros(right.shape[1:])
    longest = int(steps.max())
    for t, s in zip(steps, success, strict=True):
        a = rule.norms(t, lr)
        rate = lr * RATES[algorithm](w, s, a) if calibrated and algorithm in RATES else lr
        shared = local_map(longest, rate, rule, h[0]) if hessians is None else None
        for m, f in enumerate(FACTORS[algorithm](w, s, a)):
            k = (shared if shared is not None else local_map(int(t[m]), rate, rule, h[m]))[t[m]]
            b += f * k @ h[m]
            c += f * k @ right[m]
    matrix = b / len(steps)
    return (matrix[0, 0] * np.eye(dim) if hessians is None else matrix), (c / len(steps)).ravel()


def fixed_point(b: Floats, c: Floats) -> Floats:
    """B^{-1} c."""
    return np.asarray(np.linalg.solve(b, c), dtype=np.float64)


def expected_path(b: Floats, c: Floats, start: Floats, rounds: int) -> Floats:
    """E[X_r] for r = 0..rounds, [rounds + 1, d]."""
    path = [start]
    for _ in range(rounds):
        path.append(path[-1] - b @ path[-1] + c)
    return np.array(path)
