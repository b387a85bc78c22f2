"""What one cohort is worth to a matrix of plays: all algorithms and rates of a benchmark together, and one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.measure import seconds
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.cost import estimate_together
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.experiment import Experiment
from reproduce.play.benchmarks import Benchmark, find, reason
from reproduce.play.match import FACTORS
from reproduce.play.names import NAMES
from reproduce.play.specs import Spec
from reproduce.settings import settings
from reproduce.text import short

PARTS = (("fedacs-static", 12), ("fedagrac-steps", 1))
"""Benchmark, rounds of it."""


def plays() -> None:
    """Short runs of all algorithms that fit, at the five rates of their grid: one cohort against one after another."""
    print("| benchmark | rounds | runs | samples | FLOP | one cohort, s | one by one, s | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, rounds in PARTS:
        part = list(points(find(name, "reduced"), rounds))
        cost, (together, apart) = estimate_together(part, (0,)), times(part)
        counts = f"{rounds} | {len(part)} | {short(cost.samples)} | {short(cost.flops)}"
        print(f"| {name} | {counts} | {together:.1f} | {apart:.1f} | {apart / together:.2f} |", flush=True)


def points(benchmark: Benchmark, rounds: int) -> Iterator[Experiment]:
    """The grids of all algorithms that fit, over so many rounds."""
    for spec in map(Spec, NAMES):
        if not reason(spec, benchmark):
            middle = benchmark.experiment(spec).algorithm.lr
            for factor in FACTORS:
                point = benchmark.experiment(spec, middle * factor)
                yield replace(point, clock=replace(point.clock, rounds=rounds))


def times(experiments: Sequence[Experiment]) -> tuple[float, float]:
    """Seconds of all of them in one cohort, and of one after another; data and kernels are there before."""
    tasks, trainer = Tasks(settings()), Trainer(1)

    def train(some: Sequence[Experiment]) -> None:
        Cohort(prepare(some, [0], tasks), trainer).run()

    train(experiments)
    together = seconds(lambda: train(experiments), 0)
    return together, seconds(lambda: [train([e]) for e in experiments], 0)
