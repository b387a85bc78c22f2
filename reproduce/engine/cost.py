"""What a run will cost, before it runs: samples, FLOPs, seconds, bytes. Pure Python, so that planning stays fast.

Samples follow from the declared work; seconds from the throughput of each kind of model, measured on two cores
(`python -m benchmarks throughput` measures it again and prints the table below).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reproduce.experiment import Experiment
from reproduce.problems.models import Model, Softmax


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
    macs, parameters = _macs(model), model.parameters
    test = getattr(problem, "test_samples", 0) or 10_000
    evaluated = count * clock.evaluations * test
    flops = samples * 6 * macs + evaluated * 2 * macs
    seconds = count * 0.3 + samples * (1 / _throughput(model, macs) + 1 / BATCHES) + evaluated * 2 * macs / 9e10
    return Cost(samples, flops, seconds, 4.0 * parameters * 40 + 5e8)


@cache
def _macs(model: Model) -> int:
    features = getattr(model, "features", 0)
    channels, side = getattr(model, "channels", 3), getattr(model, "size", 32)
    return model.cost((features,) if features else (channels, side, side)).macs


def _throughput(model: Any, macs: int) -> float:
    """Training samples per second on one core: a rate of arithmetic that grows with the size of the model."""
    if isinstance(model, Softmax):
        return 1.1e8 if model.parameters <= 2000 else 1.5e6
    if macs <= 3e7 and not model.batch_statistics and not hasattr(model, "plan"):  # compiled chains of layers
        rate = 120e9 if macs < 5e6 else 200e9
    else:
        rate = 90e9 if macs < 3.6e6 else 105e9 if macs < 2e7 else 200e9
    return rate / (6 * macs)
