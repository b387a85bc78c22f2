"""Scores: one number per seed from the histories of a job; from these means, intervals and ranks, and how they are
printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from reproduce.declare.paper import metric
from reproduce.report import histories
from reproduce.report.metrics import t_interval

if TYPE_CHECKING:
    from reproduce.play.benchmarks import Benchmark
    from reproduce.runs.plan import Job


BY_CLIENT = ("worst_client", "client_spread")
"""Beside them where clients are told apart: the accuracy of the worst one, the standard deviation over clients."""


def curves(job: Job, benchmark: Benchmark, metric: str = "") -> pd.DataFrame:
    """Every evaluation as a row: lr, seed, round, time, value, status; where models of several sizes are evaluated,
    their mean. metric: another one than the benchmark's."""
    seeds = {job.panel.name: job.panel.seeds}
    frame = histories.load(
        [histories.Source(job.panel.name, Path(job.output))], job.scale, (), job.experiments, seeds
    ).frame
    rows = frame[frame["metric"] == (metric or benchmark.metric[0])]
    means = rows.groupby(["lr", "seed", "round"], sort=True).agg(
        time=("time", "first"), value=("value", lambda v: v.mean(skipna=False)), status=("status", "first")
    )
    return means.reset_index()


def of(job: Job, benchmark: Benchmark) -> pd.DataFrame:
    """The scores of runs as rows: lr, seed, value, status. A value is the mean of a run's last evaluations; NaN for a
    run that diverged. With `BY_CLIENT`, if clients are told apart, likewise."""
    found = _last(curves(job, benchmark), benchmark)
    for name in BY_CLIENT * benchmark.by_client:
        found[name] = _last(curves(job, benchmark, name), benchmark)["value"]
    return found


def _last(curves: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    found = []
    for (lr, seed), run in curves.groupby(["lr", "seed"]):
        status = str(run["status"].iloc[0])
        tail = run["value"].tail(benchmark.window(len(run)))
        found.append((lr, seed, float(tail.mean()) if status == "ok" else math.nan, status))
    return pd.DataFrame(found, columns=["lr", "seed", "value", "status"])


AT_EDGE = "; the best rate is at the edge of its grid"
"""Behind the state of an algorithm."""


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per benchmark and algorithm of what `play` returns.

    lr, metric, seeds; mean with its 95 % t-interval low, high; difference to the reference, paired by seed, with
    difference_low, difference_high; rank (1: the best mean); status; chosen_on, what chose the rate; means of
    `BY_CLIENT`, if there are any. Numbers are NaN where a seed has none, intervals also with one seed. An interval ends
    where the means that are possible end (`Metric.range`): as nothing lies beyond, it covers the true mean as often as
    the t-interval.
    """
    rows = []
    for (benchmark, algorithm), runs in frame.groupby(["benchmark", "algorithm"], sort=False):
        status = "; ".join(_counted(runs["status"]))
        edge = AT_EDGE if runs["edge"].any() else ""
        one, size = runs.iloc[0], float(runs["value"].abs().max())
        least, most = metric(one["metric"]).range
        mean, low, high = _interval(runs["value"].tolist(), size, least, most)
        difference, less, more = _interval(runs["difference"].tolist(), size, least - most, most - least)
        rows.append((benchmark, algorithm, one["lr"], one["metric"], len(runs), mean, low, high, difference, less, more,
                     status + edge, one["chosen_on"]))  # fmt: skip
    columns = ["benchmark", "algorithm", "lr", "metric", "seeds", "mean", "low", "high", "difference"]
    found = pd.DataFrame(rows, columns=[*columns, "difference_low", "difference_high", "status", "chosen_on"])
    signed = -found["mean"] * [metric(name).sign for name in found["metric"]]
    found.insert(11, "rank", signed.groupby(found["benchmark"]).rank(method="min"))
    groups = frame.groupby(["benchmark", "algorithm"], sort=False)
    return found.assign(**{n: groups[n].agg(lambda v: v.mean(skipna=False)).tolist() for n in BY_CLIENT if n in frame})


def _counted(statuses: pd.Series[str]) -> list[str]:
    """The states of the seeds of one algorithm: "ok", "diverged (2 of 5)"."""
    counts = statuses.value_counts(sort=False)
    if len(counts) == 1 and str(counts.index[0]) != "diverged":
        return [str(counts.index[0])]
    return [f"{state} ({count} of {len(statuses)})" for state, count in counts.items() if state != "ok"]


def _interval(values: Sequence[float], size: float, least: float, most: float) -> tuple[float, float, float]:
    """Mean and t-interval within [least, most], which there is none of if the seeds agree but for rounding of numbers
    of this size."""
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan, math.nan
    mean = math.fsum(values) / len(values)
    if max(values) - min(values) <= 1e-12 * size:
        return mean, math.nan, math.nan
    low, high = t_interval(values)
    return mean, max(low, least), min(high, most)


def number(value: float) -> str:
    """Two decimals, three digits of what is small; a true minus sign; "" for none."""
    if math.isnan(value):
        return ""
    value = round(value, 9) + 0.0  # sums in another order differ in their last bits
    text = f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"
    return text.replace("-", "−")


def span(low: float, high: float) -> str:
    """An interval, "" without one."""
    return "" if math.isnan(low) else f"{number(low)} to {number(high)}"
