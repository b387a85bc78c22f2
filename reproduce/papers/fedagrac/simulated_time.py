"""Simulated seconds of a synchronous round, and bytes sent: the horizontal axis of Fig. 5.

The paper's axis is wall-clock time on a cluster that is gone. In its place a model: a round lasts as long as its
slowest client computes, then the server's link carries all messages one after the other.

    round = max_i K_i * step + vectors * M * 4 P / bandwidth
    step  = 3 * forward FLOPs * B / 1e12 + 40e-6 + tensors * kernels * 5e-6 + passes * 4 P / 3e11

Arithmetic at 1 TFLOP/s; 40 us to start a step; 5 us per elementwise kernel and parameter tensor; passes over the
parameters in memory at 300 GB/s. What an algorithm adds to a plain SGD step stands in `EXTRA`. Without overheads
the two terms in us are left out: hardware that only computes and moves data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.experiment import Experiment
from reproduce.models.model import Model

BANDWIDTH = 1e9
EXTRA = {"fedavg": (2, 1, 3), "fednova": (2, 1, 3), "fedprox": (2, 3, 6), "scaffold": (4, 4, 8), "fedagrac": (4, 4, 8)}
"""Algorithm -> vectors sent up and down, kernels per tensor, passes over the parameters."""


def bytes_per_round(experiment: Experiment) -> float:
    """What one client and the server exchange in a round, both ways."""
    problem: Any = experiment.problem
    return EXTRA[str(experiment.labels["algorithm"])][0] * 4.0 * problem.model.parameters


def step_seconds(algorithm: str, model: Model, sample: tuple[int, ...], batch: int, overheads: bool = True) -> float:
    """Seconds of one local step of `algorithm` on batches of samples of shape (channels, ...)."""
    _, kernels, passes = EXTRA[algorithm]
    arithmetic = 3 * model.cost(sample).forward_flops * batch / 1e12
    start, launch = (40e-6, 5e-6) if overheads else (0.0, 0.0)
    return arithmetic + start + len(model.shapes) * kernels * launch + passes * 4 * model.parameters / 3e11


def seconds(experiment: Experiment, seed: int, overheads: bool = True) -> NDArray[np.float64]:
    """When each round ends, [rounds + 1]; the first entry is the start, 0."""
    problem: Any = experiment.problem
    algorithm = str(experiment.labels["algorithm"])
    step = step_seconds(algorithm, problem.model, problem.sample.shape, problem.batches.size, overheads)
    transfer = problem.clients * bytes_per_round(experiment) / BANDWIDTH
    work = experiment.system.work
    slowest = [work.amounts(seed, r, problem.clients).max() for r in range(experiment.clock.rounds)]
    return np.concatenate([[0.0], np.cumsum(np.array(slowest) * step + transfer)])
