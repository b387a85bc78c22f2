"""Scores: one number per seed from the histories of a job; from these means, intervals and ranks, and how they are
printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reproduce.declare.paper import metric
from reproduce.play.benchmarks import Benchmark
from reproduce.report import histories
from reproduce.report.metrics import t_interval
from reproduce.runs.plan import Job

BY_CLIENT = ("worst_client", "client_spread")
"""Beside them where clients are told apart: the accuracy of the worst one, the standard deviation over clients."""


TO_TARGET = ("to_target", "bytes_to_target")
"""Beside them with a target: the round, or the virtual second, of the first evaluation that reaches it, and the bytes
that all clients were sent and sent until then."""


def beside(benchmark: Benchmark) -> tuple[str, ...]:
    """The columns beside the score."""
    return BY_CLIENT * benchmark.by_client + TO_TARGET * (benchmark.target is not None)


def evaluations(job: Job, benchmark: Benchmark, metric: str = "") -> pd.DataFrame:
    """Returns one metric of a job as rows: lr, seed, round, time (virtual seconds, NaN with rounds), value, status.
    metric: "" is the benchmark's own. "per_client" and "per_client_tuned" add a column `client`. Otherwise several
    model sizes are averaged."""
    seeds = {job.panel.name: job.panel.seeds}
    frame = histories.load(
        [histories.Source(job.panel.name, Path(job.output))], job.scale, (), job.experiments, seeds
    ).frame
    rows = frame[frame["metric"] == (metric or benchmark.metric[0])]
    if metric.startswith("per_client"):
        rows = rows.assign(client=rows["key"].astype(int))
    by = ["lr", "seed", "round", *({"client"} & {*rows.columns})]
    means = rows.groupby(by, sort=True).agg(
        time=("time", "first"), value=("value", lambda v: v.mean(skipna=False)), status=("status", "first")
    )
    return means.reset_index()


def of(job: Job, benchmark: Benchmark) -> pd.DataFrame:
    """The scores of runs as rows: lr, seed, value, status. A value is the mean of a run's last evaluations; NaN for a
    run that diverged. With what is `beside` it: numbers by client likewise, NaN for a target that was missed."""
    table = _last(evaluations(job, benchmark), benchmark)
    for name in BY_CLIENT * benchmark.by_client:
        table[name] = _last(evaluations(job, benchmark, name), benchmark)["value"]
    return table if benchmark.target is None else table.join(_to_target(job, benchmark), on=["lr", "seed"])


def _to_target(job: Job, benchmark: Benchmark) -> pd.DataFrame:
    """`TO_TARGET` of the runs (lr, seed) that reach it."""
    rows, (name, _) = evaluations(job, benchmark), benchmark.metric
    rows["to_target"] = rows["time"].fillna(rows["round"])
    rows["bytes_to_target"] = sum(evaluations(job, benchmark, f"bytes_{way}")["value"] for way in ("down", "up"))
    sign = metric(name).sign
    reached = rows[sign * rows["value"] >= sign * benchmark.target]  # type: ignore[operator]
    return reached.groupby(["lr", "seed"])[[*TO_TARGET]].first()


def _last(rows: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    means = []
    for (lr, seed), run in rows.groupby(["lr", "seed"]):
        status = str(run["status"].iloc[0])
        tail = run["value"].tail(benchmark.window(len(run)))
        means.append((lr, seed, float(tail.mean()) if status == "ok" else math.nan, status))
    return pd.DataFrame(means, columns=["lr", "seed", "value", "status"])


AT_EDGE = "; the best rate is at the edge of its grid"
"""Behind the state of an algorithm."""


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per benchmark and algorithm of what `play` returns.

    lr, metric, seeds; mean with its 95 % t-interval low, high; difference to the reference, paired by seed, with
    difference_low, difference_high; rank (1: the best mean); status; chosen_on, what chose the rate; means of what is
    `beside` the score, if there is anything. Numbers are NaN where a seed has none, intervals also with one seed. An
    interval ends where the means that are possible end (`Metric.range`): as nothing lies beyond, it covers the true
    mean as often as the t-interval.
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
    table = pd.DataFrame(rows, columns=[*columns, "difference_low", "difference_high", "status", "chosen_on"])
    signed = -table["mean"] * [metric(name).sign for name in table["metric"]]
    table.insert(11, "rank", signed.groupby(table["benchmark"]).rank(method="min"))
    groups = frame.groupby(["benchmark", "algorithm"], sort=False)
    return table.assign(
        **{n: groups[n].agg(lambda v: v.mean(skipna=False)).tolist() for n in BY_CLIENT + TO_TARGET if n in frame}
    )


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
