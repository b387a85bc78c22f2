"""The mathematics of FedaGrac without the engine: the linear regression of Fig. 1, its paths on random instances, and
the clock of Fig. 5."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from reproduce.algorithms.fedagrac import FedaGrac, FedLin
from reproduce.algorithms.fednova import FedNova
from reproduce.declare.experiment import Experiment
from reproduce.declare.values import Floats
from reproduce.models.model import Model
from reproduce.problem import Quadratic

# --- the regression y = a x + b of Fig. 1: two clients whose data lie around different lines --------------------------
#
# The paper draws a schematic and gives no numbers; data, step counts and rates are ours. One client with few steps
# ("slow") sees a wide range of x, one with many ("fast") a narrow one. F_i(a, b) = mean (a x + b - y)^2 is a quadratic
# with the Hessian 2 mean [x, 1]'[x, 1], so the engine trains on quadratics and all gradients are exact.

SLOW, FAST = 0, 1
STEPS = (2, 40)
RATE = 0.01


def problem() -> Quadratic:
    """The clients' objectives as quadratics in (a, b), from the origin. Their data are 100 points of each client's line
    with noise of 0.1; the numbers stand here because each linear algebra rounds them otherwise."""
    minimisers = (1.1929207889377278, 2.605980801553449), (-2.9525515755902108, 0.7082012970747839)
    hessians = (
        ((2.999393939393938, 1.4210854715202004e-16), (1.4210854715202004e-16, 2.0)),
        ((0.20574074074074072, -8.881784197001253e-18), (-8.881784197001253e-18, 2.0)),
    )
    return Quadratic(2, 2, minimisers=minimisers, hessians=hessians, start=(0.0, 0.0))


# --- random instances -------------------------------------------------------------------------------------------------
#
# How often FedaGrac's path is the straighter one is asked of random lines and ranges of x; steps, rate and start are
# those of the instance above.

ROUNDS = COUNT = 300
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


def played(algorithm: Any, e: Floats, h: Floats, rounds: int) -> Iterator[tuple[list[Floats], Floats]]:
    """Yields for each round, from the origin, the clients' paths, [K + 1, n, 2] each, and the server's next model.

    FedaGrac, of any scheme, has lambda 1 and starts from full gradients. e, h: minimisers and Hessians of n instances,
    as of `random_quadratics`.
    """
    lin, calibrated, mu = isinstance(algorithm, FedLin), isinstance(algorithm, FedaGrac), getattr(algorithm, "mu", 0.0)
    first = {"fedagrac": [FAST], "first": [SLOW, FAST], "reverse": [SLOW]}.get(getattr(algorithm, "scheme", ""), [])
    mean = np.mean(STEPS)
    x, nu, nu_i = np.zeros(e.shape[::2]), np.zeros_like(e[:, :1]), np.zeros_like(e)
    for t in range(rounds):
        full = np.einsum("ncij,ncj->nci", h, x[:, None] - e)
        if lin or (calibrated and t == 0):
            nu, nu_i = full.mean(1, keepdims=True), full
        paths, means = [], []
        for i, steps in enumerate(STEPS):
            rate = algorithm.lr * mean / steps if lin else algorithm.lr
            y, gradients = [x], []
            for _ in range(steps):
                gradients.append(np.einsum("nij,nj->ni", h[:, i], y[-1] - e[:, i]))
                y.append(y[-1] - rate * (gradients[-1] + nu[:, 0] - nu_i[:, i] + mu * (y[-1] - x)))
            paths.append(np.array(y))
            means.append(np.mean(gradients, axis=0))
        lengths = [mean / steps if isinstance(algorithm, FedNova) else 1.0 for steps in STEPS]
        x = x + np.mean([length * (path[-1] - x) for length, path in zip(lengths, paths, strict=True)], axis=0)
        if calibrated:
            nu_i = np.stack(means, axis=1)
            sent = [full[:, i] if i in first else nu_i[:, i] for i in (SLOW, FAST)]
            nu = np.mean(sent, axis=0)[:, None]
        yield paths, x


def server_paths(algorithm: Any, e: Floats, h: Floats, rounds: int = ROUNDS) -> Floats:
    """The server's models [rounds + 1, n, 2]."""
    return np.array([np.zeros(e.shape[::2]), *(x for _, x in played(algorithm, e, h, rounds))])


def deviations(algorithm: Any, minimisers: Floats, hessians: Floats) -> Floats:
    """The largest distance [n] of the server's path from the straight line to the optimum, over that line's length."""
    paths = server_paths(algorithm, minimisers, hessians)
    best = np.linalg.solve(hessians.sum(1), np.einsum("ncij,ncj->ni", hessians, minimisers)[..., None])[..., 0]
    length = np.linalg.norm(best, axis=1)
    across = np.stack([-best[:, 1], best[:, 0]], axis=1) / length[:, None]
    deviation: Floats = np.abs(np.einsum("tni,ni->tn", paths, across)).max(0) / length
    return deviation


def local_paths(experiment: Experiment, rounds: int) -> list[list[Floats]]:
    """The clients' paths of a run of Fig. 1, for drawing: [round][client] -> [K + 1, 2]."""
    problem: Any = experiment.problem
    e, h = problem.minima()[None], np.array(problem.hessians)[None]
    return [[path[:, 0] for path in paths] for paths, _ in played(experiment.algorithm, e, h, rounds)]


# --- the horizontal axis of Fig. 5: simulated seconds of a synchronous round, and bytes sent --------------------------
#
# The paper's axis is wall-clock time on a cluster that is gone. In its place a model: a round lasts as long as its
# slowest client computes, then the server's link carries all messages one after the other.
#
#     round = max_i K_i * step + vectors * M * 4 P / bandwidth
#     step  = 3 * forward FLOPs * B / 1e12 + 40e-6 + tensors * kernels * 5e-6 + passes * 4 P / 3e11
#
# Arithmetic at 1 TFLOP/s; 40 us to start a step; 5 us per elementwise kernel and parameter tensor; passes over the
# parameters in memory at 300 GB/s. What an algorithm adds to a plain SGD step stands in `EXTRA`. Without overheads
# the two terms in us are left out: hardware that only computes and moves data.

BANDWIDTH = 1e9
EXTRA = {"fedavg": (2, 1, 3), "fednova": (2, 1, 3), "fedprox": (2, 3, 6), "scaffold": (4, 4, 8), "fedagrac": (4, 4, 8)}
"""Algorithm -> vectors sent up and down, kernels per tensor, passes over the parameters."""


def bytes_per_round(experiment: Experiment) -> float:
    """The bytes that one client and the server exchange in a round, both ways."""
    problem: Any = experiment.problem
    return EXTRA[str(experiment.labels["algorithm"])][0] * 4.0 * problem.model.parameters


def step_seconds(algorithm: str, model: Model, sample: tuple[int, ...], batch: int, overheads: bool = True) -> float:
    """Seconds of one local step of `algorithm` on batches of samples of shape (channels, ...)."""
    _, kernels, passes = EXTRA[algorithm]
    arithmetic = 3 * 2 * model.cost(sample).macs * batch / 1e12
    start, launch = (40e-6, 5e-6) if overheads else (0.0, 0.0)
    return arithmetic + start + len(model.shapes) * kernels * launch + passes * 4 * model.parameters / 3e11


def seconds(experiment: Experiment, seed: int, overheads: bool = True) -> Floats:
    """The simulated second at which each round ends, [rounds + 1]; the first entry is the start, 0."""
    problem: Any = experiment.problem
    algorithm = str(experiment.labels["algorithm"])
    step = step_seconds(algorithm, problem.model, problem.sample.shape, problem.batches.size, overheads)
    transfer = problem.clients * bytes_per_round(experiment) / BANDWIDTH
    work = experiment.system.work
    slowest = [work.amounts(seed, r, problem.clients).max() for r in range(experiment.clock.rounds)]
    return np.concatenate([[0.0], np.cumsum(np.array(slowest) * step + transfer)])
