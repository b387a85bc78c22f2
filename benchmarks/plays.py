"""What one cohort is worth to a matrix of plays: all algorithms and rates of a benchmark together, and one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.play.benchmarks import Benchmark, find
from reproduce.play.match import FACTORS, Match
from reproduce.play.specs import NAMES, Spec
from reproduce.runs.costs import together
from reproduce.runs.job import begin, finish
from reproduce.settings import settings
from reproduce.text import short

PARTS = (("fedacs-static", 2, FACTORS), ("fedagrac-steps", 1, FACTORS[2:3]))
"""Benchmark, rounds of it, multiples of every algorithm's rate."""


def plays() -> None:
    """All algorithms that fit, a few rounds: one cohort against one after another, in CPU seconds of one thread."""
    print("| benchmark | rounds | runs | samples | FLOP | one cohort, s | one by one, s | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, rounds, factors in PARTS:
        part = list(points(find(name, "reduced"), rounds, factors))
        cost, (cohort, apart) = together(part, (0,)), times(part)
        counts = f"{rounds} | {len(part)} | {short(cost.samples)} | {short(cost.flops)}"
        print(f"| {name} | {counts} | {cohort:.1f} | {apart:.1f} | {apart / cohort:.2f} |", flush=True)


def points(benchmark: Benchmark, rounds: int, factors: Sequence[float]) -> Iterator[Experiment]:
    """All algorithms that fit at these multiples of their rates, over so many rounds."""
    for entry in Match([*map(Spec, NAMES)], [benchmark], lenient=True).entries:
        for factor in factors if entry.experiment else ():
            point = benchmark.experiment(entry.spec, entry.experiment.algorithm.lr * factor)
            yield replace(point, clock=replace(point.clock, rounds=rounds))


def times(experiments: Sequence[Experiment]) -> tuple[float, float]:
    """CPU seconds, which other programs cannot change much, of all in one cohort, and of one after another; data and
    kernels are there before."""
    here = replace(settings(), threads=1)
    splits = ClientSplits(here)

    def train(subset: Sequence[Experiment]) -> float:
        start = time.process_time()
        finish(begin(subset, [0], here, splits))
        return time.process_time() - start

    train(experiments[:2])
    return train(experiments), sum(train([e]) for e in experiments)
