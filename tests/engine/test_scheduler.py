"""Jobs interrupted at ticks drawn from a seed end in the bits of the undisturbed job: one per clock and kind of memory.

Their states have no entry that the clock, the algorithm or the engine does not declare.
"""

import math
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from plain_sessions import LR, PROBLEM, K, N, S, T
from runs import difference, experiment

from reproduce.algorithms.moon import Moon
from reproduce.algorithms.session_starts import Previous, Proposed
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment, Panel
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.scheduler import STATE, Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.runs import plan
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating

DRAWN = 3
"""Interruptions of a job besides those at its first tick and at its last two."""


def job(name: str, *experiments: Experiment) -> Job:
    return Job("smoke", "tests", name, Panel(name, experiments, (0, 1)), experiments, ())


def kinds(e: Experiment) -> set[tuple[type, ...]]:
    """Whose memories its state holds."""
    drawn = (getattr(e.clock, name, None) for name in ("policy", "start"))
    return {(type(e.clock), type(e.algorithm)), (type(e.clock), *map(type, drawn))}


def chosen() -> list[Job]:
    """Smoke jobs in which every kind occurs: always the one that brings most new ones."""
    found: list[Job] = []
    left = {job: set().union(*map(kinds, job.experiments)) for job in plan.jobs("smoke")}
    while any(left.values()):
        found.append(best := max(left, key=lambda job: len(left[job])))
        met = left[best]
        left = {job: mine - met for job, mine in left.items()}
    return found


REMEMBERS = [
    Experiment({"scheme": i}, PROBLEM, System(Steps(K)), Moon(LR), Sessions(S, T, Alternating(2, N), start=start))
    for i, start in enumerate((Previous(), Proposed()))
]
"""Memories that outlive a session."""
JOBS = (*chosen(), job("moon", *REMEMBERS), job("digits", experiment(3), experiment(3, lr=0.2)))


class Killed(Exception):
    pass


def prepared(job: Job) -> list[Run]:
    """The job's runs as a new process makes them."""
    return prepare(job.experiments, job.panel.seeds, ClientSplits(settings()))


def live(runs: list[Run], first: int = 0, stop: float = math.inf, path: Path | None = None) -> int:
    """Play `runs` to the end, or to tick `stop`, where they are saved and die; the number of ticks until then."""
    ticks = count(first)

    def tick() -> None:
        if next(ticks) == stop:
            assert path is not None
            Checkpoint(path, runs).save()
            raise Killed

    try:
        Scheduler(runs, Trainer(), tick).run()
    except Killed:
        return next(ticks) - 1
    return next(ticks)


@pytest.mark.parametrize("job", JOBS, ids=[f"{j.paper}/{j.name}" for j in JOBS])
def test_an_interrupted_job_ends_in_the_same_bits(job: Job, tmp_path: Path) -> None:
    """A job that is killed again and again; every life starts with what a new process has: the checkpoint's file."""
    whole, path, at = prepared(job), tmp_path / "job.pt", 0
    ticks = live(whole)
    drawn = np.random.default_rng([17, JOBS.index(job)]).choice(ticks, size=min(DRAWN, ticks), replace=False)
    for stop in sorted({0, max(0, ticks - 2), ticks - 1, *drawn.tolist()}):
        runs = prepared(job)
        assert Checkpoint(path, runs).restore() == path.exists()
        at = live(runs, at, stop, path)
    last = prepared(job)
    assert Checkpoint(path, last).restore()
    end = live(last, at)
    for i, (a, b) in enumerate(zip(whole, last, strict=True)):
        assert difference(a.state, b.state, f"run {i}") == ""
        assert a.done
        assert a.state.keys() <= declared(a.experiment), a.experiment.labels
    assert end == ticks, "a resumption repeats nothing but the tick at which it was saved"


def declared(experiment: Experiment) -> set[str]:
    """What may be in a run's state."""
    bases = (*type(experiment.algorithm).__mro__, *type(experiment.clock).__mro__)
    return {*STATE, *(name for base in bases for name in vars(base).get("memory", ()))}
