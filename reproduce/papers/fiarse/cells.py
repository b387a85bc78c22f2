"""From the histories of FIARSE's runs to the cells of its tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduce.algorithms.submodels import size_key
from reproduce.papers.fiarse.panels import FOUR, SHOWN, SWEEP

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

POWERS = {1 / 2**n: f"1/{2**n}" for n in range(1, 9)}
NAMES = {"fiarse_released": "FIARSE (released)"}
TARGETS = {"smoke": 30.0, "reduced": 60.0, "paper": 70.0}
"""Percent; at paper scale the target on CIFAR-10 (Section 6.3), asked of CIFAR-100 too."""


def size_label(size: float) -> str:
    """A size as the paper prints it: 1/64, 0.36, 1.0."""
    return POWERS.get(size, "1.0" if size == 1 else f"{size:g}")


LABELS = {size_key(size): size_label(size) for size in (*SWEEP, *FOUR)}


def by_size(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """The sub-key as the columns `eval_scope` and `model_size`."""
    return rows.assign(eval_scope=scope, model_size=rows["key"].map(LABELS)).drop(columns="key")


def trained(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the sizes that are only evaluated at the end."""
    return frame[(frame["metric"] != "accuracy") | frame["key"].isin([size_key(size) for size in FOUR])]


def final_global(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on the whole test set after the last round, per size."""
    from reproduce.report import metrics

    return by_size(metrics.last(frame, "accuracy", key=None, name="test_accuracy_percent"), "global")


def final_local(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean over the clients of a size of the accuracy on their own test sets, after the last round."""
    from reproduce.report import metrics

    return by_size(metrics.last(frame, "local_accuracy", key=None, name="test_accuracy_percent"), "local")


def with_average(cells: pd.DataFrame) -> pd.DataFrame:
    """And the mean over the sizes, unweighted; there are equally many clients of each, so locally it is their mean."""
    import pandas as pd

    by = [c for c in cells.columns if c not in ("value", "model_size")]
    mean = cells.groupby(by, sort=False)["value"].agg(lambda v: v.mean(skipna=False)).reset_index()
    return pd.concat([cells, mean.assign(model_size="avg")], ignore_index=True)[list(cells.columns)]


def table(histories: Histories) -> pd.DataFrame:
    """Local and global accuracy, per size and on average."""
    import pandas as pd

    frame = trained(histories.frame)
    parts = [with_average(part) for part in (final_local(frame), final_global(frame))]
    return pd.concat(parts, ignore_index=True)


def only(histories: Histories, algorithms: Sequence[str]) -> pd.DataFrame:
    """The cells of `table` that belong to some of the algorithms."""
    cells = table(histories)
    return cells[cells["algorithm"].isin(algorithms)]


def leads(histories: Histories, found: pd.DataFrame) -> str:
    """How far FIARSE is ahead of the other methods in a table, size by size, in a sentence each."""
    from reproduce.report.names import pretty

    lines = []
    for (dataset, scope), rows in found.groupby(["dataset", "eval_scope"], sort=False):  # type: ignore[misc]
        means = rows.groupby(["algorithm", "model_size"], sort=False)["value"].mean()
        for other in dict.fromkeys(rows["algorithm"]):
            if other != "fiarse":
                lead = dict(means["fiarse"] - means[other])
                text = ", ".join(f"{size}: {lead[size]:+.1f}" for size in dict.fromkeys(rows["model_size"]))
                lines.append(f"- FIARSE minus {pretty(other, NAMES)}, {pretty(dataset)}, {scope} (points): {text}.")
    return "\n".join(lines)


def shown(histories: Histories) -> pd.DataFrame:
    """The history rows of the methods that the curves compare; variants of FIARSE belong to Table 6."""
    return histories.frame[histories.frame["algorithm"].isin(SHOWN)]


def curves(histories: Histories) -> pd.DataFrame:
    """Final global accuracy per size, and the first evaluated round that reaches the target."""
    import pandas as pd

    from reproduce.report import metrics

    frame = trained(shown(histories))
    target = TARGETS[histories.scale]
    reached = metrics.first_reaching(frame, "accuracy", target, key=None, name="rounds_to_target")
    parts = [final_global(frame), by_size(reached, "global")]
    return pd.concat(parts, ignore_index=True).assign(target_accuracy=target)


def sweep(histories: Histories) -> pd.DataFrame:
    """Final global accuracy at all sizes of the sweep."""
    return final_global(shown(histories))


def clients(histories: Histories) -> pd.DataFrame:
    """Mean, 10th percentile and skewness of the clients' accuracies with the submodel of their own size."""
    import pandas as pd

    from reproduce.report import metrics

    final = metrics.last(histories.frame, "client_accuracy", key=None)
    by = [c for c in final.columns if c not in ("key", "metric", "value")]
    groups = final.groupby(by, sort=False)["value"]
    statistics = {
        "client_accuracy_mean": groups.mean(),
        "client_accuracy_p10": groups.quantile(0.1),
        "client_accuracy_skewness": groups.agg(lambda v: ((v - v.mean()) ** 3).mean() / v.std(ddof=0) ** 3),
    }
    return pd.concat([v.reset_index().assign(metric=name) for name, v in statistics.items()], ignore_index=True)
