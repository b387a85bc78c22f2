"""Numbers for sentences: selections of committed cells, and what the pages say of them.

The templates of `reproduce.pages.documents` call the functions in `FUNCTIONS`; each returns text.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, TemplateError

from reproduce import store
from reproduce.declare.paper import artifacts, metric, papers
from reproduce.errors import UserError, unknown
from reproduce.report import metrics, render
from reproduce.report.metrics import Reading, read_as, t_interval
from reproduce.report.names import canonical
from reproduce.runs import plan, results
from reproduce.text import duration
from reproduce.verdicts.judging import level_at
from reproduce.verdicts.scoreboard import judged


@dataclass(frozen=True)
class Cells:
    """Rows of a file of cells. Calling it narrows: `c(algorithm="fedacs")`, `c(n=[10, 20])`."""

    rows: pd.DataFrame
    name: str

    def __call__(self, **where: Any) -> Cells:
        rows = self.rows
        for column, value in where.items():
            if column not in rows:
                raise UserError(f"{self.name} has no column '{column}'; it has {', '.join(map(str, rows.columns))}")
            values = {canonical(w) for w in (value if isinstance(value, list) else [value])}
            rows = rows[rows[column].map(canonical).isin(values)]
            if rows.empty:
                raise UserError(f"{self.name} has no rows with {column} = {value} (and {where})")
        return Cells(rows, self.name)

    @property
    def seeds(self) -> pd.Series:
        """seed -> value. UserError if the rows belong to more than one setting."""
        values = self.rows.set_index("seed")["value"] if "seed" in self.rows else self.rows["value"]
        if values.index.duplicated().any() or ("seed" not in self.rows and len(values) > 1):
            raise UserError(f"{self.name}: these rows are of more than one setting:\n{self.rows}")
        return values

    @property
    def censored(self) -> bool:
        """Tells whether any of the values is a lower bound."""
        return "censored" in self.rows and bool((self.rows["censored"] == "True").any())

    def mean(self, digits: int = 1) -> str:
        """The mean over seeds; "> 200" where one was not there by the end, "diverged" where one diverged."""
        values = self.seeds
        if values.isna().any():
            return f"{int(values.isna().sum())} of {len(values)} diverged"
        return f"{'> ' * self.censored}{values.mean():,.{digits}f}"

    def interval(self, digits: int = 1) -> str:
        """The mean with its 95 % t-interval over seeds: "39.0 (36.2 to 41.8)"; a bound and a single seed have none."""
        values = self.seeds
        if self.censored or values.isna().any() or len(values) < 2:
            return self.mean(digits)
        return f"{self.mean(digits)} ({_ends(t_interval(list(values)), digits)})"

    def range(self, digits: int = 1, over: str | Iterable[str] = "algorithm") -> str:
        """Least to greatest of the means over seeds, one mean for each value of `over`. UserError if a run diverged."""
        if self.rows["value"].isna().any():
            raise UserError(f"{self.name}: a run of these diverged, so there is no least and no greatest mean")
        means = self.rows.groupby([over] if isinstance(over, str) else list(over))["value"].mean()
        low, high = f"{means.min():,.{digits}f}", f"{means.max():,.{digits}f}"
        return low if low == high else f"{low} to {high}"

    def average(self, *over: str) -> Cells:
        """The mean over the columns `over`, seed by seed; a lower bound where one of the values is, and NaN where one
        diverged."""
        keep = [c for c in self.rows.columns if c not in (*over, "value", "censored", "text")]
        groups = self.rows.groupby(keep, sort=False, dropna=False)
        means = groups["value"].agg(lambda values: values.mean(skipna=False)).to_frame()
        if "censored" in self.rows:
            means["censored"] = groups["censored"].agg(lambda values: str((values == "True").any()))
        return Cells(means.reset_index(), self.name)


def cells(artifact: str) -> Cells:
    """The committed cells of "paper/fedacs_fig7": scale, then paper and name."""
    scale, _, name = artifact.partition("/")
    path = Path(f"results/{scale}/cells/{name}.csv")
    try:
        return _valued(store.cells(path), str(path)) if os.path.lexists(path) else _read(path)
    except store.Unusable as error:
        raise UserError(f"{path}: {error}; render it again") from error


def played(name: str) -> Cells:
    """The rows that `reproduce play ... -o play/reduced/across` wrote, of "reduced/across"."""
    return _read(Path(f"play/{name}.csv"))


def printed(artifact: str) -> Cells:
    """The numbers that a paper prints, of "fedacs/table1"."""
    paper, _, name = artifact.partition("/")
    return _read(papers()[paper].folder / f"reported/{name}.csv")


# --- another reading of stored curves: a paper seldom says which evaluation it reports ---


@cache
def reread(artifact: str, folder: Path, **reading: Any) -> Cells:
    """The cells of "reduced/fedacs_table1" as another reading of its stored curves makes them, in `folder`, where one
    is. UserError if there are none."""
    scale, _, name = artifact.partition("/")
    known = {f"{a.paper}_{a.name}": a for a in artifacts()}
    if name not in known:
        raise unknown("artifact", name, known)
    a = known[name]
    histories = render.read(a, scale, plan.sources(scale, a.id), plan.seeds_read(scale, a.id))
    if histories.frame.empty:
        raise UserError(f"{artifact} has no stored curves to read otherwise")
    with read_as(Reading(**reading)), render.lacking(a, histories):
        values = render.check(a, metrics.cells(a, histories))
    return _valued(_table(io.StringIO(render.cells_csv(a, values))), f"{artifact} read otherwise")


def lead(a: Cells, b: Cells, digits: int = 1, look: int = 0) -> str:
    """Mean of a - b over the seeds that both have, with its interval: "9.4 (4.5 to 14.4)". Where a claim asks for this
    difference, both are those of its verdict, which ‡ marks where it is wider; else the interval is the t-interval at
    95 %. look: the t-interval at the level of that look, whatever claims ask, for tables of one level.

    Where a missed a target in some seed its numbers are lower bounds, so that only the lower end of the interval says
    something: "at least 4.5". Where b did, it is "at most 14.4"; where both did, there is no interval.
    """
    a, b = _shared(a, b)
    value, low, high = gap(a, b)
    plain = t_interval(list(a.seeds - b.seeds), level_at(look or 1))
    if look:
        low, high = plain
    if a.censored and b.censored:
        return f"{_signed(value, digits)} (bounds on both sides)"
    if a.censored or b.censored:
        return f"at least {_signed(low, digits)}" if a.censored else f"at most {_signed(high, digits)}"
    wider = high - low > 1.001 * (plain[1] - plain[0])
    return f"{_signed(value, digits)} ({_ends((low, high), digits)})" + "‡" * wider


def _ends(interval: tuple[float, float], digits: int) -> str:
    return " to ".join(_signed(end, digits) for end in interval)


def _signed(value: float, digits: int) -> str:
    """A number with a true minus sign, and none before zero."""
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _judged(a: Cells, b: Cells) -> tuple[float, float, float] | None:
    """The number of a - b and its interval as the verdict has them that has the widest, if there is one."""
    path = Path(a.name)
    if a.name != b.name or path.parts[:1] != ("results",):
        return None
    paper = next(p for p in papers() if path.stem.startswith(f"{p}_"))
    gaps, candidates = _key(a.seeds - b.seeds), []
    for u in judged(f"{paper}/{path.stem.removeprefix(f'{paper}_')}", path.parts[1], Path("results").absolute()):
        j, bounds = u.judged, [low if math.isfinite(low) else high for low, high in u.seeds]
        low, high = -math.inf if j.low is None else j.low, math.inf if j.high is None else j.high
        candidates += [(j.value, low, high)] * (_key(bounds) == gaps)
        candidates += [(-j.value, -high, -low)] * (_key([-v for v in bounds]) == gaps)
    return max(candidates, key=lambda one: one[2] - one[1], default=None) if any(gaps) else None


def _key(values: Iterable[float]) -> list[float]:
    """Numbers of seeds without their order, and without the last digits of a sum."""
    return sorted(float(f"{v:.8g}") for v in values)


def gap(a: Cells, b: Cells) -> tuple[float, float, float]:
    """The number of a - b over the seeds that both have, and its interval, as the verdict of a claim has them that asks
    for it; else the mean and its 95 % t-interval."""
    a, b = _shared(a, b)
    gaps = a.seeds - b.seeds
    if gaps.isna().any():
        raise UserError(f"{a.name} and {b.name}: a lead needs two seeds that both have, and none that diverged")
    return _judged(a, b) or (float(gaps.mean()), *t_interval(list(gaps)))


def _shared(a: Cells, b: Cells) -> tuple[Cells, Cells]:
    """The rows of `a` and `b` of the seeds that both have. UserError if these are fewer than two."""
    both = a.seeds.index.intersection(b.seeds.index)
    if len(both) < 2:
        raise UserError(f"{a.name} and {b.name}: a lead needs two seeds that both have")
    return Cells(a.rows[a.rows["seed"].isin(both)], a.name), Cells(b.rows[b.rows["seed"].isin(both)], b.name)


OUTCOMES = ("ahead", "unclear", "equal", "behind", "diverged", "failed", "refused")


def outcome(a: Cells, b: Cells) -> str:
    """The outcome of a against b on the same seeds of a play, one of `OUTCOMES`. It follows the 95 % t-interval of the
    difference; "equal" if seeds agree but for rounding; "refused", "failed" or "diverged" if one has no numbers."""
    states = {str(s).partition(":")[0] for c in (a, b) for s in c.rows["status"]}
    for word in ("refused", "failed", "diverged"):
        if word in states:
            return word
    _, low, high = gap(a, b)
    if (a.seeds - b.seeds).abs().max() <= 1e-9 * a.seeds.abs().max():
        return "equal"
    low, high = (-high, -low) if metric(a.rows["metric"].iloc[0]).sign < 0 else (low, high)
    return "ahead" if low > 0 else "behind" if high < 0 else "unclear"


def outcomes(a: Cells, b: Cells, over: str) -> dict[str, list[str]]:
    """Outcome -> values of the column `over`, of all values that a has: how a stands to b there."""
    by_outcome: dict[str, list[str]] = {word: [] for word in OUTCOMES}
    for value in dict.fromkeys(a.rows[over]):
        by_outcome[outcome(a(**{over: value}), b(**{over: value}))].append(value)
    return by_outcome


def told(a: Cells, b: Cells, digits: int = 1) -> str:
    """The outcome with the difference: "ahead: 9.4 (4.5 to 14.4)"."""
    word = outcome(a, b)
    return f"{word}: {lead(a, b, digits)}" if word in ("ahead", "unclear", "behind") else word


def share(a: Cells, b: Cells, digits: int = 2) -> str:
    """The ratio of a to b, the geometric mean over seeds with its 95 % interval: "0.68 (0.60 to 0.77)". Single numbers,
    such as printed ones, and bounds have no interval: "> 4.42" or "< 0.5" where one is a bound; "–" where both are."""
    if a.censored and b.censored:
        return "–"
    if a.censored or b.censored or len(a.seeds.index.intersection(b.seeds.index)) < 2:
        bound = "> " if a.censored else "< " if b.censored else ""
        return f"{bound}{a.seeds.mean() / b.seeds.mean():.{digits}f}"
    a, b = _shared(a, b)
    logs = [math.log(ratio) for ratio in a.seeds / b.seeds]
    low, high = map(math.exp, t_interval(logs))
    return f"{math.exp(math.fsum(logs) / len(logs)):.{digits}f} ({_ends((low, high), digits)})"


def panel(scale: str, paper: str, name: str) -> Any:
    """A declared panel, for the settings in the text."""
    for artifact in artifacts():
        for declared in artifact.panels(scale) if artifact.paper == paper else ():
            if declared.name == name:
                return declared
    raise UserError(f"{paper} has no panel '{name}' at scale {scale}")


def minutes(scale: str, paper: str = "", *names: str) -> str:
    """Processor time of the committed runs of a paper's jobs, of those whose names begin so; "": of all papers."""
    jobs = (job for job in plan.jobs(scale) if paper in ("", job.paper))
    return spent([job for job in jobs if job.name.startswith(names or "")])


def spent(jobs: Sequence[plan.Job]) -> str:
    """Processor time of the committed runs of jobs; results from before it was recorded count with their time on the
    clock."""
    runs = [run for job in jobs for run in results.standing(job).stored]
    trainings = {id(run.training): run.training for run in runs}.values()
    seconds = sum(float(note.get("cpu_seconds", note.get("seconds")) or 0) for note in trainings)
    return duration(seconds) if seconds else "not trained" if jobs else "no training"


def filled(text: str, functions: Mapping[str, Any]) -> str:
    """A text in Jinja with its numbers. UserError if it asks for what is not there."""
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    try:
        return environment.from_string(text).render(functions)
    except TemplateError as error:
        raise UserError(str(error)) from None


def _read(file: Path) -> Cells:
    if not file.is_file():
        raise UserError(f"{file} is not there: run in the repository, or render the artifact first")
    return _valued(_table(file), str(file))


def _table(file: Path | io.StringIO) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def _valued(rows: pd.DataFrame, name: str) -> Cells:
    """Rows of text with their values as numbers."""
    return Cells(rows.assign(value=pd.to_numeric(rows["value"], errors="coerce")), name)


FUNCTIONS = (cells, printed, played, lead, share, panel, minutes, outcomes, told)
"""The functions of templates."""
