"""Every smoke job of every paper, and one of MOON, interrupted at ticks drawn from a seed, ends in the bits of the
undisturbed job.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_sessions import LR, PROBLEM, K, N, S, T

from reproduce.algorithms.moon import Moon
from reproduce.algorithms.session_starts import Previous, Proposed
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment, Panel
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.cohort import Cohort, Run, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.runs import plan
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.membership import Alternating

REMEMBERS = tuple(
    Experiment({"scheme": i}, PROBLEM, System(Steps(K)), Moon(LR), Sessions(S, T, Alternating(2, N), start=start))
    for i, start in enumerate((Previous(), Proposed()))
)
MOON = Job("smoke", "tests", "moon", Panel("moon", REMEMBERS, (2,)), REMEMBERS, ())
"""Memories that outlive a session."""
JOBS = (*plan.jobs("smoke"), MOON)
DRAWN = 3
"""Interruptions of a job besides those at its first tick and at its last two."""


class Killed(Exception):
    pass


def prepared(job: Job) -> list[Run]:
    """The job's runs as a new process makes them."""
    return prepare(job.experiments, job.panel.seeds, Tasks(settings()))


def live(runs: list[Run], first: int = 0, stop: float = math.inf, path: Path | None = None) -> int:
    """Play `runs` to the end, or to tick `stop`, where they are saved and die; the number of ticks until then."""
    ticks = count(first)

    def tick() -> None:
        if next(ticks) == stop:
            assert path is not None
            Checkpoint(path, runs).save()
            raise Killed

    try:
        Cohort(runs, Trainer(), tick).run()
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
    assert end == ticks, "a resumption repeats nothing but the tick at which it was saved"


def difference(a: Any, b: Any, where: str) -> str:
    """Where two states differ in a bit, a type or a length; "" if nowhere."""
    if type(a) is not type(b):
        return f"{where}: {type(a)} is not {type(b)}"
    if isinstance(a, Mapping):
        if list(a) != list(b):
            return f"{where}: {list(a)} are not {list(b)}"
        return next(filter(None, (difference(a[k], b[k], f"{where}.{k}") for k in a)), "")
    if isinstance(a, Sequence) and not isinstance(a, str):
        if len(a) != len(b):
            return f"{where}: {len(a)} are not {len(b)} entries"
        return next(
            filter(None, (difference(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)))), ""
        )
    if isinstance(a, torch.Tensor):
        a, b = a.numpy(), b.numpy()
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    else:
        same = repr(a) == repr(b)
    return "" if same else f"{where}: {a!r} is not {b!r}"
