"""The work of a workflow: jobs to train for an artifact, those to leave out and why, artifacts to draw again.

Nothing here asks when a file was written, or what Snakemake remembers: a new clone has neither. A job is due if its
result does not hold (`runs.results`), an artifact if the results it was made from, or the code that draws it, are
not those of its record, `results/<scale>/cells/<paper>_<name>.json`.
"""

import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reproduce import files, store
from reproduce.runs import costs, plan, results
from reproduce.runs.catalogue import Known, catalogue, statuses
from reproduce.settings import budget as hours_allowed
from reproduce.settings import seeds
from reproduce.text import counted

HOURS = 1.0
"""Hours that a job may take where the configuration names no budget."""


@dataclass(frozen=True)
class Budget:
    """The limits of a workflow. hours: jobs that take longer are left out. gaps: train also what an artifact that is
    there was made without."""

    hours: float = math.inf
    gaps: bool = True


def budget(targets: Collection[str]) -> Budget:
    """The budget in force for Snakemake's `targets`: `REPRODUCE_BUDGET`, else `HOURS`, and then nothing is trained to
    fill the gaps of a single table or figure that is there."""
    if (hours := hours_allowed()) is not None:
        return Budget(hours)
    named = map(os.path.relpath, targets)  # as Snakemake reads them
    single = bool(targets) and all(t.startswith(("figures/", "tables/", "results/")) for t in named)
    return Budget(HOURS, gaps=not single)


jobs = cache(catalogue)
"""The catalogue of a scale when the workflow starts."""


@cache
def training(scale: str, name: str, allowed: Budget) -> tuple[tuple[Known, ...], tuple[tuple[Known, str], ...]]:
    """The jobs to train for an artifact ("": for all of the scale), and those whose result does not hold and that are
    left out, with the reason.

    What is left out is used as it is, if it is of the same declaration.
    """
    files = plan.outputs(scale, name)[:-1] if name else []  # the record may be older than records are
    complete, due, skipped = bool(files) and all(Path(f).exists() for f in files), [], []
    for job in jobs(scale).of(name) if name else jobs(scale).jobs:
        if job.holds:
            continue
        if plan.missing(job):
            skipped.append((job, plan.missing(job)))
        elif job.due.seconds > 3600 * allowed.hours:
            skipped.append((job, costs.over(allowed.hours)))
        elif complete and not allowed.gaps and _gap(job):
            skipped.append((job, "a gap of what is there"))
        else:
            due.append(job)
    return tuple(due), tuple(skipped)


def _gap(job: Known) -> bool:
    """Tells whether the job has no results, or usable ones with fewer or shorter runs than declared. Missing runs are
    no gap if seeds were set: these are trained whatever is there."""
    missing = any(run.state == "missing" for run, _ in job.statuses)
    early = any(run.early for run, _ in job.statuses)
    return not job.exists or (job.usable and (early or missing) and not (missing and seeds() is not None))


@cache
def announce(scale: str, name: str, allowed: Budget) -> None:
    """Say on stderr, once: what will be trained for an artifact ("": for a whole scale), how long that takes, what is
    left out, if anything."""
    due, skipped = training(scale, name, allowed)
    parts = []
    if due:
        states = results.deviations([run for run in statuses(due) if run.due])
        parts.append(f"trains {total(due)} ({states})")
        stale = sum(all(run.state == "stale" for run, _ in job.statuses if run.due) for job in due)
        parts += [f"`reproduce replay {name} --scale {scale}` may re-check {stale} instead"] if stale and name else []
    for (reason, usable), count in Counter((reason, job.usable) for job, reason in skipped).items():
        parts.append(f"{'keeps' if usable else 'leaves out'} {count} ({reason})")
    if able := [job for job, reason in skipped if not plan.missing(job)]:
        most = max(job.due.seconds for job in able) / 3600
        parts.append(f"--config budget={math.ceil(10 * most) / 10:g} trains the {len(able)} too")
    if parts:
        shows = [] if name else [f"`reproduce plan --scale {scale}` shows each"]
        print(f"{name or 'all'} at scale {scale} {'; '.join(parts + shows)}", file=sys.stderr)


def total(jobs: Iterable[Known]) -> str:
    """ "3 jobs, about 20 min on one core": how much training `jobs` is."""
    listed = list(jobs)
    time = costs.total_time(job.due for job in listed)
    return f"{counted(len(listed), 'job')}, {'about ' * time[0].isdigit()}{time} {costs.processor()}"


# --- what exists and must be made again -------------------------------------------------------------------------------


@cache
def train_marker(job: Known) -> list[str]:
    """The files that the results file of a job waits for. The last is the file that a successful training leaves,
    removed until then. A newer input precedes it if the results file is there and does not hold."""
    trained = Path(f"logs/{job.scale}/{job.paper}/{job.name}.due/trained")
    trained.unlink(missing_ok=True)  # of a workflow that was stopped
    if job.holds or not job.exists:
        return [str(trained)]
    return [_marker(str(trained.with_name("again")), [job.output], job.words), str(trained)]


@cache
def render_marker(scale: str, name: str, allowed: Budget) -> list[str]:
    """[an input newer than the files of an artifact] if they are there and not of today, or jobs are due; else []."""
    existing = [f for f in plan.outputs(scale, name) if Path(f).exists()]
    # Snakemake takes an input that is missing for made, if what was made from it is there.
    if not existing or fresh(scale, name, allowed):
        return []
    path = f"logs/{scale}/render/{name.replace('/', '_')}.due/again"
    return [_marker(path, existing, "other results, or other drawing code")]


def fresh(scale: str, name: str, allowed: Budget) -> bool:
    """Tells whether all files of an artifact are there and up to date, with nothing to train for it."""
    outputs = plan.outputs(scale, name)
    if not all(Path(f).exists() for f in outputs):
        return False
    try:
        record = json.loads(files.read_text(Path(outputs[-1])))
        of_today = record == store.sealed(plan.made_from(scale, name, jobs(scale).of(name)), Path(outputs[-2]))
    except (OSError, ValueError, RecursionError):  # damaged: `render` says what is wrong
        return False
    return of_today and not training(scale, name, allowed)[0]


def _marker(path: str, outputs: Iterable[str], reason: str) -> str:
    """Write a file that is newer than `outputs`, and never twice the same: Snakemake then makes them again.

    A newer input is the one reason that needs nothing of Snakemake's own records, which a new clone does not have. It
    lies in a folder of its own: Snakemake lists a folder once, and sees no file that comes later.
    """
    marker = Path(path)
    marker.parent.mkdir(parents=True, exist_ok=True)
    after = max(time.time_ns(), 10**9 + max(Path(f).stat().st_mtime_ns for f in outputs))
    marker.write_text(f"{reason} {after}\n", encoding="utf-8")
    os.utime(marker, ns=(after, after))
    return path


def refused(scale: str) -> list[str]:
    """Lines on files that are there but are not used: results files that are damaged or of something else, changed
    cells."""
    bad = [f"{job.output}: {job.words}" for job in catalogue(scale).jobs if job.exists and not job.usable]
    cells = [Path(plan.cells_file(scale, a.id)) for a in plan.select(None)]
    for path in filter(os.path.lexists, cells):
        try:
            store.cells(path)
        except store.Unusable as error:
            bad.append(f"{path}: {error}")
    return bad
