"""The cost of a job on this machine, from rates and ends of the committed runs, and its limit, `REPRODUCE_BUDGET`.

Like `reproduce.runs.plan`, which Snakemake asks as often, this imports neither torch nor pandas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from reproduce.declare.experiment import Experiment
from reproduce.declare.paper import papers
from reproduce.runs import ends, rates, results
from reproduce.runs.ends import NOTHING, Ends
from reproduce.runs.plan import Job
from reproduce.settings import budget, limits, settings
from reproduce.text import duration

if TYPE_CHECKING:
    from reproduce.runs.catalogue import Known


@dataclass(frozen=True)
class Cost:
    """The cost of all runs together: training samples and FLOPs, if all go on to their end; seconds of one core of this
    machine; the most bytes of any.

    Where runs may end at a target, `most` seconds are those to their end, and `loose` the part of `seconds` that is
    a bound, too, since no run like them is there (`reproduce.runs.ends`).
    """

    samples: float
    flops: float
    seconds: float
    bytes: float
    most: float = 0.0
    loose: float = 0.0


def together(experiments: Sequence[Experiment], seeds: Sequence[int], known: Ends = NOTHING) -> Cost:
    """Estimated cost of experiments in one process; known: where such runs end."""
    gpu = settings().device == "cuda"
    each = [rates.estimate(e, seeds) for e in experiments]
    took = [len(seeds) * (rates.cuda(e) if gpu else rates.machine() * rates.seconds(e)) for e in experiments]
    went = [ends.share(e, known) if ends.early(e) else 1.0 for e in experiments]
    most, seconds = sum(took), sum(s if w is None else w * s for s, w in zip(took, went, strict=True))
    loose = sum(s for s, w in zip(took, went, strict=True) if w is None)
    start = rates.machine() * rates.START
    times = (start + seconds, start + most, loose + start * (loose == most > 0))
    samples, flops, size = sum(w.samples for w in each), sum(w.flops for w in each), max(w.bytes for w in each)
    return Cost(samples, flops, bytes=size, **dict(zip(("seconds", "most", "loose"), times, strict=True)))


def cost(job: Job) -> Cost:
    """Estimated cost of a job, whose experiments train in one cohort."""
    sources = ends.sources(job.scale, job.paper) if at_most(job) and job.paper in papers() else ((), ())
    return _cost(job, settings().to_target, settings().device, *sources)


@lru_cache(10_000)
def _cost(job: Job, to_target: bool, device: str, jobs: Sequence[Job], stamps: object) -> Cost:
    experiments = [e.to_target if to_target else e for e in job.experiments]
    return together(experiments, job.panel.seeds, ends.committed(jobs, stamps))


def due(job: Job) -> Cost:
    """Estimated cost of training the job now: of the runs that are due, of all if none is."""
    each = [cost(part) for part in results.parts(job) or (job,)]
    names = ("samples", "flops", "seconds", "most", "loose")
    return Cost(**{name: sum(getattr(c, name) for c in each) for name in names}, bytes=max(c.bytes for c in each))


def total_time(costs: Iterable[Cost]) -> str:
    """The time of all together: "about 2 h (≤ 9 h) + ≤ 3 h"; the last term is of runs for which no committed run says
    where they end."""
    listed = [*costs]
    seconds, most, loose = (sum(getattr(c, name) for c in listed) for name in ("seconds", "most", "loose"))
    known = max(0.0, seconds - loose)
    exact = most - seconds < 0.005 * most
    bounded = f"about {duration(known)} (≤ {duration(most - loose)})"
    parts = [(duration(known) if exact else bounded) if known > 0 else "", f"≤ {duration(loose)}" if loose > 0 else ""]
    return " + ".join(filter(None, parts)) or duration(0)


def processor() -> str:
    """The processor that estimated seconds are of, in words."""
    return "on one GPU, as is guessed" if settings().device == "cuda" else "on one core"


def at_most(job: Job) -> bool:
    """Tells whether runs of the job may end at a target, so that their cost is an upper bound."""
    return any(map(ends.early, job.experiments))


def minutes(job: Known, attempt: int = 1) -> int:
    """Run time to ask a cluster for: three times the estimate and at least ten minutes, for each attempt; no more than
    it gives."""
    per_attempt = max(10, math.ceil(3 * job.due.seconds / 60))
    return int(min(attempt * per_attempt, 60 * limits()[0]))


def submissions(job: Known) -> int:
    """The number of cluster jobs into which a training is cut, by one and a half times the estimate."""
    return max(1, math.ceil(1.5 * job.due.seconds / piece()))


def piece() -> float:
    """Seconds after which a training that is cut ends, in time for its last round."""
    return 0.9 * 3600 * limits()[0]


def megabytes(job: Known, attempt: int = 1) -> int:
    """Memory to ask a cluster for, for each attempt; no more than it gives."""
    return int(min(attempt * job.memory, 1000 * limits()[1]))


def memory(job: Job) -> int:
    """Megabytes for a training: torch and the data set, and one and a half times the estimate with what all runs keep;
    where the job was trained before, not less than a quarter more than it had then."""
    peak = max((run.training.get("peak_memory", 0) for run in results.standing(job).stored), default=0)
    return math.ceil(max(2000 + 1.5 * (due(job).bytes + state_bytes(job)) / 1e6, 1.25 * peak / 1e6))


def state_bytes(job: Job) -> float:
    """Bytes of the states of all runs of a job."""
    return len(job.panel.seeds) * sum(map(rates.state_bytes, job.experiments))


def held(job: Job) -> float:
    """Bytes that a cohort needs at most for the runs of a job."""
    return len(job.panel.seeds) * sum(map(rates.held, job.experiments))


def expensive(job: Known) -> str:
    """The reason why the job is too long for `REPRODUCE_BUDGET`, or ""."""
    hours = budget()
    return over(hours) if hours is not None and job.due.seconds > 3600 * hours else ""


def over(hours: float) -> str:
    """The reason for leaving out a job that takes longer than `hours`."""
    return f"over the budget of {hours:g} h a job"
