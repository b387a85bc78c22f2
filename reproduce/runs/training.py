"""A job is trained: what must be there before, which runs are due, and where its digest and its files come from."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import MissingData, UserError, say_once
from reproduce.files import check_writable, sole, sweep
from reproduce.runs import plan, results
from reproduce.settings import settings
from reproduce.text import counted, named_seeds

if TYPE_CHECKING:
    from reproduce.data.sample import Sample
    from reproduce.models.network import Network


def check(job: plan.Job, output: Path) -> None:
    """Raises MissingData or UserError if the job cannot be trained here, or its files not be written."""
    from reproduce.data.load import available

    for name in plan.lacking(job):
        raise MissingData(name, available(name, settings()).detail)
    for problem in dict.fromkeys(e.problem for e in job.experiments):
        if getattr(getattr(problem, "model", None), "foreign", False):
            _check_network(problem)
    for path in (output, settings().store / "checkpoints" / "one"):
        check_writable(path)


def _check_network(problem: Any) -> None:
    """UserError for a network that makes probabilities; a line on stderr for one that squeezes its logits, or has more
    outputs than there are classes (`Classification` refuses one with fewer)."""
    model, classes = problem.model, problem.source.classes
    outputs, probabilities, squeezed = _outputs(model, problem.sample)
    if probabilities:
        raise UserError(f"{model} ends in a softmax, which the loss takes itself: let it end in the logits")
    if squeezed:
        say_once(
            f"warning: {model} gives numbers between 0 and 1, as a sigmoid does, and the loss takes logits: let it "
            "end in these"
        )
    if outputs > classes:
        say_once(
            f"warning: {model} has {outputs} outputs for the {classes} classes of {problem.data}: no sample is of the "
            f"others; give it {classes}"
        )


@cache
def _outputs(model: Network, sample: Sample) -> tuple[int, bool, bool]:
    """How many outputs a network has; whether they are positive and sum to 1 for whatever sample; whether they are
    between 0 and 1, for large samples too."""
    import torch

    from reproduce.engine.ops import One

    random = torch.Generator().manual_seed(0)
    if sample.dtype == "int64":
        x = torch.randint(sample.vocabulary, (8, *sample.shape), generator=random)
    else:
        x = torch.randn((8, *sample.shape), generator=random)
        x[4:] *= 1e4
    with torch.no_grad():
        made = model.forward(One(), model.module(0).state_dict(), One().images(x))
    within = bool((made >= 0).all() and (made <= 1 + 1e-4).all())
    return made.shape[1], within and bool((made.sum(1) - 1).abs().max() < 1e-4), within


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
    return f"{counted(len(part.experiments), 'setting')} with {named_seeds(part.panel.seeds)}"
