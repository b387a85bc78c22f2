"""A job is trained: what must be there before, which runs are due, and where its digest and its files come from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from reproduce.errors import MissingData
from reproduce.files import check_writable, sole, sweep
from reproduce.runs import plan, results
from reproduce.settings import settings


def check(job: plan.Job, output: Path) -> None:
    """Raises MissingData or UserError if the job cannot be trained here, or its files not be written."""
    from reproduce.data.load import available

    for name in plan.lacking(job):
        raise MissingData(name, available(name, settings()).detail)
    for path in (output, settings().store / "checkpoints" / "one"):
        check_writable(path)


def prepare(jobs: Iterable[plan.Job]) -> None:
    """Read what trainings of `jobs` read first, for processes that are forked from this one; computes nothing."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from reproduce.runs import job as engine  # noqa: F401

    for job in jobs:
        plan.digest_of(job, settings().precision)
        results.standing(job)


def train(job: plan.Job, output: Path | None = None) -> None:
    """Train the job; one that was killed goes on from its checkpoint. Raises what `check` raises.

    Where the workflow expects the results file, the runs that are due are trained and put into it; if none is, all are.
    With another `output` that file gets all runs, and nothing else. With `to_target` (`settings`) runs that have a
    target end there; nothing changes before it. UserError if another process trains the same runs.
    """
    path = output or Path(job.output)
    check(job, path)
    sweep(settings().store / "checkpoints")
    alone = path.absolute() != Path(job.output).absolute()
    for part in (not alone and results.parts(job)) or (job,):
        if part is not job:
            print(f"{path}: {results.standing(job).words}; trains {_runs(part)}, keeps the rest", file=sys.stderr)
        _train(part, path, alone)


def _train(job: plan.Job, path: Path, alone: bool) -> None:
    from reproduce.runs.job import train_job

    if settings().to_target:
        job = replace(job, experiments=tuple(e.to_target for e in job.experiments))
    digest = plan.digest_of(job, settings().precision)
    place = settings().store / "checkpoints" / f"{job.scale}-{job.paper}-{job.name}-{digest}"
    with sole(place, f"{job.scale}/{job.paper}/{job.name}"):
        train_job(job.panel, job.experiments, job.scale, job.paper, job.name, digest, path, alone)


def _runs(part: plan.Job) -> str:
    count = f"{len(part.experiments)} setting{'s' * (len(part.experiments) != 1)}"
    return f"{count} with seeds {_listed(part.panel.seeds)}"


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
