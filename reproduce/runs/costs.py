"""What a job costs on this machine, and whether it may: rates measured here, finished jobs, `REPRODUCE_BUDGET`.

Like `reproduce.runs.plan`, which Snakemake asks as often, this imports neither torch nor pandas.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from reproduce.engine.hardware import machine
from reproduce.runs import plan, results
from reproduce.runs.plan import Job
from reproduce.settings import Settings, budget, seeds, settings

if TYPE_CHECKING:
    from reproduce.engine.cost import Cost
    from reproduce.engine.rates import Rates


@cache
def cost(job: Job) -> Cost:
    """Estimated cost of a job on one core of this machine, whose experiments train in one cohort.

    Seconds are those of the machine's rates, times what finished jobs took more or less of the processor
    (`correction`). Nothing is measured here.
    """
    estimated = _estimate(job)
    return replace(estimated, seconds=estimated.seconds * correction(job))


def due(job: Job) -> Cost:
    """Estimated cost of training the job now: of the runs that are due, of all if none is."""
    from reproduce.engine.cost import Cost

    each = [cost(part) for part in results.parts(job) or (job,)]
    samples, flops, seconds = (sum(getattr(c, name) for c in each) for name in ("samples", "flops", "seconds"))
    return Cost(samples, flops, seconds, max(c.bytes for c in each))


@cache
def _estimate(job: Job) -> Cost:
    from reproduce.engine.cost import estimate_together

    return estimate_together(job.experiments, job.panel.seeds, rates())


def at_most(job: Job) -> bool:
    """Is the cost an upper bound, because runs may end at their target?"""
    return any(getattr(e.clock, "until", None) is not None for e in job.experiments)


def forget_speed() -> None:
    """Estimate anew: the machine was measured, or jobs have finished."""
    for known in (cost, _estimate, _rates, _corrections):
        known.cache_clear()


def rates() -> Rates:
    """The rates by which jobs are estimated."""
    return _rates(settings())


@cache
def _rates(settings: Settings) -> Rates:
    from reproduce.runs.speed import kept

    return kept.rates(settings)


def correction(job: Job) -> float:
    """Measured / estimated seconds, in two factors that finished jobs tell.

    The time for as many samples, of this panel, else of this kind of model; and the share of the declared samples that
    the paper's jobs with these algorithms trained on: FedACS, whose clients are chosen, trains on a third of FedAvg's.
    Each is 1 where no job tells.
    """
    known = _corrections(job.scale, seeds(), settings())
    time = known.panels.get((job.paper, job.panel.name)) or known.kinds.get(kind(job)) or 1.0
    return time * (known.shares.get((job.paper, _algorithms(job))) or 1.0)


def _algorithms(job: Job) -> tuple[str, ...]:
    return tuple(sorted({type(e.algorithm).__name__ for e in job.experiments}))


@dataclass(frozen=True)
class _Corrections:
    """Measured / estimated of finished jobs: times by (paper, panel) and by kind, samples by (paper, algorithms).

    Each is a ratio of sums, for a job of hours tells more about others than one of seconds.
    """

    panels: dict[tuple[str, str], float]
    kinds: dict[str, float]
    shares: dict[tuple[str, tuple[str, ...]], float]


@cache
def _corrections(scale: str, override: tuple[int, ...] | None, settings: Settings) -> _Corrections:
    """The corrections of a scale, by the jobs whose runs were all trained on this machine."""
    panels, kinds, shares = (defaultdict[Any, list[tuple[float, float]]](list) for _ in range(3))
    for job in plan.jobs(scale) if settings.device == "cpu" else ():
        # How early runs reach their target says nothing about the machine; a bound stays one. Some jobs hardly train.
        if at_most(job) or _estimate(job).seconds < 10 * rates().start or not (took := _took(job)):
            continue
        seconds, trained = took
        declared = _estimate(job).samples
        pair = seconds, _estimate(job).seconds * (trained / declared if declared else 1.0)
        panels[job.paper, job.panel.name].append(pair)
        kinds[kind(job)].append(pair)
        shares[job.paper, _algorithms(job)].append((trained, declared))
    return _Corrections(*({k: _ratio(v) for k, v in of.items()} for of in (panels, kinds, shares)))


def _took(job: Job) -> tuple[float, float] | None:
    """Seconds of the processor, and samples that the job's runs were trained on; None unless all were trained here, in
    float32, and say so. Of seconds on the clock, other programs would have a part."""
    runs = results.standing(job).there
    said = all(run.seconds is not None and run.samples is not None for run in runs)
    here = all((run.training.get("machine"), run.precision) == (machine(), "float32") for run in runs)
    if len(runs) < job.runs or not (said and here):
        return None
    trainings = {id(run.training): run.training for run in runs}.values()
    seconds = sum(training.get("cpu_seconds") or 0.0 for training in trainings)
    return (seconds, sum(run.samples or 0 for run in runs)) if seconds else None


def _ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Measured / estimated of all jobs together."""
    measured, estimated = (sum(column) for column in zip(*pairs, strict=True))
    return measured / estimated if estimated else 1.0


def kind(job: Job) -> str:
    """The strategy by which the job's model is trained ("quadratic" without one); of several, one."""
    from reproduce.engine.cost import expected_strategy

    pairs: list[tuple[Any, Any]] = [(e.problem, e.algorithm) for e in job.experiments]
    strategies = (expected_strategy(p.model, p.sample.shape, a.rule()) for p, a in pairs if p.model)
    return max(strategies, default="quadratic")


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


def gpus() -> int:
    """GPUs that a training job asks for."""
    return int(settings().device == "cuda")


# --- the budget -------------------------------------------------------------------------------------------------------


def expensive(job: Job) -> str:
    """Why the job is too long for `REPRODUCE_BUDGET`, or ""."""
    hours = budget()
    return over(hours) if hours is not None and due(job).seconds > 3600 * hours else ""


def over(hours: float) -> str:
    """Why a job that takes longer than `hours` is left out."""
    return f"over the budget of {hours:g} h a job"
