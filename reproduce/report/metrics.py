"""From curves to numbers: the reductions that artifacts share.

Every function takes tidy history rows (`Histories.frame`, possibly filtered or with further label columns assigned) and
returns one row per run: label columns, `seed`, `metric`, `value` (and `censored` where a target may be missed), which
is what `Artifact.cells` returns after dropping or renaming labels.

    metric   the metric to read;  name  the metric to write into the result (default: the same)
    key      the sub-key to read ("" = the run's main number); None = all of them, kept as the column `key`

A diverged run has the numbers from before: its status is that of the whole run, so what tells is whether a value is
finite and how far the run got. Later its value is NaN, or, where the question is when a target was reached, the horizon
as a lower bound unless it had reached the target before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.clocks.events import on_grid
from reproduce.declare.experiment import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def label_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of `frame` that tell experiments apart."""
    return [c for c in frame.columns if c not in COLUMNS]


def last(
    frame: pd.DataFrame, metric: str, n: int = 1, *, key: str | None = "", name: str | None = None
) -> pd.DataFrame:
    """Mean over the last `n` evaluations of each run (over all of them if there are fewer)."""
    rows, by = _rows(frame, metric, key)
    tail = rows.groupby(by, dropna=False, sort=False).tail(n)
    cells = _cells(_mean(tail, by), rows, by, name or metric)
    return cells.assign(value=cells["value"].mask(diverged(cells, frame)))


def at_round(
    frame: pd.DataFrame, metric: str, at: int, *, key: str | None = "", name: str | None = None
) -> pd.DataFrame:
    """The value of round `at`; NaN for a run that has no good value there.

    ValueError if no run was evaluated then, unless all had diverged.
    """
    rows, by = _rows(frame, metric, key)
    hit = rows[rows["round"] == at]
    if hit.empty and len(_whole(rows)):
        raise ValueError(f"'{metric}' was not evaluated in round {at}; rounds: {_some(rows['round'])}")
    return _cells(_mean(hit, by), rows, by, name or metric)


def plateau(
    frame: pd.DataFrame, metric: str, first: int, final: int, *, key: str | None = "", name: str | None = None
) -> pd.DataFrame:
    """Mean over the evaluations of rounds `first` to `final`, both included; NaN for a run that diverged by then.

    ValueError if no run was evaluated in that window, unless all had diverged.
    """
    rows, by = _rows(frame, metric, key)
    window = rows[rows["round"].between(first, final)]
    if window.empty and len(_whole(rows)):
        raise ValueError(f"'{metric}' was not evaluated in rounds {first} to {final}; rounds: {_some(rows['round'])}")
    cells = _cells(_mean(window, by), rows, by, name or metric)
    # The last evaluation may lie before `final`. Runs that diverged do not tell: theirs is where they ended.
    whole = _whole(window)["round"]
    early = diverged(cells, frame, whole.max() if len(whole) else final)
    return cells.assign(value=cells["value"].mask(early))


def first_reaching(
    frame: pd.DataFrame,
    metric: str,
    target: float | str,
    *,
    direction: str = "above",
    horizon: float | None = None,
    x: str = "round",
    own: bool = False,
    key: str | None = "",
    name: str | None = None,
) -> pd.DataFrame:
    """The first `x` (round or time) at which the raw curve is at or beyond the target.

    target: a number, or the label column that holds each run's target.
    direction: "above" (value >= target) or "below" (value <= target).
    horizon: how far runs were followed, in units of `x`; default: the largest `x` among the runs with equal labels, or
    (`own`) of each run by itself, where seeds have different lengths.
    A run that did not reach the target by the horizon gets the horizon as value and `censored` = True.
    """
    rows, by = _rows(frame, metric, key)
    reached = rows[_good(rows) & _beyond(rows, target, direction)]
    value = reached.groupby(by, dropna=False, sort=False)[x].min()
    cells = _cells(value, rows, by, name or f"{x}_to_target")
    labels = by if own else [c for c in by if c != "seed"]
    if horizon is not None or not labels:
        end = np.full(len(cells), float(rows[x].max() if horizon is None else horizon))
    else:
        limit = rows.groupby(labels, dropna=False, sort=False)[x].max().rename("end").reset_index()
        end = cells[labels].merge(limit, how="left", on=labels)["end"].to_numpy(float)
    value_of = cells["value"].to_numpy(float)
    late = ~(value_of <= end)
    return cells.assign(value=np.where(late, end, value_of), censored=late)


def time_to_reach(
    frame: pd.DataFrame,
    metric: str,
    target: float | str,
    *,
    direction: str = "above",
    horizon: float | None = None,
    key: str | None = "",
    name: str | None = None,
) -> pd.DataFrame:
    """As `first_reaching`, in virtual seconds; `horizon` in seconds."""
    return first_reaching(frame, metric, target, direction=direction, horizon=horizon, x="time", key=key, name=name)


def diverged(cells: pd.DataFrame, frame: pd.DataFrame, before: float = math.inf) -> NDArray[np.bool_]:
    """Which of the cells are of runs of `frame` that diverged, and have no row from round `before` on."""
    run = [*label_columns(frame), "seed"]
    end = frame[frame["status"] == "diverged"].groupby(run, dropna=False, sort=False)["round"].max()
    ended = end[end < before].rename("_end").reset_index()
    return cells[run].merge(ended, on=run, how="left")["_end"].notna().to_numpy()


def smooth(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    """`frame` with every curve replaced by its trailing mean over `n` evaluations (fewer at its start).

    A curve is labels, seed, metric and key; the values of a diverged tail stay NaN.
    """
    by = [*label_columns(frame), "seed", "metric", "key"]
    rows = frame.sort_values("round", kind="stable")
    clean = rows["value"].where(_good(rows))
    means = clean.groupby([rows[c] for c in by], dropna=False, sort=False).transform(
        lambda curve: curve.rolling(n, min_periods=1).mean()
    )
    return frame.assign(value=means.where(clean.notna()).reindex(frame.index))


def carried(frame: pd.DataFrame, grid: float, end: float) -> pd.DataFrame:
    """Every curve at the times 0, grid, 2 grid, ... up to `end`: the last row at or before, with that time.

    A curve is as in `smooth`; one that diverged ends with its last row.
    """
    import pandas as pd

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
    told = [c for c in labels if c in cells]
    by = [c for c in cells.columns if c not in ("seed", "value", "censored", "text", *told)]
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
        **{c: (c, "first") for c in [*told, *(["text"] if "text" in cells else [])]},
    )
    return out.reset_index()


def _rows(frame: pd.DataFrame, metric: str, key: str | None) -> tuple[pd.DataFrame, list[str]]:
    """The rows of one metric in the order of rounds, and the columns that name a run."""
    rows = frame[frame["metric"] == metric]
    if len(frame) and rows.empty:
        raise ValueError(f"no metric '{metric}' in the histories; there are: {_some(frame['metric'])}")
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


def _beyond(rows: pd.DataFrame, target: float | str, direction: str) -> pd.Series[bool]:
    if direction not in ("above", "below"):
        raise ValueError(f"direction '{direction}': use 'above' or 'below'")
    goal: Any = rows[target].astype(float) if isinstance(target, str) else target
    # 1164 of 2000 are 58.2 % and, in floating point, a little less.
    slack = 1e-9 * abs(goal)
    return rows["value"] >= goal - slack if direction == "above" else rows["value"] <= goal + slack


def _some(column: pd.Series) -> str:
    values = sorted(column.unique())
    return ", ".join(map(str, values if len(values) <= 12 else [*values[:6], "...", *values[-3:]]))
