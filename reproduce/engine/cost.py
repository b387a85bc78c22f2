"""What a run will cost, before it runs: samples, FLOPs, seconds, bytes. Pure Python, so that planning stays fast.

Samples follow from the declared work; seconds from the throughput of the strategy that the model gets with a compiler
(strategies.py), measured on two cores (`python -m benchmarks throughput` measures it again).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from reproduce.engine.strategies import Work, choose, macs, sample_of
from reproduce.experiment import Experiment
from reproduce.problems.models import Model


@dataclass(frozen=True)
class Cost:
    """Of all seeds together: training samples, floating-point operations (3 x forward), seconds, peak bytes."""

    samples: float
    flops: float
    seconds: float
    bytes: float


BATCHES = 5e7
"""Samples per second that are put into batches and fetched; experiments on the same batches do it once for all."""


def estimate_together(experiments: Sequence[Experiment], seeds: Sequence[int]) -> Cost:
    """Experiments in one cohort: costs add up, but those on the same data share batches; the memory is the largest.

    An upper bound where runs stop at a target.
    """
    each = [estimate(e, seeds) for e in experiments]
    shared, seen = 0.0, set()
    for experiment, cost in zip(experiments, each, strict=True):
        key = (experiment.problem, experiment.system)
        shared += cost.samples / BATCHES if key in seen else 0.0
        seen.add(key)
    return Cost(
        samples=sum(c.samples for c in each),
        flops=sum(c.flops for c in each),
        seconds=sum(c.seconds for c in each) - shared,
        bytes=max(c.bytes for c in each),
    )


def estimate(experiment: Experiment, seeds: Sequence[int]) -> Cost:
    """The expected cost of an experiment with all its seeds on one core."""
    problem, clock = experiment.problem, experiment.clock
    count = len(seeds)
    model: Model | None = getattr(problem, "model", None)
    if model is None:
        rounds = clock.length
        return Cost(0.0, 0.0, count * (0.5 + 4e-4 * rounds), 1e6)
    samples = count * clock.samples(experiment)
    each = macs(model)
    test = getattr(problem, "test_samples", 0) or 10_000
    evaluated = count * clock.evaluations * test
    flops = samples * 6 * each + evaluated * 2 * each
    seconds = count * 0.3 + samples * (1 / _throughput(model) + 1 / BATCHES) + evaluated * 2 * each / 9e10
    return Cost(samples, flops, seconds, 4.0 * model.parameters * 40 + 5e8)


RATES = {
    "kernel": ((2_000, 1.1e8), (math.inf, 1.5e6)),
    "siblings": ((math.inf, 1.5e6),),
    "compiled": ((5e6, 120e9), (math.inf, 200e9)),
    "dense": ((math.inf, 90e9),),
    "stacked": ((math.inf, 90e9),),
    "sequential": ((2e7, 105e9), (math.inf, 200e9)),
}
"""How fast each strategy is on one core, up to which size of the model. The first two: samples per second, up to so
many parameters; the others: floating-point operations per second, up to so many multiply-accumulates."""


@cache
def expected_strategy(model: Model) -> str:
    """The strategy of plain SGD on a CPU with a C compiler."""
    return choose(Work(model, compiler=True, chain=_chain(model))).name


def _chain(model: Model) -> bool:
    """Is the model a chain of the layers that can be compiled? As `engine.compiled` finds out by tracing it."""
    return not model.batch_statistics and not model.cost(sample_of(model)).strided


def _throughput(model: Model) -> float:
    """Training samples per second on one core."""
    strategy = expected_strategy(model)
    per_sample, size = 6 * macs(model), macs(model)
    if strategy in ("kernel", "siblings"):
        per_sample, size = 1, model.parameters
    return next(rate for limit, rate in RATES[strategy] if size <= limit) / per_sample
