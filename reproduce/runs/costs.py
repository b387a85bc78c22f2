"""What a job costs on this machine, and whether it may: rates of the committed runs, `REPRODUCE_BUDGET`.

Like `reproduce.runs.plan`, which Snakemake asks as often, this imports neither torch nor pandas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reproduce.declare.experiment import Experiment
from reproduce.runs import plan, results
from reproduce.runs.plan import Job
from reproduce.settings import budget


@dataclass(frozen=True)
class Cost:
    """Of all runs together: training samples, FLOPs, seconds of one core of this machine; the most bytes of any."""

    samples: float
    flops: float
    seconds: float
    bytes: float


def together(experiments: Sequence[Experiment], seeds: Sequence[int]) -> Cost:
    """Estimated cost of experiments in one process; an upper bound where runs stop at a target."""
    from reproduce.runs import rates

    each = [rates.estimate(e, seeds) for e in experiments]
    took = len(seeds) * sum(map(rates.seconds, experiments))
    samples, flops = sum(w.samples for w in each), sum(w.flops for w in each)
    return Cost(samples, flops, rates.machine() * (rates.START + took), max(w.bytes for w in each))


@cache
def cost(job: Job) -> Cost:
    """Estimated cost of a job, whose experiments train in one cohort."""
    return together(job.experiments, job.panel.seeds)


def due(job: Job) -> Cost:
    """Estimated cost of training the job now: of the runs that are due, of all if none is."""
    each = [cost(part) for part in results.parts(job) or (job,)]
    samples, flops, seconds = (sum(getattr(c, name) for c in each) for name in ("samples", "flops", "seconds"))
    return Cost(samples, flops, seconds, max(c.bytes for c in each))


def at_most(job: Job) -> bool:
    """Is the cost an upper bound, because runs may end at their target?"""
    return any(getattr(e.clock, "until", None) is not None for e in job.experiments)


def minutes(scale: str, paper: str, name: str) -> int:
    """Run time to ask a cluster for: three times the estimate and at least ten minutes."""
    return max(10, math.ceil(3 * due(plan.job(scale, paper, name)).seconds / 60))


def megabytes(scale: str, paper: str, name: str) -> int:
    """Memory to ask a cluster for: torch and the data set, and one and a half times the estimate with what all runs
    keep; where the job was trained before, not less than a quarter more than it had then."""
    job = plan.job(scale, paper, name)
    peak = max((run.training.get("peak_memory", 0) for run in results.standing(job).there), default=0)
    return math.ceil(max(2000 + 1.5 * (due(job).bytes + kept(job)) / 1e6, 1.25 * peak / 1e6))


def kept(job: Job) -> float:
    """Bytes of the states of all runs of a job, which live as long as it does: model, server's vectors, vectors of the
    clients, and of sessions the stored models with their fingerprints."""
    total = 0.0
    for e in job.experiments:
        problem: Any = e.problem
        if problem.model is None:  # a quadratic, of a few numbers
            continue
        vectors = 2 + e.algorithm.per_client * problem.clients + 2 * getattr(e.clock, "sessions", 0)
        total += 4.0 * problem.model.parameters * vectors * len(job.panel.seeds)
    return total


def held(job: Job) -> float:
    """Bytes that a cohort needs at most for the runs of a job, beside what it needs for any: what they keep, and what
    all of them ask for at once. That was up to 68 vectors of a model a run, with twenty clients in a round (AG News in
    Table 1 of dynamic_init), and about half of it with ten (160 runs of FedaGrac's Table 2)."""
    problems: list[Any] = [e.problem for e in job.experiments]
    asked = 70 * 4.0 * sum(p.model.parameters for p in problems if p.model) * len(job.panel.seeds)
    return kept(job) + asked


def expensive(job: Job) -> str:
    """Why the job is too long for `REPRODUCE_BUDGET`, or ""."""
    hours = budget()
    return over(hours) if hours is not None and due(job).seconds > 3600 * hours else ""


def over(hours: float) -> str:
    """Why a job that takes longer than `hours` is left out."""
    return f"over the budget of {hours:g} h a job"
