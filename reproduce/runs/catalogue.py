"""The catalogue of a scale: its tables, figures and jobs, what is there of them and what they cost, in words and
numbers.

`list`, `plan` and every start of Snakemake ask for no more. It is kept in the store until a file changes that it
follows from, so that they need not declare all experiments and read all results again.
"""

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import files, store
from reproduce.declare.experiment import PACKAGE
from reproduce.declare.paper import total
from reproduce.errors import UserError
from reproduce.runs import costs, plan, results
from reproduce.runs.costs import Cost
from reproduce.runs.results import RunStatus
from reproduce.settings import seeds, settings, variable


class Listed(NamedTuple):
    """A table or figure: how many panels it reads, and how many runs these have."""

    id: str
    paper: str
    kind: str
    title: str
    panels: int
    runs: int


@dataclass(frozen=True)
class Known:
    """A job without its experiments, of which there are so many.

    cost: of all its runs; due: of those to train, of all if none is; memory: in megabytes. at_most: may runs end at a
    target? exists, refused, usable, holds, state, words: as of `results.Standing`. statuses: with numbers of runs.
    digest: see `plan.digest`.
    """

    scale: str
    paper: str
    name: str
    panel: str
    output: str
    artifacts: tuple[str, ...]
    requires: tuple[str, ...]
    experiments: int
    seeds: tuple[int, ...]
    cost: Cost
    due: Cost
    memory: int
    at_most: bool
    exists: bool
    refused: str
    usable: bool
    holds: bool
    state: str
    words: str
    statuses: tuple[tuple[RunStatus, int], ...]
    digest: str

    @property
    def runs(self) -> int:
        return self.experiments * len(self.seeds)


class Catalogue(NamedTuple):
    """The contents of a scale. total: how many tables and figures of the papers there are."""

    total: str
    artifacts: tuple[Listed, ...]
    jobs: tuple[Known, ...]

    def select(self, target: str | None) -> list[Listed]:
        """The artifacts that `target` names, as in `plan.select`."""
        selected = [a for a in self.artifacts if target in (None, a.paper, a.id)]
        if not selected:
            plan.select(target)  # says what is unknown
        return selected

    def of(self, artifact: str) -> list[Known]:
        """The jobs that an artifact reads."""
        return [job for job in self.jobs if artifact in job.artifacts]


def statuses(jobs: Iterable[Known]) -> Iterator[RunStatus]:
    """The state of each of the runs of jobs."""
    return (run for job in jobs for run, count in job.statuses for _ in range(count))


def catalogue(scale: str) -> Catalogue:
    """The catalogue of a scale as its files are now; names the results files that cannot be used on stderr."""
    current = _catalogue(plan.check_scale(scale), follows(scale), settings().store / f"catalogue-{scale}.json")
    for job in (job for job in current.jobs if job.refused):
        store.say(Path(job.output), job.refused)
    return current


@lru_cache(8)
def _catalogue(scale: str, follows: str, cache_file: Path) -> Catalogue:
    with suppress(OSError, ValueError, LookupError, TypeError):
        data = json.loads(files.read_text(cache_file))
        if data["follows"] == follows:
            listed = tuple(Listed(*a) for a in data["artifacts"])
            return Catalogue(data["total"], listed, tuple(map(_read, data["jobs"])))
    computed = Catalogue(total(), tuple(_listed(scale)), tuple(map(known, plan.jobs(scale))))
    with suppress(UserError):  # where nothing can be written it is only slower
        data = {"follows": follows, **computed._asdict(), "jobs": [asdict(job) for job in computed.jobs]}
        files.write_text(cache_file, json.dumps(data))
    return computed


def _read(data: dict[str, Any]) -> Known:
    """A job as it was kept: lists are tuples again."""
    of = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    of |= {name: Cost(**data[name]) for name in ("cost", "due")}
    return Known(**of | {"statuses": tuple((RunStatus(*run), count) for run, count in data["statuses"])})


def follows(scale: str) -> str:
    """Digest of all that the catalogue depends on: names, sizes and times of the package's files and of the results;
    settings; the machine, which the times are of."""
    folders = [PACKAGE, *filter(None, [variable("REPRODUCE_PAPERS")])]
    paths = [os.path.join(root, name) for top in folders for root, _, names in os.walk(top) for name in names]
    paths += [str(results.replay_file(scale)), *map(str, Path("results", scale).glob("*/*.parquet"))]
    stamps = [(path, results.stamp(path)) for path in sorted(paths) if not path.endswith(".pyc")]
    current = settings()
    options = current.precision, current.precision_asked, current.device, current.to_target, current.reuse
    return hashlib.sha256(json.dumps([stamps, os.getcwd(), platform.node(), seeds(), options]).encode()).hexdigest()


def _listed(scale: str) -> Iterator[Listed]:
    for a in plan.select(None):
        runs = [len(panel.experiments) * len(panel.seeds) for panel in a.panels(scale)]
        yield Listed(a.id, a.paper, a.kind, a.title, len(runs), sum(runs))


def known(job: plan.Job) -> Known:
    """The catalogue's record of a job."""
    standing = results.standing(job)
    declared = ("scale", "paper", "name", "output", "artifacts", "requires")
    stands = ("exists", "refused", "usable", "holds", "state", "words")
    return Known(
        **{name: getattr(job, name) for name in declared},
        **{name: getattr(standing, name) for name in stands},
        panel=job.panel.name,
        experiments=len(job.experiments),
        seeds=job.panel.seeds,
        cost=costs.cost(job),
        due=costs.due(job),
        memory=costs.memory(job),
        at_most=costs.at_most(job),
        statuses=tuple(Counter(run.status for run in standing.runs).items()),
        digest=plan.digest(job, settings().precision),
    )
