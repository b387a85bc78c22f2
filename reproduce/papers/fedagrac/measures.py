"""Special measures of FedaGrac: from histories to cells."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.artifact import Last, Reach
from reproduce.declare.values import Floats
from reproduce.models.model import Model
from reproduce.modules.graph import Count
from reproduce.papers.fedagrac import theory
from reproduce.papers.fedagrac.artifacts import BEST, FIRST, OWN, RATES, TEN
from reproduce.papers.fedagrac.runs import FIG1
from reproduce.papers.fedagrac.theory import FAST, SLOW
from reproduce.problem import Classification
from reproduce.report import metrics
from reproduce.report.histories import Histories, label_columns

SETTING = ["dataset", "model", "partition", "k_mean", "k_variance", "k_mode"]


def server_path(histories: Histories, algorithm: str) -> Floats:
    """x_1, x_2, ... [rounds + 1, 2] of one algorithm of Fig. 1."""
    rows = histories.frame[(histories.frame["metric"] == "x") & (histories.frame["algorithm"] == algorithm)]
    path = rows.pivot_table(index="round", columns="key", values="value").sort_index()[["0", "1"]].to_numpy()
    start = histories.experiments[0].problem.start  # type: ignore[attr-defined]
    return np.concatenate([[start], path])


def paths(histories: Histories) -> pd.DataFrame:
    """Fig. 1: where each path ends, how far it strays from the straight line, and whose minimiser draws its end; and on
    random instances, numbered by the seed, whether FedaGrac's path is the straighter one (1) or not (0)."""
    problem = histories.experiments[0].problem
    best, minimisers = problem.optimum(), problem.minima()  # type: ignore[attr-defined]
    length = float(np.linalg.norm(best))  # the start is the origin
    across = np.array([-best[1], best[0]]) / length
    rows = []
    for name in dict.fromkeys(histories.frame["algorithm"]):
        path = server_path(histories, name)
        pulls = [np.linalg.norm(best - minimisers[i]) - np.linalg.norm(path[-1] - minimisers[i]) for i in (SLOW, FAST)]
        rows += [
            ("reference", name, -1, "relative_distance_to_optimum_final", np.linalg.norm(path[-1] - best) / length),
            ("reference", name, -1, "max_perpendicular_deviation", np.abs(path @ across).max() / length),
            ("reference", name, -1, "slow_minimiser_pull", pulls[0]),
            ("reference", name, -1, "fast_minimiser_pull", pulls[1]),
        ]
    instances = theory.random_quadratics()
    ours = theory.deviations(FIG1["fedagrac"], *instances)
    for name in theory.RIVALS:
        straighter = theory.deviations(FIG1[name], *instances) - ours > theory.TIE
        rows += [("random", name, i, "straighter_path", float(won)) for i, won in enumerate(straighter)]
    return pd.DataFrame(rows, columns=["instance", "algorithm", "seed", "metric", "value"])


def utilisation(histories: Histories) -> pd.DataFrame:
    """Table 2: the largest utilisation at which the target is reached in time, the rounds this takes, and the accuracy
    of the last round.

    Nothing is assumed about the utilisations below the first that is accepted. A run that diverges is not accepted,
    also where it was at the target before. None accepted: no utilisation and no accuracy, and the limit as a lower
    bound of the rounds.
    """
    by = ["dataset", "model", "slow_device", "fast_device", "algorithm", "seed"]
    reached = metrics.measured(Reach(horizon="max_rounds"), histories)
    accepted = ~reached["censored"] & ~metrics.diverged(reached, histories.frame)
    ends = metrics.measured(Last("accuracy"), histories)["value"]
    rows = []
    for key, tries in reached.assign(accepted=accepted, accuracy=ends).groupby(by, sort=False):
        missed = not tries["accepted"].any()
        nothing = {"utilization": np.nan, "value": tries["max_rounds"].iloc[0], "accuracy": np.nan}
        best = nothing if missed else tries[tries["accepted"]].nlargest(1, "utilization").iloc[0]
        rows += [
            (*key, "utilization_percent", float(best["utilization"]), False),
            (*key, "rounds_to_60", float(best["value"]), missed),
            (*key, "accuracy_after_100_rounds", float(best["accuracy"]), False),
        ]
    return pd.DataFrame(rows, columns=[*by, "metric", "value", "censored"])


def readings(histories: Histories) -> pd.DataFrame:
    """The cells of Tables 1 and 2 as declared and under each reading, with the printed model of logistic regression;
    without those that have no number because no utilisation was accepted."""
    frame, parts = histories.frame, []
    split = frame["split"].fillna(OWN) if "split" in frame else frame["seed"].mask(frame["seed"] > -1, OWN)
    for (name, search), rows in frame.groupby([split, frame["utilization"].notna()], sort=False):
        unused = [c for c in label_columns(rows) if c == "split" or rows[c].isna().all()]
        selected = replace(histories, frame=rows.drop(columns=unused).infer_objects())
        if not search:
            raced = _raced(selected)
            for model, rate in RATES.items():
                one = raced[raced["model"].isin([model, "cnn2"])].replace({"model": {model: "lr"}})
                parts.append(one.assign(table="table1", reading=f"LR at rate {rate}, {name}"))
            continue
        ways = {FIRST: metrics.Reading(), TEN: metrics.Reading(hit=10, tail=10), BEST: metrics.Reading(best=True)}
        for how, reading in ways.items():
            with metrics.read_as(reading):
                parts.append(utilisation(selected).assign(table="table2", reading=f"{how}, {name}"))
    return pd.concat(parts, ignore_index=True).dropna(subset="value")


def _raced(histories: Histories) -> pd.DataFrame:
    """Table 1, and when the network with equal steps on non-i.i.d. data has what Table 2 prints after 29 and after 100
    rounds of nearly equal ones."""
    frame = histories.frame
    even = frame[(frame["model"] == "cnn2") & (frame["step_async"] == 0) & (frame["non_iid"] == 1)]
    early = [metrics.first_reaching(even, "accuracy", p, name=f"rounds_to_{p}_percent") for p in (60, 72)]
    return pd.concat([metrics.measured(Reach(horizon="clock.rounds"), histories), *early])


def rounds(histories: Histories) -> pd.DataFrame:
    """Table 6: rounds to the target with the fixed hyper-parameters, and with the best of the grid where trained."""
    cells = metrics.measured(Reach(horizon="max_rounds"), histories)
    if "point" not in cells:
        return cells
    # A target that is reached before a run diverges is a number, but no reason to choose its point.
    lost = metrics.diverged(cells, histories.frame)
    grid = cells.assign(value=cells["value"].mask(lost))[cells["point"].notna()]
    chosen = best_points(grid, [*SETTING, "target_accuracy", "max_rounds", "algorithm"], lower=True)
    return pd.concat([cells[cells["point"].isna()].drop(columns="point"), chosen], ignore_index=True)


def best_points(cells: pd.DataFrame, by: list[str], lower: bool) -> pd.DataFrame:
    """The cells of the best point of every group, as `<metric>_tuned`, of cells with a column `point` (one metric).
    Rows without a seed give the point that was chosen: `tuned_learning_rate`, `tuned_lambda`, `tuned_mu`.

    The mean over seeds decides, ties go to the first in the order of the grid; a point that diverged is never chosen.
    """
    groups = cells.groupby([*by, "point"], sort=False)["value"]
    means = groups.mean().where(groups.count() == groups.size()).dropna().reset_index()
    places = means.groupby(by, sort=False)["value"]
    best = means.loc[places.idxmin() if lower else places.idxmax(), [*by, "point"]]
    chosen = cells.merge(best, on=[*by, "point"])
    chosen = chosen.assign(metric=chosen["metric"] + "_tuned").drop(columns="point")
    names = {"fedagrac": ("learning_rate", "lambda"), "fedprox": ("learning_rate", "mu")}
    rows = []
    for record in best.to_dict("records"):
        values = str(record.pop("point")).split("/")
        for name, value in zip(names.get(record["algorithm"], ("learning_rate",)), values, strict=True):
            rows.append({**record, "seed": -1, "metric": f"tuned_{name}", "value": float(value)})
    return pd.concat([chosen, pd.DataFrame(rows)], ignore_index=True)


def timed(histories: Histories) -> pd.DataFrame:
    """Fig. 5: the accuracies, with the simulated second of every evaluation in the column `time`, in `bare` without
    overheads, and the bytes of a round in `sent`; without the runs of the grid."""
    frame = histories.frame[histories.frame["metric"] == "accuracy"]
    if "point" in frame:
        frame = frame[frame["point"].isna()]
    parts = []
    for e in histories.experiments:
        if "point" in e.labels:
            continue
        mask = (frame[[*SETTING, "algorithm"]] == [e.labels[c] for c in (*SETTING, "algorithm")]).all(axis=1)
        for seed, run in frame[mask].groupby("seed"):
            at = run["round"].to_numpy(int)
            time, bare = (theory.seconds(e, int(str(seed)), overheads)[at] for overheads in (True, False))
            parts.append(run.assign(time=time, bare=bare, sent=theory.bytes_per_round(e)))
    return pd.concat(parts, ignore_index=True).drop(columns=["point", "target_accuracy", "max_rounds"], errors="ignore")


def comparison(histories: Histories) -> pd.DataFrame:
    """Fig. 5: final accuracy, rounds to the best accuracy that all reach, comparison with SCAFFOLD, simulated costs;
    and `last10_tuned` of the best point of the grid, where it was trained."""
    everything = timed(histories)
    frame = everything.drop(columns=["bare", "sent"])
    by = [*SETTING, "seed"]
    best = frame.groupby([*by, "algorithm"])["value"].max().groupby(by).min().rename("target").reset_index()
    reached = metrics.first_reaching(
        frame.merge(best, on=by), "accuracy", "target", name="rounds_to_best_common_accuracy"
    ).drop(columns="target")
    rival = frame[frame["algorithm"] == "scaffold"][[*by, "round", "value"]].rename(columns={"value": "rival"})
    paired = frame[frame["round"] >= min(10, frame["round"].max() // 2)].merge(rival, on=[*by, "round"])
    ahead = paired.assign(value=(paired["value"] >= paired["rival"]).astype(float))
    share = ahead.groupby([*by, "algorithm"])["value"].mean().reset_index()
    last = everything[everything["round"] == everything.groupby(by)["round"].transform("max")]
    costs = {"simulated_time_total_s": "time", "simulated_time_without_overheads_s": "bare", "bytes_per_round": "sent"}
    parts = [
        metrics.last(frame, "accuracy", 10, name="last10"),
        reached,
        share.assign(metric="fraction_of_rounds_not_below_scaffold"),
        *(last[[*by, "algorithm"]].assign(metric=name, value=last[column]) for name, column in costs.items()),
    ]
    if "point" in histories.frame:
        grid = metrics.last(histories.frame[histories.frame["point"].notna()], "accuracy", 10, name="last10")
        parts.append(best_points(grid, [*SETTING, "algorithm"], lower=False))
    return pd.concat(parts, ignore_index=True)


COLUMNS = ["layer", "output_shape", "activation", "hyperparameters"]
"""Of an architecture table (Tables 3 to 5), whose lines are those of the model that the experiments train."""
KINDS = {
    "conv": "Conv2d", "linear": "Dense", "pool": "MaxPool2d", "dropout": "Dropout", "channel_dropout": "Dropout2d",
    "flatten": "Flatten",
}  # fmt: skip


def layers(model: Model, sample: tuple[int, ...], pooling: str) -> pd.DataFrame:
    """A line per layer. An activation belongs to the last layer with parameters; pooling first computes the same."""
    steps = model.graph.steps
    shapes = model.graph.run(Count(dict(model.shapes)), {}, sample, range(1, len(steps) + 1))
    lines: list[list[Any]] = [["Input", sample, "", "", 0]]
    for step, out in zip(steps, shapes, strict=True):
        if step.op == "relu":
            next(line for line in reversed(lines) if line[4])[2] = "ReLU"
            continue
        options = dict(step.options)
        shown = {"pool": pooling, "dropout": f"p={options.get('p')}"}.get(step.op.removeprefix("channel_"), "")
        if step.op == "conv":
            numbers = {"kernel size": model.shapes[f"{step.layer}.weight"][2], **options}
            usual = {"kernel size": 0, "stride": 1, "padding": 0}
            shown = ", ".join(f"{k}={numbers[k]}" for k, default in usual.items() if numbers.get(k, default) != default)
        count = sum(math.prod(model.shapes.get(f"{step.layer}.{kind}", (0,))) for kind in ("weight", "bias"))
        lines.append([KINDS[step.op], out, "", shown, count])
    lines[-1][2] = "softmax"  # inside the loss
    frame = pd.DataFrame(lines, columns=[*COLUMNS, "value"])
    return frame.assign(output_shape=["x".join(map(str, line[1])) for line in lines])


def architecture(
    histories: Histories, *, problem: Classification, model: str, pooling: str, merge_equal: bool = False
) -> pd.DataFrame:
    """Returns the architecture table of the problem's model, one row per layer. `value` is the layer's count of
    trainable parameters, `seed` is -1. model: the name in the column `model`. pooling: text for the hyperparameters of
    pooling layers. merge_equal: equal layers in a row become one, such as "2xConv2d"."""
    frame = layers(problem.model, problem.sample.shape, pooling)
    if merge_equal:
        kind = frame[["layer", "output_shape", "hyperparameters"]]
        runs = frame.groupby((kind != kind.shift()).any(axis=1).cumsum())
        many = runs["layer"].transform("size")
        named = frame["layer"].where(many == 1, many.astype(str) + "x" + frame["layer"])
        frame = frame.assign(layer=named, value=runs["value"].transform("sum"))[~runs.cumcount().astype(bool)]
    labels = {"dataset": problem.data, "model": model, "algorithm": "na", "metric": "trainable_parameters", "seed": -1}
    frame = frame.reset_index(drop=True)
    return frame.assign(layer_index=frame.index + 1, value=frame["value"].astype(float), **labels)
