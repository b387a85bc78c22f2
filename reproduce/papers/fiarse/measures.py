"""From the histories of FIARSE's runs to the cells of its tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from reproduce.algorithms.submodels import size_key
from reproduce.report import metrics
from reproduce.report.names import pretty

if TYPE_CHECKING:
    from reproduce.report.histories import Histories

POWERS = {format(1 / 2**n, ".10g"): f"1/{2**n}" for n in range(1, 9)}
ROUNDS = "rounds_to_target"
METRICS = {"global": "accuracy", "local": "local_accuracy"}
"""Where the accuracy of a size is taken: on the whole test set, or on those of the clients that have the size."""


def size_label(key: str) -> str:
    """A size, as results have it, as the paper prints it: 1/64, 0.36, 1.0."""
    return POWERS.get(key, "1.0" if key == "1" else key)


def of(histories: Histories, algorithms: Sequence[str] = (), *, trained: bool = True) -> pd.DataFrame:
    """The rows of some algorithms (default: all). trained: without the sizes that are only evaluated at the end."""
    frame = histories.frame.drop(columns="target_accuracy")
    keep = frame["algorithm"].isin(algorithms or frame["algorithm"])
    if trained:
        sizes = histories.of("system.capacity.sizes")
        mine = [key in map(size_key, own) for key, own in zip(frame["key"], sizes, strict=True)]
        keep &= (frame["metric"] != "accuracy") | pd.Series(mine, frame.index)
    return frame[keep]


def accuracy(
    histories: Histories,
    scopes: Sequence[str] = ("local", "global"),
    algorithms: Sequence[str] = (),
    trained: bool = True,
    average: bool = True,
) -> pd.DataFrame:
    """Accuracy per size after the last round; `average`: and the mean over the sizes."""
    rows = of(histories, algorithms, trained=trained)
    name = "test_accuracy_percent"
    parts = [by_size(metrics.last(rows, METRICS[scope], key=None, name=name), scope) for scope in scopes]
    return pd.concat(map(with_average, parts) if average else parts, ignore_index=True)


def by_size(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """The sub-key as the columns `eval_scope` and `model_size`."""
    return rows.assign(eval_scope=scope, model_size=rows["key"].map(size_label)).drop(columns="key")


def with_average(cells: pd.DataFrame) -> pd.DataFrame:
    """And the mean over the sizes, unweighted; there are equally many clients of each, so locally it is their mean."""
    by = [c for c in cells.columns if c not in ("value", "model_size")]
    mean = cells.groupby(by, sort=False)["value"].agg(lambda v: v.mean(skipna=False)).reset_index()
    return pd.concat([cells, mean.assign(model_size="avg")], ignore_index=True)[list(cells.columns)]


def curves(histories: Histories, algorithms: Sequence[str]) -> pd.DataFrame:
    """Final global accuracy per size, and the first evaluated round that reaches the target."""
    final = accuracy(histories, ("global",), algorithms, average=False)
    rows = of(histories, algorithms)
    rows = rows.assign(target_accuracy=histories.frame["target_accuracy"])
    ends = histories.of("clock.rounds")[rows.index]
    reached = [
        metrics.first_reaching(part, "accuracy", "target_accuracy", horizon=float(end), key=None, name=ROUNDS)
        for end, part in rows.groupby(ends, sort=False)
    ]
    found = pd.concat([final, by_size(pd.concat(reached), "global")], ignore_index=True)
    return found.assign(target_accuracy=histories.frame["target_accuracy"].iloc[0])


def clients(histories: Histories) -> pd.DataFrame:
    """Mean, 10th percentile and skewness of the clients' accuracies with the submodel of their own size."""
    final = metrics.last(of(histories), "client_accuracy", key=None)
    by = [c for c in final.columns if c not in ("key", "metric", "value")]
    groups = final.groupby(by, sort=False)["value"]
    statistics = {
        "client_accuracy_mean": groups.mean(),
        "client_accuracy_p10": groups.quantile(0.1),
        "client_accuracy_skewness": groups.agg(lambda v: ((v - v.mean()) ** 3).mean() / v.std(ddof=0) ** 3),
    }
    return pd.concat([v.reset_index().assign(metric=name) for name, v in statistics.items()], ignore_index=True)


def leads(histories: Histories, found: pd.DataFrame) -> str:
    """How far FIARSE is ahead of the other methods in a table, size by size, over the seeds that both have."""
    lines = []
    for (dataset, scope), rows in found.groupby(["dataset", "eval_scope"], sort=False):  # type: ignore[misc]
        seeds = rows.groupby("algorithm", sort=False)["seed"].agg(set)
        for other in seeds.index:
            if other != "fiarse" and "fiarse" in seeds:
                both = rows[rows["seed"].isin(seeds["fiarse"] & seeds[other])]
                means = both.groupby(["algorithm", "model_size"], sort=False)["value"].mean()
                lead = dict(means["fiarse"] - means[other])
                text = ", ".join(f"{size}: {lead[size]:+.1f}" for size in dict.fromkeys(rows["model_size"]))
                lines.append(f"- FIARSE minus {pretty(other)}, {pretty(dataset)}, {scope} (points): {text}.")
    return "\n".join(lines)
