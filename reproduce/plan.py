"""Which jobs a scale consists of, which files feed which artifact, what a job costs and when it must run again.

The Snakefile and the command line ask here; nothing in this module imports torch or pandas, because every start of
Snakemake, also inside cluster jobs, pays for it. Snakemake asks most questions more than once: the plan is cached.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import results
from reproduce.declare import Artifact
from reproduce.errors import UserError, unknown
from reproduce.experiment import PACKAGE, SCALES, Experiment, Panel, canonical
from reproduce.papers import PAPERS, artifacts
from reproduce.settings import Settings, settings

if TYPE_CHECKING:
    from reproduce.engine.cost import Cost
    from reproduce.engine.rates import Rates

_JOB_NAME = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, eq=False)
class Job:
    """What one call of `python -m reproduce train` trains: a panel, or at paper scale one algorithm of it.

    `panel` carries the seeds in force (an override included); `artifacts` are the ids that read the results.
    """

    scale: str
    paper: str
    name: str
    panel: Panel
    experiments: tuple[Experiment, ...]
    artifacts: tuple[str, ...]

    @property
    def output(self) -> str:
        """The results file, relative to the working directory."""
        return f"results/{self.scale}/{self.paper}/{self.name}.parquet"

    @property
    def requires(self) -> tuple[str, ...]:
        """Data sets that this job's own experiments need."""
        return tuple(sorted({name for e in self.experiments for name in e.problem.requires}))

    @property
    def runs(self) -> int:
        return len(self.experiments) * len(self.panel.seeds)


# --- artifacts and jobs -----------------------------------------------------------------------------------------------


def check_scale(scale: str) -> str:
    """`scale` itself; raises UserError if there is no such scale."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    return scale


def check_paper(paper: str) -> str:
    """`paper` itself; raises UserError if there is no such paper."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    return paper


def artifact(name: str) -> Artifact:
    """The artifact with the id `name` ("fedacs/fig6"); raises UserError for an unknown one."""
    known = {a.id: a for a in artifacts()}
    if name not in known:
        raise unknown("artifact", name, known)
    return known[name]


def select(target: str | None) -> tuple[Artifact, ...]:
    """The artifacts that `target` names: all (None), a paper's, or one ("fedacs/fig6"); UserError if unknown."""
    if target is None:
        return artifacts()
    if "/" in target:
        return (artifact(target),)
    return tuple(a for a in artifacts() if a.paper == check_paper(target))


def jobs(scale: str) -> tuple[Job, ...]:
    """All jobs of a scale; raises UserError if two artifacts of a paper mean different panels by one name."""
    return tuple(_jobs(check_scale(scale), seeds_override()).values())


def job(scale: str, paper: str, name: str) -> Job:
    """One job; raises UserError for an unknown scale, paper or job."""
    known = _jobs(check_scale(scale), seeds_override())
    if (check_paper(paper), name) not in known:
        raise unknown(f"job of {paper} at scale {scale}", name, (n for p, n in known if p == paper))
    return known[paper, name]


def artifact_jobs(scale: str, name: str) -> tuple[Job, ...]:
    """The jobs whose results the artifact with the id `name` reads."""
    wanted = artifact(name).id
    return tuple(j for j in jobs(scale) if wanted in j.artifacts)


def allowed_hours() -> float | None:
    """`REPRODUCE_BUDGET`: hours that a job of the workflow may take; None: not said."""
    text = os.environ.get("REPRODUCE_BUDGET")
    try:
        hours = None if text is None else float(text)
    except ValueError:
        hours = math.nan
    if hours is not None and not hours >= 0:
        raise UserError(f"REPRODUCE_BUDGET={text}: use a number of hours, such as 0.5")
    return hours


def seeds_override() -> tuple[int, ...] | None:
    """The seeds of `REPRODUCE_SEEDS` ("0,1"), which then replace those of every panel; None: as declared."""
    text = os.environ.get("REPRODUCE_SEEDS")
    if text is None:
        return None
    try:
        seeds = tuple(int(s) for s in text.split(","))
    except ValueError as error:
        raise UserError(f"REPRODUCE_SEEDS={text}: use whole numbers with commas between them, such as 0,1,2") from error
    if min(seeds) < 0 or max(seeds) >= 2**32 or len(set(seeds)) < len(seeds):
        raise UserError(f"REPRODUCE_SEEDS={text}: use different numbers, from 0 to 2^32 - 1")
    return seeds


@cache
def _jobs(scale: str, seeds: tuple[int, ...] | None) -> dict[tuple[str, str], Job]:
    readers: dict[tuple[str, str], dict[str, Panel]] = {}
    for a in artifacts():
        for panel in a.panels(scale):
            readers.setdefault((a.paper, panel.name), {})[a.id] = panel
    panels = {key: max(parts.values(), key=lambda p: len(p.experiments)) for key, parts in readers.items()}
    for key, parts in readers.items():
        for reader, part in parts.items():
            if not _is_part(part, panels[key]):
                other = next(r for r, p in parts.items() if p is panels[key])
                raise UserError(f"panel '{part.name}' of {reader} at scale {scale} is not the one of {other}")
    found: dict[tuple[str, str], Job] = {}
    for (paper, panel_name), declared in panels.items():
        panel = declared if seeds is None else replace(declared, seeds=seeds)
        for name, experiments in _split(scale, panel).items():
            if not _JOB_NAME.fullmatch(name):
                raise UserError(f"job name '{name}' of {paper}: algorithms are named with a-z, 0-9, '_' and '-'")
            if (paper, name) in found:
                raise UserError(f"two jobs of {paper} at scale {scale} have the name '{name}'")
            trained = {e.declaration for e in experiments}
            wanted = tuple(
                reader
                for reader, part in readers[paper, panel_name].items()
                if part.experiments == declared.experiments or any(e.declaration in trained for e in part.experiments)
            )
            found[paper, name] = Job(scale, paper, name, panel, experiments, wanted)
    return found


def _is_part(part: Panel, whole: Panel) -> bool:
    """Does `part` name the panel `whole`, all of it or some of its experiments? What they stand in for may differ."""
    same = part.experiments == whole.experiments or all(e in whole.experiments for e in part.experiments)
    return same and part.seeds == whole.seeds


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


def sources(scale: str, name: str) -> list[tuple[str, Path | None, str]]:
    """What rendering the artifact reads: (panel, results file or None, why there is none) for each of its jobs.

    Results that were trained elsewhere count, whether or not the data set is here; those of another declaration do not.
    A damaged file is among the files: reading it ends in an error.
    """
    found: list[tuple[str, Path | None, str]] = []
    for j in artifact_jobs(scale, name):
        standing = results.standing(j)
        reason = (
            ""
            if standing.usable or standing.other == results.DAMAGED
            else missing(j) or expensive(j) or _nothing(standing)
        )
        found.append((j.panel.name, None if reason else Path(j.output), reason))
    return found


def expensive(job: Job) -> str:
    """Why the job is too long for `REPRODUCE_BUDGET`, or ""."""
    hours = allowed_hours()
    return over(hours) if hours is not None and cost(job).seconds > 3600 * hours else ""


def _nothing(standing: results.Standing) -> str:
    return f"its results are {standing.other}" if standing.exists else "no results yet"


def over(hours: float) -> str:
    """Why a job that takes longer than `hours` is left out."""
    return f"over the budget of {hours:g} h a job"


def cells_file(scale: str, name: str) -> str:
    """The per-seed cells of an artifact, which claims and the scoreboard read."""
    return f"results/{scale}/cells/{name.replace('/', '_')}.csv"


def outputs(scale: str, name: str) -> list[str]:
    """The files that rendering an artifact writes: for readers, the cells, and what they were made from (`due`)."""
    a = artifact(name)
    suffixes = ("md", "csv", "tex", "ours.tex") if a.kind == "table" else ("pdf", "png", "txt", "tex")
    drawn = [f"{a.kind}s/{scale}/{a.paper}_{a.name}.{s}" for s in suffixes]
    cells = cells_file(scale, name)
    return [*drawn, cells, cells.replace(".csv", ".json")]


def artifact_files(scale: str) -> list[str]:
    """The files of all artifacts of a scale."""
    return [f for a in artifacts() for f in outputs(check_scale(scale), a.id)]


def missing(job: Job) -> str:
    """Why the job cannot run here ("needs svhn"), or "" if it can."""
    names = lacking(job)
    return f"needs {' and '.join(names)}" if names else ""


def lacking(job: Job) -> list[str]:
    """The data sets that the job needs and that are not available here."""
    return [name for name in job.requires if not _available(name, settings())]


@cache
def _available(name: str, settings: Settings) -> bool:
    from reproduce.problems.data import available

    return available(name, settings).state != "missing"


# --- when to run again ------------------------------------------------------------------------------------------------


def digest(scale: str, paper: str, name: str) -> str:
    """Changes exactly when the results file would: experiments with code and labels (its columns), seeds, precision.

    Names the checkpoints of the job: one of another digest is never resumed.
    """
    return digest_of(job(scale, paper, name), settings().precision)


@cache
def digest_of(job: Job, precision: str) -> str:
    """The digest of a job, which need not be one that an artifact declares."""
    parts = [[e.digest, canonical(e.labels)] for e in job.experiments]
    reduced = [] if precision == "float32" else [precision]
    return _sha(json.dumps([parts, job.panel.seeds, *reduced]))


@cache
def render_digest(name: str) -> str:
    """Changes with the declarations of the paper, what it reported and claimed, and the code of the report."""
    folder = PACKAGE / "papers" / artifact(name).paper
    files = sorted(
        {f for kind in ("py", "csv", "yaml") for f in folder.rglob(f"*.{kind}")} | {*PACKAGE.glob("report/*.py")}
    )
    return _sha(*(f"{f.relative_to(PACKAGE)} {hashlib.sha256(f.read_bytes()).hexdigest()}" for f in files))


def _sha(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


# --- cost -------------------------------------------------------------------------------------------------------------


@cache
def cost(job: Job) -> Cost:
    """Estimated cost of a job on one core of this machine, whose experiments train in one cohort.

    Seconds are those of the machine's rates, times what finished jobs of the same panel, else of the same kind of
    model, took more or less of the processor. Nothing is measured here.
    """
    estimated = _estimate(job)
    return replace(estimated, seconds=estimated.seconds * correction(job))


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
    from reproduce.speed import kept

    return kept.rates(settings)


def correction(job: Job) -> float:
    """Measured / estimated seconds: of the finished jobs of this panel, else of this kind of model, else 1."""
    by_panel, by_kind = _corrections(job.scale, seeds_override(), settings())
    return by_panel.get((job.paper, job.panel.name)) or by_kind.get(kind(job)) or 1.0


@cache
def _corrections(
    scale: str, seeds: tuple[int, ...] | None, settings: Settings
) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Corrections of a scale by (paper, panel) and by kind; jobs that are declared otherwise now are left out.

    Each is a ratio of sums, for a job of hours tells more about others than one of seconds.
    """
    from reproduce.speed.learned import finished

    panels: dict[tuple[str, str], list[tuple[float, float]]] = {}
    kinds: dict[str, list[tuple[float, float]]] = {}
    for done in finished(settings):
        job = _jobs(scale, seeds).get((done.paper, done.job)) if done.scale == scale else None
        if job is None or job.runs != done.runs or not math.isclose(_estimate(job).samples, done.samples, rel_tol=1e-9):
            continue
        if at_most(job):  # how early runs reach their target says nothing about the machine; a bound stays one
            continue
        pair = done.seconds, _estimate(job).seconds
        if pair[1] < 10 * rates().start:  # it hardly trains
            continue
        panels.setdefault((job.paper, job.panel.name), []).append(pair)
        kinds.setdefault(kind(job), []).append(pair)
    return {k: _ratio(v) for k, v in panels.items()}, {k: _ratio(v) for k, v in kinds.items()}


def _ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Measured / estimated seconds of all jobs together."""
    measured, estimated = zip(*pairs, strict=True)
    return sum(measured) / sum(estimated)


def kind(job: Job) -> str:
    """The strategy of the job's model ("quadratic" without one); of several, one."""
    from reproduce.engine.cost import expected_strategy

    problems: list[Any] = [e.problem for e in job.experiments]
    return max((expected_strategy(p.model, p.sample.shape) for p in problems if p.model), default="quadratic")


def minutes(scale: str, paper: str, name: str) -> int:
    """Run time to ask a cluster for: three times the estimate and at least ten minutes."""
    return max(10, math.ceil(3 * cost(job(scale, paper, name)).seconds / 60))


def megabytes(scale: str, paper: str, name: str) -> int:
    """Memory to ask a cluster for: torch and the data set, and one and a half times the estimate."""
    return 2000 + math.ceil(1.5 * cost(job(scale, paper, name)).bytes / 1e6)


def gpus() -> int:
    """GPUs that a training job asks for."""
    return int(settings().device == "cuda")


# --- the workflow's configuration -------------------------------------------------------------------------------------


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that `config/config.yaml` sets for every job; a key that is null leaves the variable as it is."""
    keys = ("data", "store", "device", "precision", "threads", "seeds", "budget", "checkpoint")
    flag = config["to_target"]  # Snakemake leaves `--config to_target=true` a string
    values = {key: config[key] for key in keys}
    values["to_target"] = None if flag is None else int(str(flag).lower() == "true")
    return {
        f"REPRODUCE_{key.upper()}": ",".join(map(str, v)) if isinstance(v, list) else str(v)
        for key, v in values.items()
        if v is not None
    }
