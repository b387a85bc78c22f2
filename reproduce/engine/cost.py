"""What a run will cost, before it runs: samples, FLOPs, seconds, bytes. Pure Python, so that planning stays fast.

Samples follow from the declared work; seconds from the rates of a machine (`reproduce.speed`), which were measured for
each strategy of training at some sizes of model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reproduce.engine.rates import ASSUMED, Rates
from reproduce.engine.strategies import Demand, choose, macs
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


def estimate_together(experiments: Sequence[Experiment], seeds: Sequence[int], rates: Rates = ASSUMED) -> Cost:
    """Experiments in one cohort, a job: costs add up, but those on the same data share batches, and all of them the
    start of the process; the memory is the largest.

    An upper bound where runs stop at a target.
    """
    each = [estimate(e, seeds, rates) for e in experiments]
    shared, seen = 0.0, set()
    for experiment, cost in zip(experiments, each, strict=True):
        key = (experiment.problem, experiment.system)
        shared += cost.samples / BATCHES if key in seen else 0.0
        seen.add(key)
    return Cost(
        samples=sum(c.samples for c in each),
        flops=sum(c.flops for c in each),
        seconds=rates.start + sum(c.seconds for c in each) - shared,
        bytes=max(c.bytes for c in each),
    )


def estimate(experiment: Experiment, seeds: Sequence[int], rates: Rates = ASSUMED) -> Cost:
    """The expected cost of an experiment with all its seeds on one core of the machine with these rates."""
    problem: Any = experiment.problem
    clock, runs = experiment.clock, len(seeds)
    model, sample = problem.model, problem.sample.shape
    if model is None:
        return Cost(0.0, 0.0, runs * (rates.run + rates.quadratic * clock.length(experiment)), 1e6)
    samples = runs * clock.samples(experiment)
    evaluated = runs * clock.evaluations(experiment) * problem.sizes[1]
    kind, each = expected_strategy(model, sample), macs(model, sample)
    seconds = runs * (rates.run + rates.round * clock.length(experiment))
    seconds += samples * (1 / rates.train(kind, each) + 1 / BATCHES) + evaluated / rates.evaluate(kind, each)
    return Cost(samples, samples * 6 * each + evaluated * 2 * each, seconds, 4.0 * model.parameters * 40 + 5e8)


@cache
def expected_strategy(model: Model, sample: tuple[int, ...]) -> str:
    """The strategy of plain SGD on samples of this shape, on a CPU with wide vectors and a C compiler."""
    return choose(Demand(model, sample=sample, vector=64, chain=_chain(model, sample))).name


def _chain(model: Model, sample: tuple[int, ...]) -> bool:
    """Is the model a chain of the layers that can be compiled? As `engine.compiled` finds out by tracing it."""
    return not model.batch_statistics and model.cost(sample).chain
