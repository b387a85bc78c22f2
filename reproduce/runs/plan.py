"""The jobs of a scale, the results files that feed each artifact, and the digest by which a job must run again.

The Snakefile and the command line ask here; nothing in this module imports torch or pandas, because every start of
Snakemake, also inside cluster jobs, pays for it. Snakemake asks most questions more than once: the plan is cached.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.data.load import available
from reproduce.declare import closure
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import PACKAGE, SCALES, Experiment, Panel, canonical, own_code
from reproduce.declare.paper import artifacts, papers
from reproduce.errors import UserError, unknown
from reproduce.files import read_text
from reproduce.report.histories import Source
from reproduce.report.names import pretty, words
from reproduce.settings import Settings, seeds, settings

if TYPE_CHECKING:
    from reproduce.runs.catalogue import Known

_JOB_NAME = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, eq=False)
class Job:
    """A job, trained by one call of `reproduce train`: a panel, or at paper scale one algorithm of it.

    `panel` carries the seeds in force (an override included); `artifacts` are the ids that read the results. file: the
    name of its results file, if other jobs have it too ("": its own).
    """

    scale: str
    paper: str
    name: str
    panel: Panel
    experiments: tuple[Experiment, ...]
    artifacts: tuple[str, ...]
    file: str = ""

    @property
    def output(self) -> str:
        """The results file, relative to the working directory."""
        return f"results/{self.scale}/{self.paper}/{self.file or self.name}.parquet"

    @property
    def requires(self) -> tuple[str, ...]:
        """Data sets that this job's own experiments need."""
        return tuple(sorted({name for e in self.experiments for name in e.problem.requires}))

    @property
    def runs(self) -> int:
        return len(self.experiments) * len(self.panel.seeds)

    @cached_property
    def has_own_code(self) -> bool:
        """Tells whether an experiment of the job has a user's own code."""
        return any(map(own_code, self.experiments))


# --- artifacts and jobs -----------------------------------------------------------------------------------------------


def check_scale(scale: str) -> str:
    """`scale` itself; raises UserError if there is no such scale."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    return scale


def check_paper(paper: str) -> str:
    """`paper` itself; raises UserError if there is no such paper."""
    if paper not in papers():
        raise unknown("paper", paper, papers())
    return paper


def artifact(name: str) -> Artifact:
    """The artifact with the id `name` ("fedacs/fig6"); raises UserError for an unknown one."""
    matches = [a for a in artifacts(name.partition("/")[0]) if a.id == name]
    if not matches:
        raise unknown("artifact", name, (a.id for a in artifacts()))
    return matches[0]


def select(target: str | None) -> tuple[Artifact, ...]:
    """The artifacts that `target` names: all (None), a paper's, or one ("fedacs/fig6"); UserError if unknown."""
    if target is None:
        return artifacts()
    if "/" in target:
        return (artifact(target),)
    return artifacts(check_paper(target))


def jobs(scale: str) -> tuple[Job, ...]:
    """All jobs of a scale; raises UserError if two artifacts of a paper mean different panels by one name."""
    return tuple(job for paper in papers() for job in _jobs(check_scale(scale), paper, seeds()).values())


def job(scale: str, paper: str, name: str) -> Job:
    """One job; raises UserError for an unknown scale, paper or job."""
    known = _jobs(check_scale(scale), check_paper(paper), seeds())
    if name not in known:
        raise unknown(f"job of {paper} at scale {scale}", name, known)
    return known[name]


def artifact_jobs(scale: str, name: str) -> tuple[Job, ...]:
    """The jobs whose results the artifact with the id `name` reads."""
    reader = artifact(name)
    return tuple(j for j in _jobs(check_scale(scale), reader.paper, seeds()).values() if reader.id in j.artifacts)


def seeds_read(scale: str, name: str) -> dict[str, tuple[int, ...]]:
    """Panel -> the seeds that the artifact with the id `name` reads of it, an override included."""
    return {panel.name: seeds() or panel.seeds for panel in artifact(name).panels(scale)}


@cache
def _jobs(scale: str, paper: str, override: tuple[int, ...] | None) -> dict[str, Job]:
    readers: dict[str, dict[str, Panel]] = {}
    for a in artifacts(paper):
        for panel in a.panels(scale):
            readers.setdefault(panel.name, {})[a.id] = panel
    panels = {
        name: max(parts.values(), key=lambda p: (len(p.experiments), len(p.seeds))) for name, parts in readers.items()
    }
    for panel_name, parts in readers.items():
        for reader, part in parts.items():
            if not _is_part(part, panels[panel_name]):
                other = next(r for r, p in parts.items() if p is panels[panel_name])
                raise UserError(f"panel '{part.name}' of {reader} at scale {scale} is not the one of {other}")
    by_name: dict[str, Job] = {}
    for panel_name, declared in panels.items():
        panel = declared if override is None else replace(declared, seeds=override)
        for name, experiments in _split(scale, panel).items():
            if not _JOB_NAME.fullmatch(name):
                raise UserError(f"job name '{name}' of {paper}: algorithms are named with a-z, 0-9, '_' and '-'")
            trained = {e.declaration for e in experiments}
            ids = tuple(
                reader
                for reader, part in readers[panel_name].items()
                if part.experiments == declared.experiments or any(e.declaration in trained for e in part.experiments)
            )
            by_name[name] = Job(scale, paper, name, panel, experiments, ids)
    return by_name


def _is_part(part: Panel, whole: Panel) -> bool:
    """Tells whether `part` holds nothing but experiments and seeds of the panel `whole`; its substitute may differ."""
    same = part.experiments == whole.experiments or all(e in whole.experiments for e in part.experiments)
    return same and set(part.seeds) <= set(whole.seeds)


def _split(scale: str, panel: Panel) -> dict[str, tuple[Experiment, ...]]:
    """Job name -> experiments: the whole panel, at paper scale one job an algorithm.

    Experiments that differ in their labels only are trained once, under the first's.
    """
    first: dict[str, Experiment] = {}
    for e in panel.experiments:
        first.setdefault(e.declaration, e)
    if scale != "paper":
        return {panel.name: tuple(first.values())}
    groups: dict[str, tuple[Experiment, ...]] = {}
    for e in first.values():
        algorithm = str(e.labels.get("algorithm", "")).replace("_", "-")
        name = f"{panel.name}--{algorithm}" if algorithm else panel.name
        groups[name] = (*groups.get(name, ()), e)
    return groups


# --- files ------------------------------------------------------------------------------------------------------------


ENDINGS = {"figure": (".pdf", ".png", ".txt", ".tex"), "table": (".md", ".csv", ".tex")}
"""What is made of an artifact of each kind."""


def cells_file(scale: str, name: str) -> str:
    """The per-seed cells of an artifact, which claims and the scoreboard read."""
    return f"results/{scale}/cells/{name.replace('/', '_')}.csv"


def outputs(scale: str, name: str) -> list[str]:
    """The files that rendering an artifact writes: for readers, the cells, and their sources (`outdated`)."""
    cells = cells_file(scale, name)
    return [*for_readers(scale, name, artifact(name).kind), cells, cells.replace(".csv", ".json")]


def for_readers(scale: str, name: str, kind: str) -> list[str]:
    """The table or figure files of an artifact, without its cells."""
    return [f"{kind}s/{scale}/{name.replace('/', '_')}{ending}" for ending in ENDINGS[kind]]


def artifact_files(scale: str) -> list[str]:
    """The files of all artifacts of a scale."""
    return [f for a in artifacts() for f in outputs(check_scale(scale), a.id)]


def sources(scale: str, name: str) -> list[Source]:
    """The results files of an artifact's jobs, which rendering reads. The remark on one without results follows from
    the declaration alone, not from the data and the budget of this machine."""
    files = []
    for j in artifact_jobs(scale, name):
        data = f" on {' and '.join(map(pretty, j.requires))}" if j.requires else ""
        files.append(Source(j.panel.name, Path(j.output), f"no results yet{data}", j.experiments))
    return files


@cache
def draw_digest(paper: str) -> str:
    """Digest of what draws a paper's artifacts: its modules and printed numbers, the report's, and how the names in
    them are printed."""
    folder = papers()[paper].folder
    patterns = ("*.py", "artifacts.yaml", "metrics.yaml", "reported/*.csv")
    of_paper = (file for pattern in patterns for file in folder.glob(pattern))
    code = frozenset([*PACKAGE.glob("report/*.py"), *of_paper])
    used = {word for f in code if f.parent != PACKAGE / "report" for word in re.findall(r"\w+", read_text(f))}
    names = {word: text for word, text in sorted(words().items()) if word in used}
    return _sha(closure.digest(code), json.dumps(names))


def made_from(scale: str, name: str, read: Iterable[Job | Known] | None = None) -> dict[str, Any]:
    """The record of an artifact made now: digests of what draws it and of each of its results files; seeds, if set.
    read: its jobs, if they are at hand."""
    digests = {}
    for file in (Path(j.output) for j in (artifact_jobs(scale, name) if read is None else read)):
        with suppress(OSError, UserError):  # none, or one that cannot be read: `histories` says so
            digests[file.stem] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    record = {"drawn by": draw_digest(artifact(name).paper), "results": digests}
    return record | {"seeds": list(only)} if (only := seeds()) else record


def missing(job: Job | Known) -> str:
    """The reason why the job cannot run here ("needs svhn"), or "" if it can."""
    names = lacking(job)
    return f"needs {' and '.join(names)}" if names else ""


def lacking(job: Job | Known) -> list[str]:
    """The data sets that the job needs and that are not available here."""
    return [name for name in job.requires if not _available(name, settings())]


@cache
def _available(name: str, settings: Settings) -> bool:
    return available(name, settings).state != "missing"


# --- when to run again ------------------------------------------------------------------------------------------------


@cache
def digest(job: Job, precision: str) -> str:
    """A digest that changes exactly when the results file would: experiments with code and labels (its columns), seeds,
    precision.

    Names the checkpoints of the job, which need not be one that an artifact declares: one of another digest is never
    resumed.
    """
    parts = [[e.digest, canonical(e.labels)] for e in job.experiments]
    reduced = [] if precision == "float32" else [precision]
    return _sha(json.dumps([parts, job.panel.seeds, *reduced]))


def _sha(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
