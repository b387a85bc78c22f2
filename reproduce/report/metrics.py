"""The cells that the measures of `declare` mean, from histories, and the reductions of curves to numbers.

A reduction takes tidy history rows (`Histories.frame`, possibly filtered or with further label columns assigned) and
returns one row per run: label columns, `seed`, `metric`, `value` (and `censored` where a target may be missed).

    metric   the metric to read;  name  the metric to write into the result (default: the same)
    key      the sub-key to read ("" = the run's main number); None = all of them, kept as the column `key`

A diverged run has the numbers from before: its status is that of the whole run, so what tells is whether a value is
finite and how far the run got. Later its value is NaN, or, where the question is when a target was reached, the horizon
as a lower bound unless it had reached the target before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from reproduce.clocks.events import on_grid
from reproduce.declare.artifact import Artifact, Last, Measure, Window
from reproduce.declare.experiment import Experiment
from reproduce.report.histories import Histories, label_columns


@dataclass(frozen=True)
class Reading:
    """Another way to read the same curves, in place of what the artifacts declare; 0 and False: as declared.

    tail: the evaluations of an accuracy that `last` averages; best: the best of all instead. hit: a target is reached
    by the trailing mean of so many evaluations (1: the raw curve). pooled: it is reached by the mean curve over seeds,
    the row of seed -1. later: transitions come so many sessions
    later.
    """

    tail: int = 0
    best: bool = False
    hit: int = 0
    pooled: bool = False
    later: int = 0


DECLARED = Reading()
_READING: ContextVar[Reading] = ContextVar("reading", default=DECLARED)


@contextmanager
def read_as(reading: Reading) -> Iterator[None]:
    """Context in which the reductions below read curves as `reading` says."""
    token = _READING.set(reading)
    try:
        yield
    finally:
        _READING.reset(token)


def cells(artifact: Artifact, histories: Histories) -> pd.DataFrame:
    """The cells of all measures of an artifact, one below the other."""
    parts = [measured(m, histories) for m in ((artifact.cells,) if callable(artifact.cells) else artifact.cells)]
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    return frame.drop(columns=list(artifact.drop), errors="ignore")


def measured(m: Measure, histories: Histories) -> pd.DataFrame:
    """The cells of one measure."""
    if callable(m):
        values: pd.DataFrame = m(histories)
        return values
    if isinstance(m, Window):
        return _windows(m, histories)
    frame, name = histories.frame, m.name
    if isinstance(m, Last):
        parts = [last(rows, m.metric, int(n), name=name) for n, rows in _each(histories, frame, m.over)]
    else:
        key, frame = None if m.by_key else "", frame[frame["metric"] == m.metric]
        cut = _each(histories, frame, m.horizon or None)
        parts = [first_reaching(rows, m.metric, m.target, horizon=n, key=key, name=name) for n, rows in cut]
    return pd.concat(parts, ignore_index=True)


def _windows(m: Window, histories: Histories) -> pd.DataFrame:
    """The means over a window of each of its sessions."""
    frame = histories.frame
    used, _ = _rows(frame, m.metric, "")
    frame = frame[frame.index.isin(used.index) | (frame["status"] == "diverged")]  # once, not for every transition
    length = histories.of("clock.rounds")
    origin = histories.of(m.origin) if m.origin else length * 0
    parts = []
    for lengths, rows in frame.groupby([length, origin], sort=False):
        rounds, first = (int(str(n)) for n in lengths)
        for transition, session in m.sessions.items():
            if m.last <= rounds:
                start = (first + session + _READING.get().later) * rounds
                part = plateau(rows, m.metric, start + m.first, start + m.last, name=m.name)
                parts.append(part.assign(transition=transition))
    nothing = pd.DataFrame({c: [] for c in [*label_columns(frame), "seed", "metric", "value", "transition"]})
    return pd.concat(parts, ignore_index=True) if parts else nothing


def rounds_of(m: Window, e: Experiment, transition: str) -> tuple[float, float]:
    """The first and the last round of the window of a transition in a run of sessions."""
    origin = attrgetter(m.origin)(e) if m.origin else 0
    begin = (origin + m.sessions[transition]) * e.clock.rounds
    return float(begin + m.first), float(begin + m.last)


def _each(histories: Histories, frame: pd.DataFrame, number: Any) -> list[tuple[Any, pd.DataFrame]]:
    """The frame, cut by the label column, or by the attribute of the experiments, that holds the number, or whole with
    the number itself."""
    if not isinstance(number, str):
        return [(number, frame)]
    held = histories.of(number)[frame.index] if "." in number else frame[number]
    return [(value, rows) for value, rows in frame.groupby(held, sort=False)]


def last(frame: pd.DataFrame, metric: str, n: int = 1, *, key: str | None = "", name: str = "") -> pd.DataFrame:
    """Mean over the last `n` evaluations of each run (over all of them if there are fewer)."""
    rows, by = _rows(frame, metric, key)
    runs, reading = rows.groupby(by, dropna=False, sort=False), _READING.get()
    if "accuracy" in metric and reading.best:
        value = runs["value"].max()
    else:
        value = _mean(runs.tail(reading.tail if "accuracy" in metric and reading.tail else n), by)
    cells = _cells(value, rows, by, name or metric)
    return cells.assign(value=cells["value"].mask(diverged(cells, frame)))


def plateau(frame: pd.DataFrame, metric: str, first: int, final: int, *, name: str = "") -> pd.DataFrame:
    """Mean over the evaluations of rounds `first` to `final`, both included; NaN for a run that diverged by then.

    ValueError if no run was evaluated in that window, unless all had diverged.
    """
    rows, by = _rows(frame, metric, "")
    window = rows[rows["round"].between(first, final)]
    if window.empty and len(_whole(rows)):
        raise ValueError(f"'{metric}' was not evaluated in rounds {first} to {final}")
    cells = _cells(_mean(window, by), rows, by, name or metric)
    # The last evaluation may lie before `final`. Runs that diverged do not tell: theirs is where they ended.
    rounds = _whole(window)["round"]
    early = diverged(cells, frame, rounds.max() if len(rounds) else final)
    return cells.assign(value=cells["value"].mask(early))


def first_reaching(
    frame: pd.DataFrame,
    metric: str,
    target: float | str,
    *,
    horizon: float | None = None,
    x: str = "round",
    per_run: bool = False,
    key: str | None = "",
    name: str = "",
) -> pd.DataFrame:
    """The first `x` (round or time) at which the raw curve is at or above the target.

    target: a number, or the label column that holds each run's target.
    horizon: how far runs were followed, in units of `x`; default: the largest `x` among the runs with equal labels, or
    (`per_run`) of each run by itself, where seeds have different lengths.
    A run that did not reach the target by the horizon gets the horizon as value and `censored` = True.
    """
    if (hit := _READING.get().hit) > 1:
        frame = _trailing(frame, hit)
    if _READING.get().pooled:
        mean = frame.groupby([c for c in frame if c not in ("seed", "value")], dropna=False, sort=False)["value"].mean()
        frame = mean.reset_index().assign(seed=-1)
    rows, by = _rows(frame, metric, key)
    goal: Any = rows[target].astype(float) if isinstance(target, str) else target
    # 1164 of 2000 are 58.2 % and, in floating point, a little less.
    reached = rows[_good(rows) & (rows["value"] >= goal - 1e-9 * abs(goal))]
    value = reached.groupby(by, dropna=False, sort=False)[x].min()
    cells = _cells(value, rows, by, name or f"{x}_to_target")
    labels = by if per_run else [c for c in by if c != "seed"]
    if horizon is not None or not labels:
        end = np.full(len(cells), float(rows[x].max() if horizon is None else horizon))
    else:
        limit = rows.groupby(labels, dropna=False, sort=False)[x].max().rename("end").reset_index()
        end = cells[labels].merge(limit, how="left", on=labels)["end"].to_numpy(float)
    missed = ~(cells["value"].to_numpy(float) <= end)
    return cells.assign(value=np.where(missed, end, cells["value"]), censored=missed)


def diverged(cells: pd.DataFrame, frame: pd.DataFrame, before: float = math.inf) -> NDArray[np.bool_]:
    """Marks the cells of runs of `frame` that diverged, and have no row from round `before` on."""
    run, lost = [*label_columns(frame), "seed"], frame[frame["status"] == "diverged"]
    if lost.empty:
        return np.zeros(len(cells), dtype=np.bool_)
    end = lost.groupby(run, dropna=False, sort=False)["round"].max()
    ended = end[end < before].rename("_end").reset_index()
    return cells[run].merge(ended, on=run, how="left")["_end"].notna().to_numpy()


def smooth(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    """`frame` with every curve replaced by its trailing mean over `n` evaluations (fewer at its start).

    A curve is labels, seed, metric and key; the values of a diverged tail stay NaN.
    """
    return frame if _READING.get().hit else _trailing(frame, n)


def _trailing(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    by = [*label_columns(frame), "seed", "metric", "key"]
    rows = frame.sort_values("round", kind="stable")
    clean = rows["value"].where(_good(rows))
    curves = clean.groupby([rows[c] for c in by], dropna=False, sort=False)
    means = curves.transform(lambda curve: curve.rolling(n, min_periods=1).mean())
    return frame.assign(value=means.where(clean.notna()).reindex(frame.index))


def carried(frame: pd.DataFrame, grid: float, end: float) -> pd.DataFrame:
    """Every curve at the times 0, grid, 2 grid, ... up to `end`: the last row at or before, with that time.

    A curve is as in `smooth`; one that diverged ends with its last row.
    """
    by = [*label_columns(frame), "seed", "metric", "key"]
    times = np.arange(math.floor(end / grid + 1e-9) + 1, dtype=np.float64) * float(grid)
    parts = []
    for _, curve in frame.groupby(by, dropna=False, sort=False):
        rows = curve.sort_values("round", kind="stable")
        at = on_grid(rows["time"].to_numpy(float), times, grid)
        known = at >= 0 if (rows["status"] == "ok").all() else (at >= 0) & (times <= rows["time"].max() + 1e-9 * grid)
        parts.append(rows.iloc[at[known]].assign(time=times[known]))
    return pd.concat(parts, ignore_index=True) if parts else frame


def over_seeds(cells: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
    """Cells without their seeds: `value` -> `mean`, `std` (ddof 1; NaN for one seed), `seeds`, `runs`, `censored`.

    seeds counts those with a finite value, runs all of them; `censored` is True if any of the seeds is a lower bound;
    `point` is True for a number known without a seed (seed -1). `labels` describe a cell without telling cells apart:
    the first seed's is kept.
    """
    described = [c for c in labels if c in cells]
    by = [c for c in cells.columns if c not in ("seed", "value", "censored", "text", *described)]
    frame = cells.assign(
        value=cells["value"].astype(float).replace([np.inf, -np.inf], np.nan),
        censored=cells["censored"].eq(True) if "censored" in cells else False,
    )
    groups = frame.groupby(by, dropna=False, sort=False)
    out = groups.agg(
        mean=("value", "mean"),
        std=("value", "std"),
        seeds=("value", "count"),
        runs=("seed", "nunique"),
        censored=("censored", "any"),
        point=("seed", lambda seeds: bool((seeds < 0).all())),
        **{c: (c, "first") for c in [*described, *(["text"] if "text" in cells else [])]},
    )
    return out.reset_index()


def _rows(frame: pd.DataFrame, metric: str, key: str | None) -> tuple[pd.DataFrame, list[str]]:
    """The rows of one metric in the order of rounds, and the columns that name a run."""
    rows = frame[frame["metric"] == metric]
    if len(frame) and rows.empty:
        raise ValueError(f"no metric '{metric}' in the histories; there are: {', '.join(sorted(set(frame['metric'])))}")
    if key is not None:
        rows = rows[rows["key"] == key]
    by = [*label_columns(frame), *(["key"] if key is None else []), "seed"]
    return rows.sort_values("round", kind="stable"), by


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs that went on to their end."""
    return rows[rows["status"] != "diverged"]


def _good(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["value"].astype(float).abs() < np.inf


def _mean(rows: pd.DataFrame, by: list[str]) -> pd.Series[float]:
    """Mean per run; NaN as soon as one of the values is bad."""
    values = rows["value"].astype(float).where(_good(rows))
    groups = values.groupby([rows[c] for c in by], dropna=False, sort=False)
    return groups.mean().where(groups.count() == groups.size())


def _cells(value: pd.Series[float], rows: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    """One row per run in the order of the histories."""
    runs = rows.sort_index()[by].drop_duplicates()
    cells = runs.merge(value.rename("value").reset_index(), on=by, how="left")
    return cells.assign(metric=name)[[*by, "metric", "value"]].reset_index(drop=True)


def t_interval(values: Sequence[float], level: float = 0.95, step: float = 0.0) -> tuple[float, float]:
    """The t-interval of the mean of at least two finite values.

    step: what the values are multiples of. Values that agree are given the least spread that such values can show,
    one of them being one step off, because agreement says that the grid is coarse and not that there is no spread.
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two values")
    # mean +- t(n - 1) s / sqrt(n), s^2 = sum (v - mean)^2 / (n - 1)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    spread = step / math.sqrt(n) if agree(values) else spread
    half = quantile(level, n - 1) * spread / math.sqrt(n)
    return mean - half, mean + half


def agree(values: Sequence[float]) -> bool:
    """Tells whether the seeds agree up to rounding; then the size of their spread is unknown, not zero."""
    return max(values) - min(values) <= 1e-12 * max(map(abs, values))


@cache
def quantile(level: float, freedom: int) -> float:
    return float(student.ppf(0.5 + level / 2, freedom))
