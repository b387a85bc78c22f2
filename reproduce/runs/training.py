"""A job is trained: what must be there before, which runs are due, and where its digest and its files come from."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reproduce import store
from reproduce.data.load import available
from reproduce.errors import MissingData, UserError, say_once
from reproduce.files import check_writable, sole, sweep
from reproduce.runs import plan, results
from reproduce.settings import settings
from reproduce.store import Stored
from reproduce.text import counted, named_seeds


def check(job: plan.Job, output: Path) -> None:
    """Raises MissingData or UserError if the job cannot be trained here, or its files not be written."""
    for name in plan.lacking(job):
        raise MissingData(name, available(name, settings()).detail)
    for problem in dict.fromkeys(e.problem for e in job.experiments):
        if getattr(getattr(problem, "model", None), "foreign", False):
            _check_network(problem)
    for path in (output, settings().store / "checkpoints" / "one"):
        check_writable(path)


def _check_network(problem: Any) -> None:
    """A line on stderr for a network without a graph, or has more outputs than there are classes (`Classification`
    refuses one with fewer)."""
    model, classes = problem.model, problem.source.classes
    if model.graph.untraced:
        say_once(f"{model} runs eagerly, as torch runs it: {model.graph.untraced}")
    outputs = model.cost(problem.sample.shape).outputs[0]
    if outputs > classes:
        say_once(
            f"warning: {model} has {outputs} outputs for the {classes} classes of {problem.data}: no sample is of the "
            f"others; give it {classes}"
        )


def prepare(jobs: Iterable[plan.Job]) -> None:
    """Read what trainings of `jobs` read first, for processes that are forked from this one; computes nothing."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from reproduce.runs import job as engine  # noqa: F401

    for job in jobs:
        plan.digest(job, settings().precision)
        results.standing(job)


def train(job: plan.Job, output: Path | None = None) -> None:
    """Train the job; one that was killed goes on from its checkpoint. Raises what `check` raises.

    Where the workflow expects the results file, the runs that are due are trained and put into it; if none is, all are.
    With another `output` that file gets all runs, and nothing else. With `to_target` (`settings`) runs that have a
    target end there; nothing changes before it. What is no longer declared goes from the file. UserError if another
    process trains the same runs.
    """
    path = output or Path(job.output)
    check(job, path)
    sweep(settings().store / "checkpoints")
    separate = path.absolute() != Path(job.output).absolute()
    stays: Callable[[Stored], bool] = (lambda run: False) if separate else partial(results.stays, job)
    if not separate and (undeclared := sum(not stays(run) for run in store.usable(path)[1])):
        print(f"{path}: {counted(undeclared, 'run')} of what is no longer declared will go", file=sys.stderr)
    with own_gpu() if settings().device == "cuda" else nullcontext():
        for part in (not separate and results.parts(job)) or (job,):
            if part is not job:
                print(f"{path}: {results.standing(job).words}; trains {_runs(part)}, keeps the rest", file=sys.stderr)
            _train(part, path, stays)


@contextmanager
def own_gpu() -> Iterator[None]:
    """A GPU that no other training has, the only one that this process sees from now on; stderr says which.

    Where `CUDA_VISIBLE_DEVICES` names a single one, somebody has given it, as batch systems do. UserError if all are
    taken. To be entered before CUDA starts, which reads the variable once.
    """
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(i) for i in range(torch.cuda.device_count())]  # does not start CUDA
    with ExitStack() as held:
        for i, name in enumerate(names if names != [visible] else ()):
            lock = Path(tempfile.gettempdir(), f"reproduce-{os.getuid()}-gpu-{name}")
            try:
                held.enter_context(sole(lock, f"another job on GPU {name}"))
            except UserError:
                if i + 1 == len(names):
                    raise
                continue
            os.environ["CUDA_VISIBLE_DEVICES"] = name
            print(f"trains on GPU {name}", file=sys.stderr)
            break
        yield


def _train(job: plan.Job, path: Path, stays: Callable[[Stored], bool]) -> None:
    from reproduce.runs.job import train_job

    if settings().to_target:
        job = replace(job, experiments=tuple(e.to_target for e in job.experiments))
    digest = plan.digest(job, settings().precision)
    place = settings().store / "checkpoints" / f"{job.scale}-{job.paper}-{job.name}-{digest}"
    with sole(place, f"{job.scale}/{job.paper}/{job.name}"):
        train_job(job, Path(f"{place}.pt"), path, stays)


def _runs(part: plan.Job) -> str:
    return f"{counted(len(part.experiments), 'setting')} with {named_seeds(part.panel.seeds)}"
