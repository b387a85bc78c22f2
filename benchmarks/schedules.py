"""Schedules without training, and training that replays them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.naive import Module, naive_round
from reproduce.clocks.blocks import blocks
from reproduce.clocks.events import Events
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.requests import Train
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.experiment import Experiment
from reproduce.papers.defedavg import runs
from reproduce.settings import settings
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Schedule
from reproduce.systems.speeds import FASHION_MNIST

CLIENTS, UPDATES = 100_000, 10_000_000
LARGE = (
    DeFedAvgIIDPolicy(1000), DeFedAvgIIDPolicy(10), FedBuffPolicy(1000), AsySGPolicy(1000), AsySGPolicy(1000, "N"),
    DeFedAvgNIIDPolicy(10_000), DeFedAvgNIIDPolicy(10_000, variant="hold"), FedAvgPolicy(1000), FavanoPolicy(1000),
)  # fmt: skip


def schedules() -> None:
    """100,000 clients and 10,000,000 updates; all schedules of Table I to their horizons. One core."""
    print("| policy | updates | seconds | of the processor | peak memory after a tenth, MiB | at the end, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for policy in LARGE:
        timed = Schedule(policy, CLIENTS, 1 if isinstance(policy, AsySGPolicy) else 50, FASHION_MNIST)
        seconds, busy, (count, early) = _timed(lambda timed=timed: _through(timed))  # type: ignore[misc]
        name = f"{type(policy).__name__}({policy.n})"
        print(f"| {name} | {count:,} | {seconds:.1f} | {busy:.1f} | {early:.0f} | {_memory():.0f} |", flush=True)
    seconds, busy, (cells, count) = _timed(_table1)
    print(f"\n{cells} cells of Table I, seed 0: {count:,} updates in {seconds:.1f} s ({busy:.1f} s of the processor).")


def _through(timed: Schedule) -> tuple[int, float]:
    """(updates, peak memory when a tenth of them had been seen)"""
    count, early = 0, 0.0
    for block in blocks(timed, 0, aggregations=UPDATES):
        count += len(block.client)
        if not early and count >= UPDATES / 10:
            early = _memory()
        if count >= UPDATES:
            break
    return count, early


def _table1() -> tuple[int, int]:
    cells = count = 0
    for panel in runs.times_panels("paper"):
        for e in panel.experiments:
            if e.labels["algorithm"] in runs.POLICIES:
                timed = e.clock.schedule(e.system, e.problem.clients)  # type: ignore[attr-defined]
                count += sum(len(b.client) for b in blocks(timed, 0, horizon=e.clock.horizon))
                cells += 1
    return cells, count


def events() -> None:
    """Reduced Table I, n = 10: training by replay in one cohort against job by job in the order of events."""
    print(
        "| column | jobs | script, ms | engine, job by job, ms | replay, ms | script / replay | models kept | bound |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for distribution in runs.DISTRIBUTIONS:
        panel = runs.times_panel(runs.REDUCED, distribution, 10)
        found = [replace(e, clock=Events(e.clock.policy, SHORT, every=10**9)) for e in panel.experiments]
        jobs = sum(len(u) for e in found for u in _updates(e, 0))
        script = _timed(lambda found=found: _by_script(found))[1]  # type: ignore[misc]
        single = _timed(lambda found=found: _one_by_one(found))[1]  # type: ignore[misc]
        _, fast, (kept, bound) = _timed(lambda found=found: _replayed(found))  # type: ignore[misc]
        each = [1000 * script / jobs, 1000 * single / jobs, 1000 * fast / jobs / len(runs.SEEDS)]
        shown = " | ".join(f"{ms:.2f}" for ms in each)
        print(f"| {distribution} | {jobs:,} | {shown} | {each[0] / each[2]:.1f} | {kept} | {bound} |", flush=True)
    print(
        f"\nMilliseconds of the processor per job, one thread, {SHORT} aggregations of every algorithm of the column."
    )
    print("Script: a torch module, loader and optimizer per job; replay: three seeds at once, as the workflow trains.")
    print("Models kept: the most start versions of one run at a time; bound: its largest staleness + 1.")


SHORT = 12


def _updates(e: Experiment, seed: int) -> list[Any]:
    problem: Any = e.problem
    return [a.updates for a in e.clock.schedule(e.system, problem.clients).simulate(seed, e.clock.aggregations)]


def _replayed(experiments: list[Experiment]) -> tuple[int, int]:
    """Trains; the most models that a run kept at a time, and the bound of that run."""
    played = prepare(experiments, runs.SEEDS, Tasks(settings()))
    most = [0] * len(played)

    def tick() -> None:
        for i, run in enumerate(played):
            most[i] = max(most[i], len(run.state.get("starts", ())))

    Cohort(played, Trainer(), tick).run()
    stale = [
        max(t - u.start_version for t, updates in enumerate(_updates(run.experiment, run.seed)) for u in updates)
        for run in played
    ]
    worst = int(np.argmax(most))
    assert all(kept <= s + 1 for kept, s in zip(most, stale, strict=True))
    return most[worst], stale[worst] + 1


def _one_by_one(experiments: list[Experiment]) -> None:
    """Every update by the engine, but by itself, from its start version, in the order of the aggregations."""
    tasks, trainer = Tasks(settings()), Trainer()
    for e in experiments:
        task = tasks.get(e.problem, 0)
        versions = [task.initial()]
        for updates in _updates(e, 0):
            model = versions[-1].clone()
            for u in updates:
                weight = torch.full((1, 1), e.algorithm.server_lr * u.weight)
                request = Train(
                    np.array([u.client]), np.array([u.steps]), versions[u.start_version], e.algorithm.lr,
                    np.array([u.job]), rule=e.algorithm.rule(), weights=weight,
                )  # fmt: skip
                model += trainer.train([(task, request)])[0].update[0]
            versions.append(model)


def _by_script(experiments: list[Experiment]) -> None:
    """Every update as scripts train it, on as many samples of the same data; one model serves as all versions."""
    tasks = Tasks(settings())
    for e in experiments:
        problem: Any = e.problem
        arena = tasks.get(problem, 0).arena  # type: ignore[attr-defined]
        parts = np.array_split(np.arange(len(arena.train_y)), problem.clients)
        data = [(arena.train_x[part], arena.train_y[part]) for part in parts]
        server = Module(problem.model)
        for u in (u for updates in _updates(e, 0) for u in updates if u.steps):
            naive_round(server, data, [u.client], problem.batches.size, e.algorithm.lr, u.steps)


def _timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """(seconds by the clock, of the processor, what the call returns)"""
    clock, busy = time.perf_counter(), time.process_time()
    found = call()
    return time.perf_counter() - clock, time.process_time() - busy, found


def _memory() -> float:
    """MiB at the peak of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
