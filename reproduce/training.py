"""A job is trained: what must be there before, and where its digest and its files come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reproduce import plan
from reproduce.errors import MissingData
from reproduce.files import check_writable, sweep
from reproduce.settings import settings


def check(job: plan.Job, output: Path) -> None:
    """Raises MissingData or UserError if the job cannot be trained here, or its files not be written."""
    from reproduce.problems.data import available

    for name in plan.lacking(job):
        raise MissingData(name, available(name, settings()).detail)
    for path in (output, settings().store / "checkpoints" / "one"):
        check_writable(path)


def train(job: plan.Job, output: Path | None = None) -> None:
    """Train the job and write its results, by default where the workflow expects them; a job that was killed goes on
    from its checkpoint. Raises what `check` raises.

    With `to_target` (`settings`) runs that have a target end there; nothing changes before it.
    """
    path = output or Path(job.output)
    check(job, path)
    sweep(settings().store / "checkpoints")
    from reproduce.engine.train import train_job

    if settings().to_target:
        job = replace(job, experiments=tuple(e.to_target for e in job.experiments))
    digest = plan.digest_of(job, settings().precision)
    train_job(job.panel, job.experiments, job.scale, job.paper, job.name, digest, path)
