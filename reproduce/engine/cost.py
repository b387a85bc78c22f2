"""What a run will compute, before it runs: samples, FLOPs, bytes. Pure Python, so that planning stays fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reproduce.declare.experiment import Experiment
from reproduce.engine.rule import Rule
from reproduce.engine.strategies import macs


@dataclass(frozen=True)
class Work:
    """Of all seeds together: training samples, floating-point operations, peak bytes.

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
    passes = samples * (3 + others(experiment.algorithm.rule())) + evaluated
    return Work(samples, 2 * macs(model, problem.sample.shape) * passes, 4.0 * model.parameters * 40 + 5e8)


def others(rule: Rule) -> int:
    """Forward passes of a step through other models than the one it trains: teachers, the start, the previous one. A
    second pass of the model itself, there and back, is three."""
    return bool(rule.distill) + (2 + 3 * rule.second_pass) * bool(rule.contrast)
