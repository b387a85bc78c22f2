"""The special numbers of DeFedAvg. Targets and horizons are those that the runs were declared with."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from reproduce.papers.defedavg import runs, settings
from reproduce.papers.defedavg.artifacts import REACHED
from reproduce.partitions.heldout import JUDGE
from reproduce.report import metrics
from reproduce.report.histories import Histories, label_columns

COLUMNS, RATES = ["distribution", "dataset", "n"], ["global_lr", "local_lr"]
POINT = [*RATES, JUDGE]
"""The labels that only points of the grid have."""


def to_target(histories: Histories) -> pd.DataFrame:
    """`time_to_target_s` and `rounds_to_target` of all runs on the grid of virtual times."""
    parts = []
    for smooth, horizon, target in _aims(histories):
        parts.append(
            metrics.first_reaching(smooth, "accuracy", target, horizon=horizon, x="time", name="time_to_target_s")
        )
        cells = metrics.first_reaching(smooth, "accuracy", target, per_run=True, name="rounds_to_target")
        # One that diverged is never there: its own last aggregation as a bound would make the worst run the fastest.
        never = cells["censored"] & metrics.diverged(cells, smooth)
        bounds = [_whole_run(histories, run) for run in cells[never].to_dict("records")]
        parts.append(cells.assign(value=cells["value"].mask(never, pd.Series(bounds, cells.index[never], dtype=float))))
    return pd.concat(parts, ignore_index=True)


def _whole_run(histories: Histories, run: Mapping[Any, Any]) -> float:
    """The aggregations of a run that goes on to the horizon; rates, of a grid's points, do not change them."""
    e = histories.declared(**{c: run[c] for c in [*COLUMNS, "algorithm"]})
    clock: Any = e.clock
    schedule = clock.schedule(e.system, e.problem.clients)  # type: ignore[attr-defined]
    return float(sum(1 for _ in schedule.stream(int(run["seed"]), clock.aggregations, clock.horizon)))


def _aims(histories: Histories) -> Iterator[tuple[pd.DataFrame, float, float]]:
    """(smoothed accuracies, horizon, target) of the runs that have these in common."""
    frame = histories.frame
    settings = ("until.over", "horizon", "until.value", "grid")
    keys = [frame["dataset"], frame["distribution"], *(histories.of(f"clock.{x}") for x in settings)]
    for key, rows in frame.groupby(keys, sort=False):
        over, end, value, grid = (float(str(x)) for x in key[2:])
        accuracy = rows[rows["metric"] == "accuracy"]
        if over > 1:  # a mean over times: a version that lasts counts as long as it lasts
            accuracy = metrics.smooth(metrics.carried(accuracy, grid, end), int(over))
        yield accuracy, end, value


def at_target_times(histories: Histories) -> pd.DataFrame:
    """Accuracy and training loss of all runs when the DeFedAvg variant of their panel reaches its target (at the
    horizon if it does not), and the loss at half of that time. Of a run that ended at its own target before that, and
    so speaks against the variant, the number is not known: it is at least 0. One that diverged before has none."""
    cells = to_target(histories)
    times = _proposed_times(cells)
    half = times.assign(at=times["at"] / 2)
    frame = _followed(histories.frame, cells)
    parts = [
        _at_times(frame, "accuracy", times, "test_accuracy_pct_at_target_time"),
        _at_times(frame, "train_loss", times, "train_loss_at_target_time"),
        _at_times(frame, "train_loss", half, "train_loss_at_half_target_time"),
    ]
    return pd.concat(parts, ignore_index=True)


def _proposed_times(cells: pd.DataFrame) -> pd.DataFrame:
    """Per column and seed: the time at which the DeFedAvg variant reached its target, the horizon if it did not."""
    proposed = cells["algorithm"] == cells["distribution"].map(runs.PROPOSED)
    ours = cells[(cells["metric"] == "time_to_target_s") & proposed]
    return ours.rename(columns={"value": "at"})[[*COLUMNS, "seed", "at"]]


def _followed(frame: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """`frame` with the time `end` until which each run is known: for ever, if it went on to the horizon."""
    by = [*COLUMNS, "algorithm", "seed"]
    reached = cells[cells["metric"] == "time_to_target_s"]
    known = reached.assign(whole=reached["censored"] & ~metrics.diverged(reached, frame))[[*by, "whole"]]
    ends = frame.groupby(by, sort=False)["time"].max().rename("end").reset_index().merge(known, on=by)
    return frame.merge(ends.assign(end=ends["end"].mask(ends["whole"], np.inf))[[*by, "end"]], on=by)


def _at_times(frame: pd.DataFrame, metric: str, times: pd.DataFrame, name: str) -> pd.DataFrame:
    """The last value of `metric` at or before `times["at"]` of the same column and seed, one row per run; for one that
    was not followed until then NaN if it diverged, else censored at 0."""
    by = [*COLUMNS, "algorithm", "seed"]
    rows = frame[frame["metric"] == metric].merge(times, on=[*COLUMNS, "seed"])
    rows = rows[rows["time"] <= rows["at"] + 1e-9].sort_values("round", kind="stable")
    last = rows.groupby(by, sort=False).tail(1)
    over, lost = last["at"] > last["end"] + 1e-9, last["status"] == "diverged"
    value = last["value"].mask(over & lost).mask(over & ~lost, 0.0)
    return last.assign(metric=name, value=value, censored=over & ~lost)[[*by, "metric", "value", "censored"]]


def of_participants(histories: Histories, at: int, first: int, last: int) -> pd.DataFrame:
    """Accuracy after `at` aggregations, aggregations to the target, and how much the accuracy jumps between evaluations
    from aggregation `first` to `last` (as far as runs go); of shorter runs (smoke) the last half stands in."""
    frame = histories.frame.drop(columns="K")
    end = int(histories.of("clock.aggregations").max())
    at, first, last = (at, first, min(last, end)) if end >= at else (end, end // 2, end)
    accuracy = frame[frame["metric"] == "accuracy"].sort_values("round")
    inside = accuracy.assign(value=accuracy["value"].where(accuracy["round"].between(first, last)))
    curves = inside.groupby([*label_columns(frame), "seed"], sort=False)["value"]
    jumps = curves.agg(lambda curve: curve.diff().std()).reset_index()
    jumps["value"] = jumps["value"].mask(metrics.diverged(jumps, frame, last))
    parts = [
        metrics.plateau(frame, "accuracy", at, at, name="test_accuracy_pct_at_round_300"),
        metrics.measured(REACHED, histories).drop(columns="K"),
        jumps.assign(metric="std_of_test_accuracy_differences"),
    ]
    return pd.concat(parts, ignore_index=True).drop(columns="target_accuracy_pct")


def same_rates(histories: Histories) -> str:
    """The caption of Fig. 7: all K have the rates of the usual one."""
    setting = settings.SETTINGS[histories.scale][0]
    return f"All K with the rates of K = {setting.steps} (the paper gives none); n = {setting.middle}."


def idle(histories: Histories) -> pd.DataFrame:
    """Idle share and aggregations of every timeline of Fig. 1."""
    rows = []
    for name in settings.EXAMPLES:
        timeline = runs.example(name)
        rows += [(name, "idle_fraction", timeline.idle)]
        rows += [(name, "aggregations_in_horizon", float(len(timeline.aggregations)))]
    return pd.DataFrame(rows, columns=["algorithm", "metric", "value"]).assign(seed=-1)


def seconds(histories: Histories, aggregations: int) -> pd.DataFrame:
    """Parameters of the networks (a point), and mean seconds per aggregation of every algorithm and seed."""
    rows = [(s.dataset, "", "none", -1, "parameter_count", float(s.problem.model.parameters)) for s in settings.PAPER]
    for setting, name, n, schedule in runs.schedules():
        for seed in settings.SEEDS:
            (last,) = deque(schedule.stream(seed, aggregations), maxlen=1)
            value = float(last.time) / aggregations
            rows.append((setting.dataset, str(n), name, seed, "mean_seconds_per_aggregation", value))
    return pd.DataFrame(rows, columns=["dataset", "n", "algorithm", "seed", "metric", "value"])


def declared_rates(histories: Histories) -> pd.DataFrame:
    """The rates as they stand in the declared runs; AsySG has no local rate, FAVANO no global one."""
    rows, nobodys = [], {("favano", "global_lr"), ("asysg", "local_lr")}
    for e in runs.echo():
        name = str(e.labels["algorithm"])
        for metric, value in (("global_lr", e.algorithm.server_lr), ("local_lr", e.algorithm.lr)):
            if name in runs.GROUPS[str(e.labels["distribution"])] and (name, metric) not in nobodys:
                rows.append((*(e.labels[c] for c in COLUMNS), name, metric, value, str(float(value))))
    return pd.DataFrame(rows, columns=[*COLUMNS, "algorithm", "metric", "value", "text"]).assign(seed=-1)


def of_choices(histories: Histories) -> pd.DataFrame:
    """`time_to_target_s` and `rounds_to_target` of Table I's column, its variants, and the best rates of the grid."""
    cells = to_target(histories)
    tuned = cells["algorithm"].str.startswith("tuned_")
    parts = [cells[~tuned].drop(columns=POINT, errors="ignore")]
    for _, points in cells[tuned].groupby([*COLUMNS, "algorithm"], sort=False):
        if _whole(points, histories):
            parts.append(_best(points, histories.frame))
    return pd.concat(parts, ignore_index=True)


def _whole(points: pd.DataFrame, histories: Histories) -> bool:
    """Tells whether all points of the grid are there, both judged and reported. Points that Table I has as well come
    alone: they are no grid."""
    setting = points.iloc[0]
    declared = [e for e in histories.experiments if all(e.labels[c] == setting[c] for c in [*COLUMNS, "algorithm"])]
    return len(points.filter(POINT).drop_duplicates()) == len(declared)


def _best(points: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of one algorithm at the rates that are best on the held-out part: by the smallest mean time, a missed
    target counting as the horizon; ties: by accuracy."""
    judged = points[JUDGE].notna()
    times = points[judged & (points["metric"] == "time_to_target_s")].groupby(RATES, sort=False)["value"].mean()
    same = frame[frame[JUDGE].notna()].merge(points[[*COLUMNS, "algorithm"]].drop_duplicates())
    final = metrics.last(same, "accuracy").groupby(RATES, sort=False)["value"].mean()
    scores = pd.DataFrame({"time": times, "accuracy": -final.reindex(times.index).fillna(0.0)})
    best = dict(zip(RATES, scores.sort_values(["time", "accuracy"], kind="stable").index[0], strict=True))
    chosen = points[~judged & (points[RATES] == pd.Series(best)).all(axis=1)].drop(columns=POINT)
    labels = chosen.iloc[[0]].assign(seed=-1, censored=False)
    named = [labels.assign(metric=f"tuned_{k}", value=float(v)) for k, v in best.items() if v]
    return pd.concat([chosen, *named], ignore_index=True)
