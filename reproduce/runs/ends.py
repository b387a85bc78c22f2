"""The share of its length after which a run ends at a target, as that of the committed runs most like it.

Like `reproduce.runs.plan`, which Snakemake asks as often, this imports neither torch nor pandas.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from reproduce.declare.experiment import Experiment
from reproduce.runs import plan, results
from reproduce.runs.plan import Job
from reproduce.runs.results import Joined
from reproduce.settings import seeds

Ends = Mapping[Experiment, Sequence[float]]
"""Experiment -> how far each of its runs went, as a share of the rounds or virtual seconds that it may take."""

NOTHING: Ends = MappingProxyType({})


def early(e: Experiment) -> bool:
    """Tells whether runs of the experiment may end at a target."""
    return getattr(e.clock, "until", None) is not None


def sources(scale: str, paper: str) -> tuple[tuple[Job, ...], tuple[object, ...]]:
    """The jobs of a paper whose runs may end at a target, and what changes with their results."""
    jobs = _early(scale, paper, seeds())
    return jobs, tuple(results.stamp(j.output) for j in jobs)


@cache
def _early(scale: str, paper: str, seeds: object) -> tuple[Job, ...]:
    return tuple(j for j in plan.jobs(scale) if j.paper == paper and any(map(early, j.experiments)))


@lru_cache(16)
def committed(jobs: Sequence[Job], stamps: object) -> Ends:
    """The ends of the committed runs of these jobs; `stamps` renew the cache."""
    return of(run for j in jobs for run in results.standing(j).runs)


def of(runs: Iterable[Joined]) -> Ends:
    """Experiment -> shares of their length after which these runs ended, as far as they are there."""
    shares: dict[Experiment, list[float]] = {}
    for run in runs:
        if run.stored and early(run.experiment):
            e = run.experiment.to_target if run.early else run.experiment
            shares.setdefault(e, []).append(min(1.0, run.stored.last / e.clock.length(e)))
    return shares


def share(e: Experiment, ends: Ends) -> float | None:
    """The share of its length that a run of `e` is expected to go: the mean of the runs that are most like it, and at
    least as far as figures show. None if there is no run of its algorithm with its network on its data."""
    far = {other: distance(e, other) for other in ends if _comparable(other) == _comparable(e)}
    if not far:
        return None
    nearest = [went for other, d in far.items() if d == min(far.values()) for went in ends[other]]
    return max(statistics.mean(nearest), (getattr(e.clock, "least", 0) or 0) / (getattr(e.clock, "horizon", 0) or 1))


@cache
def _comparable(e: Experiment) -> tuple[Any, ...]:
    """The algorithm, network and data, which two runs must share to be compared."""
    return type(e.algorithm), type(e.problem.model), e.problem.requires


def distance(one: Experiment, other: Experiment) -> float:
    """The distance of two declarations, summed over their fields: the logarithm of the ratio of positive numbers, else
    1 for any difference."""
    a, b = _values(one), _values(other)
    return math.fsum(_far(a.get(name), b.get(name)) for name in a.keys() | b.keys())


def _far(a: Any, b: Any) -> float:
    if a == b:
        return 0.0
    numbers = all(isinstance(v, int | float) and v > 0 for v in (a, b))
    return abs(math.log(a / b)) if numbers else 1.0


@cache
def _values(e: Experiment) -> Mapping[str, Any]:
    return dict(_leaves(e.parts, ""))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in items:
            yield from _leaves(inner, f"{name}.{key}")
    else:
        yield name, value
