"""The cells of FIARSE's tables and figures, from the histories of its runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduce.algorithms.submodels import size_key
from reproduce.declare.artifact import Reach
from reproduce.declare.values import Floats
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse.settings import SCALES, SubmodelSetting
from reproduce.report import metrics
from reproduce.report.histories import Histories
from reproduce.report.names import spelled
from reproduce.report.tables import reported

POWERS = {format(1 / 2**n, ".10g"): f"1/{2**n}" for n in range(1, 9)}
SMALL = 1 / 4
"""The size of the client that Fig. 1 shows."""
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
        in_training = [key in map(size_key, each) for key, each in zip(frame["key"], sizes, strict=True)]
        keep &= (frame["metric"] != "accuracy") | pd.Series(in_training, frame.index)
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
    """The cells, and those of the unweighted mean over the sizes; each size has equally many clients."""
    by = [c for c in cells.columns if c not in ("value", "model_size")]
    mean = cells.groupby(by, sort=False)["value"].agg(lambda v: v.mean(skipna=False)).reset_index()
    return pd.concat([cells, mean.assign(model_size="avg")], ignore_index=True)[list(cells.columns)]


def curves(histories: Histories, algorithms: Sequence[str]) -> pd.DataFrame:
    """Final global accuracy per size, and the first evaluated round that reaches the target."""
    final = accuracy(histories, ("global",), algorithms, average=False)
    rows = of(histories, algorithms).assign(target_accuracy=histories.frame["target_accuracy"])
    reached = metrics.measured(Reach(horizon="clock.rounds", by_key=True), replace(histories, frame=rows))
    cells = pd.concat([final, by_size(reached, "global")], ignore_index=True)
    return cells.assign(target_accuracy=histories.frame["target_accuracy"].iloc[0])


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


def coordinates(histories: Histories, algorithm: str, metric: str, key: str = "") -> Floats:
    """Numbers [rounds, coordinates] that were recorded coordinate by coordinate, under keys that begin with `key`."""
    rows = histories.frame[(histories.frame["algorithm"] == algorithm) & (histories.frame["metric"] == metric)]
    rows = rows[rows["key"].str.startswith(key)]
    numbers = rows.assign(i=rows["key"].str.removeprefix(key).astype(int))
    return numbers.pivot_table(values="value", index="round", columns="i").to_numpy(float)


def masks(histories: Histories, algorithm: str) -> NDArray[np.bool_]:
    """Marks the coordinates that the small client's submodel holds in each round [rounds, coordinates]."""
    return coordinates(histories, algorithm, "mask", f"{size_key(SMALL)}:") > 0


def patterns(histories: Histories) -> pd.DataFrame:
    """HeteroFL's submodel stays, FedRolex's moves on, FIARSE's has the largest weights: counts over two rounds."""
    before, after = masks(histories, "heterofl")
    weights = np.abs(coordinates(histories, "fiarse", "weight"))
    held = zip(masks(histories, "fiarse"), weights, strict=True)
    wrong = sum(int((mask & (size < np.sort(size)[-mask.sum()])).sum()) for mask, size in held)
    rows = [
        ("heterofl", "mask_changes", -1, float((before != after).sum())),
        ("fedrolex", "window_shift", -1, float(_shift(masks(histories, "fedrolex"), histories))),
        ("fiarse", "mask_topk_mismatches", -1, float(wrong)),
    ]
    return pd.DataFrame(rows, columns=["algorithm", "metric", "seed", "value"])


def _shift(held: NDArray[np.bool_], histories: Histories) -> int:
    """The number of units by which the first kept unit of the first layer moves from one round to the next, modulo the
    width."""
    model: Any = histories.experiments[0].problem.model  # type: ignore[attr-defined]
    units, inputs = model.shapes["fc1.weight"]
    kept = held[:, : units * inputs].reshape(-1, units, inputs).any(2)  # [rounds, units]
    first = (kept & ~np.roll(kept, 1, axis=1)).argmax(1)
    return int(first[1] - first[0]) % int(units)


def exploration(histories: Histories) -> pd.DataFrame:
    """Early and late growth of what the submodels of a size have reached, and what is replaced in them per round."""
    statistics: dict[str, tuple[str, Callable[[Floats], float]]] = {
        "exploration_rate_min_increment": ("explored", lambda e: np.diff(e).min()),
        "exploration_increment_first_fifth": ("explored", lambda e: np.diff(e)[: _fifth(e)].mean()),
        "exploration_increment_last_fifth": ("explored", lambda e: np.diff(e)[-_fifth(e) :].mean()),
        "model_difference_first_fifth": ("replaced", lambda d: d[: _fifth(d)].mean()),
        "model_difference_last_fifth": ("replaced", lambda d: d[-_fifth(d) :].mean()),
    }
    parts = []
    for name, (metric, statistic) in statistics.items():
        groups = _recorded(histories, metric)
        parts.append(groups["value"].agg(lambda v, s=statistic: s(v.to_numpy(float))).reset_index().assign(metric=name))
    cells = pd.concat(parts, ignore_index=True)
    return cells[cells["key"] != "1"].assign(model_size=lambda c: c["key"].map(size_label)).drop(columns="key")


def untrained(histories: Histories) -> pd.DataFrame:
    """The share of the weights that no participant has held by the last round."""
    cells = _recorded(histories, "untrained")["value"].last().reset_index()
    return cells.drop(columns="key").assign(metric="untrained_fraction")


def _fifth(values: Floats) -> int:
    return max(1, len(values) // 5)


def _recorded(histories: Histories, metric: str) -> Any:
    """The rows of a metric in the order of rounds, grouped by run and size."""
    rows = of(histories, trained=False)
    rows = rows[rows["metric"] == metric].sort_values("round", kind="stable")
    columns = [c for c in rows.columns if c not in ("round", "time", "metric", "value", "status")]
    return rows.groupby(columns, sort=False)


def slices(histories: Histories) -> pd.DataFrame:
    """The weights between consecutive sizes and who holds them in the first round; breaches of nesting in all rounds.

    A slice is named by the smallest size that has it.
    """
    (e,) = histories.experiments
    system: Any = e.system
    capacities = system.capacity.capacities(e.problem.clients)  # type: ignore[attr-defined]
    held = _first(histories, "held").sort_values("key", key=lambda keys: keys.astype(float), kind="stable")
    runs = held.groupby([c for c in held.columns if c not in ("key", "value")], sort=False)
    coordinates = held.assign(value=held["value"] - runs["value"].shift(fill_value=0.0))
    clients = coordinates.assign(value=[float((capacities >= float(key)).sum()) for key in coordinates["key"]])
    parts = {
        "slice_coordinates": coordinates,
        "slice_clients": clients,
        "slice_participants": _first(histories, "holders"),
    }
    rows = [part.assign(metric=name, model_size=part["key"].map(size_label)) for name, part in parts.items()]
    cells = pd.concat(rows, ignore_index=True).drop(columns="key")
    nested = _recorded(histories, "unnested")["value"].sum().reset_index().drop(columns="key")
    nested = nested.groupby([c for c in nested.columns if c != "value"], sort=False)["value"].sum().reset_index()
    return pd.concat([cells, nested.assign(metric="mask_nesting_violations", model_size="all")], ignore_index=True)


def _first(histories: Histories, metric: str) -> pd.DataFrame:
    cells: pd.DataFrame = _recorded(histories, metric)["value"].first().reset_index()
    return cells


def configuration(histories: Histories) -> pd.DataFrame:
    """Table 3: the hyper-parameters of the paper scale (nothing is trained), words in `text`, each as the option of the
    paper's grid that it equals, else in the order of the configuration; and how many entries of the paper's table the
    configuration does not have, or has otherwise."""
    paper = reported("fiarse", "table3")
    assert paper is not None
    theirs = list(paper[["dataset", "metric", "option", "paper_text"]].itertuples(index=False, name=None))
    options = {(dataset, metric, text): option for dataset, metric, option, text in theirs}
    rows = []
    for dataset, setting in SCALES["paper"].all().items():
        for metric, values in configured(setting).items():
            for i, value in enumerate(values):
                option = str(options.get((dataset, metric, spelled(value)), i))
                number, text = (float("nan"), value) if isinstance(value, str) else (float(value), "")
                rows.append((dataset, metric, option, number, text))
    ours = {(dataset, metric, option, text or spelled(number)) for dataset, metric, option, number, text in rows}
    for dataset in dict.fromkeys(paper["dataset"]):
        differ = [entry for entry in theirs if entry[0] == dataset and entry not in ours]
        rows.append((dataset, "config_mismatches", "", float(len(differ)), ""))
    columns = ["dataset", "metric", "option", "value", "text"]
    return pd.DataFrame(rows, columns=columns).assign(algorithm="all", seed=-1)


def configured(setting: SubmodelSetting) -> dict[str, list[float | str]]:
    """Metric of Table 3 -> the values of a data set."""
    used: Any = list(runs.algorithms(setting, "four", setting.participants).values())
    momenta = {"sgd_momentum_grid": list(dict.fromkeys(a.momentum for a in used))}
    return {
        "local_epochs": [float(setting.work.amounts(0, 0, 1)[0])],
        "batch_size": [setting.problem.batches.size],
        "communication_rounds": [setting.clock.rounds],
        "optimizer": ["adamw" if setting.betas else "sgd"],
        "log10_learning_rate_grid": [round(math.log10(lr), 6) for lr in dict.fromkeys(a.lr for a in used)],
        **({"adamw_betas": list(setting.betas)} if setting.betas else momenta),
    }
