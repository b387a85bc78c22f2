"""What a run will cost, before it runs: samples, FLOPs, seconds, bytes. Pure Python, so that planning stays fast.

Samples follow from the declared work; seconds from the rates of a machine (`runs.speed`), which were measured for
each strategy of training at some sizes of model. The algorithm's rule decides the strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reproduce.declare.experiment import Experiment
from reproduce.engine.rates import ASSUMED, Rates
from reproduce.engine.requests import PLAIN
from reproduce.engine.rule import Rule
from reproduce.engine.strategies import Demand, choose, macs
from reproduce.models.model import Model


@dataclass(frozen=True)
class Cost:
    """Of all seeds together: training samples, floating-point operations, seconds, peak bytes.

    A training sample counts as three forward passes, and as one more for each other model that its step asks.
    """

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
    rule, each = experiment.algorithm.rule(), macs(model, sample)
    trains, evaluates = expected_strategy(model, sample, rule), expected_strategy(model, sample)
    passes = 3 + others(rule)
    seconds = runs * (rates.run + rates.round * clock.length(experiment))
    seconds += samples * (passes / 3 / rates.train(trains, each) + 1 / BATCHES)
    seconds += evaluated / rates.evaluate(evaluates, each)
    flops = 2 * each * (samples * passes + evaluated)
    return Cost(samples, flops, seconds, 4.0 * model.parameters * 40 + 5e8)


def others(rule: Rule) -> int:
    """Forward passes of a step through other models than the one it trains: teachers, the start, the previous one. A
    second pass of the model itself, there and back, is three."""
    return bool(rule.distill) + (2 + 3 * rule.second_pass) * bool(rule.contrast)


@cache
def expected_strategy(model: Model, sample: tuple[int, ...], rule: Rule = PLAIN) -> str:
    """The strategy of training by a rule on samples of this shape, on a CPU with wide vectors and a C compiler."""
    asked = frozenset(rule.network_terms)
    return choose(Demand(model, asked, sample)).name
