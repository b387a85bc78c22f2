"""Schedules without training, and training that replays them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Module
from benchmarks.naive import naive_round
from reproduce.clocks.events import Events, Script
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.papers.defedavg import runs
from reproduce.papers.defedavg import settings as declared
from reproduce.runs.job import begin, finish
from reproduce.settings import settings
from reproduce.systems.policies import (
    AsySGPolicy,
    DeFedAvgIIDPolicy,
    DeFedAvgNIIDPolicy,
    FavanoPolicy,
    FedAvgPolicy,
    FedBuffPolicy,
)
from reproduce.systems.schedule import FASHION_MNIST, Schedule

CLIENTS, UPDATES = 100_000, 1_000_000
LARGE = (
    DeFedAvgIIDPolicy(1000), DeFedAvgIIDPolicy(10), FedBuffPolicy(1000), AsySGPolicy(1000), AsySGPolicy(1000, "N"),
    DeFedAvgNIIDPolicy(10_000), DeFedAvgNIIDPolicy(10_000, variant="hold"), FedAvgPolicy(1000), FavanoPolicy(1000),
)  # fmt: skip


def schedules() -> None:
    """100,000 clients and 1,000,000 updates; all schedules of Table I to their horizons. One core."""
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
    for aggregation in timed.stream(0, aggregations=UPDATES):
        count += len(aggregation.updates)
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
                count += sum(len(a.updates) for a in timed.stream(0, horizon=e.clock.horizon))
                cells += 1
    return cells, count


def events() -> None:
    """Reduced Table I, n = 10: training by replay in one cohort against job by job in the order of events; models kept
    to the horizons."""
    print("| column | jobs | script, ms | engine, job by job, ms | replay, ms | script / replay |")
    print("| --- | --- | --- | --- | --- | --- |")
    for distribution in declared.DISTRIBUTIONS:
        panel = runs.times_panel(declared.REDUCED, distribution, 10)
        found = [replace(e, clock=Events(e.clock.policy, SHORT, every=10**9)) for e in panel.experiments]
        jobs = sum(len(u) for e in found for u in _updates(e, 0))
        script = _timed(lambda found=found: _by_script(found))[1]  # type: ignore[misc]
        single = _timed(lambda found=found: _one_by_one(found))[1]  # type: ignore[misc]
        fast = _timed(lambda found=found: _replayed(found))[1]  # type: ignore[misc]
        each = [1000 * script / jobs, 1000 * single / jobs, 1000 * fast / jobs / len(declared.SEEDS)]
        shown = " | ".join(f"{ms:.2f}" for ms in each)
        print(f"| {distribution} | {jobs:,} | {shown} | {each[0] / each[2]:.1f} |", flush=True)
    print(
        f"\nMilliseconds of the processor per job, one thread, {SHORT} aggregations of every algorithm of the column."
    )
    print("Script: a torch module, loader and optimizer per job; replay: three seeds at once, as the workflow trains.")
    print()
    _print_models()


def _print_models() -> None:
    """To the horizons, from the schedules: `_replayed` holds the training to the same counts."""
    print("| scale | column | algorithm | aggregations | models kept | bound | MiB kept |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for scale, setting in (("reduced", declared.REDUCED), ("paper", declared.PAPER[0])):
        for distribution in declared.DISTRIBUTIONS:
            for e in runs.times_panel(setting, distribution, 10).experiments:
                kept, bound, aggregations = _kept(e, 0)
                megabytes = kept * 4 * setting.problem.model.parameters / 2**20
                told = f"{scale} | {distribution} | {e.labels['algorithm']} | {aggregations:,}"
                print(f"| {told} | {kept} | {bound} | {megabytes:.1f} |", flush=True)
    print("\nModels kept: the most start versions of one run at a time; bound: its largest staleness + 1. Seed 0.")


def _kept(e: Experiment, seed: int) -> tuple[int, int, int]:
    """(the most start versions at a time, largest staleness + 1, aggregations) of a run up to its end."""
    clock: Any = e.clock
    problem: Any = e.problem
    script = Script.of(clock.schedule(e.system, problem.clients), seed, clock.aggregations, clock.horizon)
    made = np.flatnonzero(script.last_use >= np.arange(len(script.last_use)))
    change = np.zeros(len(script.last_use) + 1, int)
    change[made] += 1
    np.subtract.at(change, script.last_use[made] + 1, 1)
    used_by = np.repeat(np.arange(len(script.time)), np.diff(script.first))
    return int(change.cumsum().max()), int((used_by - script.version).max()) + 1, len(script.time)


SHORT = 12


def _updates(e: Experiment, seed: int) -> list[Any]:
    problem: Any = e.problem
    return [a.updates for a in e.clock.schedule(e.system, problem.clients).simulate(seed, e.clock.aggregations)]


def _replayed(experiments: list[Experiment]) -> None:
    """Trains; no run may hold more models than its schedule says."""
    scheduler = begin(experiments, declared.SEEDS, replace(settings(), threads=1))
    played = scheduler.runs
    most = [0] * len(played)

    def tick() -> None:
        for i, run in enumerate(played):
            most[i] = max(most[i], len(run.state.get("starts", ())))

    finish(scheduler, tick)
    assert most == [_kept(run.experiment, run.seed)[0] for run in played]


def _one_by_one(experiments: list[Experiment]) -> None:
    """Every update by the engine, but by itself, from its start version, in the order of the aggregations."""
    splits, trainer = ClientSplits(settings()), Trainer()
    for e in experiments:
        split = splits.get(e.problem, 0)
        versions = [split.initial()]
        for updates in _updates(e, 0):
            model = versions[-1].clone()
            for u in updates:
                weight = torch.full((1, 1), e.algorithm.server_lr * u.weight)
                request = Train(
                    np.array([u.client]), np.array([u.steps]), versions[u.start_version], e.algorithm.lr,
                    np.array([u.job]), rule=e.algorithm.rule(), weights=weight,
                )  # fmt: skip
                model += trainer.train([(split, request)])[0].sums[0]
            versions.append(model)


def _by_script(experiments: list[Experiment]) -> None:
    """Every update as scripts train it, on as many samples of the same data; one model serves as all versions."""
    splits = ClientSplits(settings())
    for e in experiments:
        problem: Any = e.problem
        device_data = splits.get(problem, 0).device_data  # type: ignore[attr-defined]
        parts = np.array_split(np.arange(len(device_data.train_y)), problem.clients)
        data = [(device_data.train_x[part], device_data.train_y[part]) for part in parts]
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
