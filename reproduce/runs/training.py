"""A job is trained: what must be there before, and where its digest and its files come from."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reproduce.declare.experiment import code
from reproduce.errors import MissingData, UserError
from reproduce.files import check_writable, locked, sweep, write
from reproduce.runs import plan, results
from reproduce.settings import settings


def check(job: plan.Job, output: Path) -> None:
    """Raises MissingData or UserError if the job cannot be trained here, or its files not be written."""
    from reproduce.data.load import available

    for name in plan.lacking(job):
        raise MissingData(name, available(name, settings()).detail)
    for path in (output, settings().store / "checkpoints" / "one"):
        check_writable(path)


def train(job: plan.Job, output: Path | None = None) -> None:
    """Train the job and write its results, by default where the workflow expects them; a job that was killed goes on
    from its checkpoint. Raises what `check` raises.

    If the file is there and lacks only seeds, or the runs of some experiments, these are trained alone and put beside
    the others; if it would lose seeds that are not asked for, it is copied into the store before. With `to_target`
    (`settings`) runs that have a target end there; nothing changes before it.
    """
    path = output or Path(job.output)
    check(job, path)
    sweep(settings().store / "checkpoints")
    if path.absolute() == Path(job.output).absolute():
        standing = results.standing(job)
        if part := results.part(job):
            _add(job, part, path)
            return
        if standing.lost:
            _put_aside(job, standing, path)
    from reproduce.runs.job import train_job

    if settings().to_target:
        job = replace(job, experiments=tuple(e.to_target for e in job.experiments))
    digest = plan.digest_of(job, settings().precision)
    train_job(job.panel, job.experiments, job.scale, job.paper, job.name, digest, path)


def _add(job: plan.Job, part: plan.Job, path: Path) -> None:
    """Train `part` of the job into a file of the store, and put its runs beside those of the results file at `path`.

    They go on as far as those that are there, whatever `to_target` says. After a kill the next call goes on from the
    checkpoint, or from that file.
    """
    from reproduce.runs.job import train_job
    from reproduce.store.results import join

    print(f"{path}: {_difference(job, part)}", file=sys.stderr)
    digest = plan.digest_of(part, settings().precision)
    added = settings().store / "checkpoints" / f"{job.scale}-{job.paper}-{job.name}-{digest}.parquet"
    if not (added.is_file() and results.provenance(added)):
        train_job(part.panel, part.experiments, job.scale, job.paper, job.name, digest, added)
    with locked(path.parent):
        now = results.standing(job)
        if results.part(job) is part:
            seeds = [*job.panel.seeds, *(s for s in now.seeds if s not in job.panel.seeds)]
            join(path, added, [dict(e.labels) for e in job.experiments], seeds, code(job.experiments))
        elif not now.holds:  # otherwise another process has put the same runs there
            raise UserError(
                f"{path} has changed ({now.words or 'other seeds'}) while {_runs(part)} were trained, which are in "
                f"{added}: start again to train what is missing now"
            )
        added.unlink(missing_ok=True)


def _difference(job: plan.Job, part: plan.Job) -> str:
    """What is there of a job, and what is added, for people."""
    there = results.standing(job)
    if there.changed:
        return f"{there.words}; trains {'this' if len(there.changed) == 1 else 'these'}, keeps the rest"
    return f"has seeds {_listed(there.seeds)}; adds {_listed(part.panel.seeds)}"


def _runs(part: plan.Job) -> str:
    count = f"{len(part.experiments)} setting{'s' * (len(part.experiments) != 1)}"
    return f"{count} with seeds {_listed(part.panel.seeds)}"


def _put_aside(job: plan.Job, standing: results.Standing, path: Path) -> None:
    """Copy a results file that is about to be replaced into the store, and say so."""
    date = re.sub(r"\W", "", standing.date)
    kept = settings().store / "replaced" / f"{job.scale}-{job.paper}-{job.name}-{date}.parquet"
    content = path.read_bytes()
    write(kept, lambda file: file.write(content))
    print(
        f"{path} has seeds {_listed(standing.lost)}, which are not asked for and cannot be kept beside those of a new "
        f"training: the file is kept as {kept}",
        file=sys.stderr,
    )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
