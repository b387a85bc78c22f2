"""The expected work of a run, samples, FLOPs and bytes, and its seconds by the rates of the committed runs.

`rates.csv` holds what the committed runs took, a line for each algorithm with each size of network. An experiment takes
the rate of the lines that are most like it. `python -m benchmarks plan` writes the file from `results/`, and says how
far such estimates are from what was measured.
"""

import csv
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce.declare.experiment import Experiment
from reproduce.engine.rule import Rule
from reproduce.engine.strategies import LARGE, macs

FILE = Path(__file__).with_name("rates.csv")
START = 2.0
"""Seconds until a job trains: libraries are read, models traced, kernels loaded."""
CUDA = (1e13, 5e-4)
"""FLOPs a second of a GPU, and seconds of a client's step at least: some 50 operators of 10 us. A guess until one is
measured; small networks share a step in stacks of 32."""
REFERENCE = 0.0009
"""Seconds of `timing` on the processor of the rates."""


@dataclass(frozen=True)
class Work:
    """The work of all seeds together: training samples, floating-point operations, peak bytes.

    A training sample counts as three forward passes, and as one more for each other model that its step asks.
    """

    samples: float
    flops: float
    bytes: float


def estimate(experiment: Experiment, seeds: Sequence[int]) -> Work:
    """The expected work of an experiment with all its seeds; an upper bound where runs stop at a target."""
    problem: Any = experiment.problem
    clock, runs, model = experiment.clock, len(seeds), problem.model
    if model is None:
        return Work(0.0, 0.0, 1e6)
    samples = runs * clock.samples(experiment)
    evaluated = runs * clock.evaluations(experiment) * problem.sizes[1]
    passes = samples * (3 + extra_passes(experiment.algorithm.rule())) + evaluated
    return Work(samples, 2 * macs(model, problem.sample.shape) * passes, 4.0 * model.parameters * 40 + 5e8)


def extra_passes(rule: Rule) -> int:
    """Forward passes of a step through other models than the one it trains: teachers, the start, the previous one. A
    second pass of the model itself, there and back, is three."""
    return bool(rule.distill) + (2 + 3 * rule.second_pass) * bool(rule.contrast)


def state_bytes(experiment: Experiment) -> float:
    """Bytes of the state of a run, which lives as long as its job: model, server's vectors, vectors of the clients, and
    of sessions the stored models with their fingerprints. A quadratic has a few numbers."""
    problem: Any = experiment.problem
    clients, sessions = problem.clients, getattr(experiment.clock, "sessions", 0)
    return _vectors(problem, 2 + experiment.algorithm.per_client * clients + 2 * sessions)


def held(experiment: Experiment) -> float:
    """Bytes that a run needs at most beside what every cohort needs: what it keeps, and what it asks for at once. That
    was up to 68 vectors of a model, with twenty clients in a round (AG News in Table 1 of dynamic_init), and about half
    of it with ten (160 runs of FedaGrac's Table 2)."""
    return state_bytes(experiment) + _vectors(experiment.problem, 70)


def _vectors(problem: Any, count: int) -> float:
    return 4.0 * problem.model.parameters * count if problem.model else 0.0


class Kind(NamedTuple):
    """The properties that the time of an experiment follows from: names of its network ("" for quadratics) and
    algorithm, multiply-accumulates per sample (of quadratics 1)."""

    model: str
    macs: int
    algorithm: str


def seconds(experiment: Experiment) -> float:
    """The seconds of a run on the processor of the rates."""
    return work(experiment) * rate(kind(experiment), rates())


def cuda(experiment: Experiment) -> float:
    """The seconds of a run on a GPU; quadratics stay on the processor."""
    problem: Any = experiment.problem
    if not problem.model:
        return seconds(experiment)
    samples, together = estimate(experiment, (0,)).samples, 1 if kind(experiment).macs > LARGE else 32
    return work(experiment) / CUDA[0] + samples / problem.batches.size / together * CUDA[1]


def kind(experiment: Experiment) -> Kind:
    problem: Any = experiment.problem
    algorithm, model = type(experiment.algorithm).__name__, problem.model
    return Kind(type(model).__name__, macs(model, problem.sample.shape), algorithm) if model else Kind("", 1, algorithm)


def work(experiment: Experiment) -> float:
    """FLOPs of a run; of quadratics rounds."""
    problem: Any = experiment.problem
    return estimate(experiment, (0,)).flops if problem.model else experiment.clock.length(experiment)


@cache
def rates() -> Mapping[Kind, float]:
    """Seconds per FLOP."""
    with FILE.open() as file:
        lines = list(csv.reader(file))[1:]
    return {Kind(model, int(macs), algorithm): float(rate) for model, macs, algorithm, rate in lines}


def rate(of: Kind, rates: Mapping[Kind, float]) -> float:
    """The mean rate of what is nearest. Another network is as far as one 33 times (e ** 3.5) as large, another
    algorithm as one e times as large; quadratics and networks have nothing in common."""

    def distance(k: Kind) -> float:
        return abs(math.log(k.macs / of.macs)) + 3.5 * (k.model != of.model) + (k.algorithm != of.algorithm)

    far = {k: distance(k) for k in rates if bool(k.model) == bool(of.model)}
    return statistics.geometric_mean(rates[k] for k in far if far[k] == min(far.values()))


@cache
def machine() -> float:
    """This machine's time for a small computation, over that of the processor of the rates."""
    return timing() / REFERENCE


def timing() -> float:
    """Seconds of a small computation, of matrix products and elementwise functions: of many the shortest, which other
    programs on the machine hardly change."""
    took = []
    for _ in range(30):
        x = w = np.ones((16, 32, 32), np.float32)
        start = time.process_time()
        for _ in range(60):
            x = np.tanh(x @ w)
        took.append(time.process_time() - start)
    return min(took)
