"""From the recorded sets of weights to cells: what submodels hold, share and reach (Figs. 1, 7, 8, Table 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reproduce.algorithms.submodels import size_key
from reproduce.papers.fiarse.measures import of, size_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reproduce.report.histories import Histories

SMALL = 1 / 4
"""The size of the client that Fig. 1 shows."""


# --- Fig. 1 -----------------------------------------------------------------------------------------------------------


def table(histories: Histories, algorithm: str, metric: str, key: str = "") -> NDArray[np.float64]:
    """Numbers [rounds, coordinates] that were recorded coordinate by coordinate, under keys that begin with `key`."""
    rows = histories.frame[(histories.frame["algorithm"] == algorithm) & (histories.frame["metric"] == metric)]
    rows = rows[rows["key"].str.startswith(key)]
    numbers = rows.assign(i=rows["key"].str.removeprefix(key).astype(int))
    return numbers.pivot_table(values="value", index="round", columns="i").to_numpy(float)


def masks(histories: Histories, algorithm: str, size: float = SMALL) -> NDArray[np.bool_]:
    """What a submodel holds in each round [rounds, coordinates]."""
    return table(histories, algorithm, "mask", f"{size_key(size)}:") > 0


def patterns(histories: Histories) -> pd.DataFrame:
    """HeteroFL's submodel stays, FedRolex's moves on, FIARSE's has the largest weights: counts over two rounds."""
    before, after = masks(histories, "heterofl")
    moved = _start(masks(histories, "fedrolex"), histories)
    weights = np.abs(table(histories, "fiarse", "weight"))
    wrong = 0
    for held, size in zip(masks(histories, "fiarse"), weights, strict=True):
        wrong += int((held & (size < np.sort(size)[-held.sum()])).sum())
    found = {
        ("heterofl", "mask_changes"): int((before != after).sum()),
        ("fedrolex", "window_shift"): moved,
        ("fiarse", "mask_topk_mismatches"): wrong,
    }
    return pd.DataFrame(
        [{"algorithm": a, "metric": m, "seed": -1, "value": float(value)} for (a, m), value in found.items()]
    )


def _start(held: NDArray[np.bool_], histories: Histories) -> int:
    """How far the first kept unit of the first layer moves from one round to the next, around its width."""
    model: Any = histories.experiments[0].problem.model  # type: ignore[attr-defined]
    units, inputs = model.shapes["fc1.weight"]
    first = []
    for mask in held:
        kept = mask[: units * inputs].reshape(units, inputs).any(1)
        first.append(next(u for u in range(units) if kept[u] and not kept[u - 1]))
    return (first[1] - first[0]) % units


# --- Figs. 7 and 8 ----------------------------------------------------------------------------------------------------


def exploration(histories: Histories) -> pd.DataFrame:
    """Early and late growth of what the submodels of a size have reached, and what is replaced in them per round."""
    statistics: dict[str, tuple[str, Callable[[NDArray[np.float64]], float]]] = {
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


def _fifth(values: NDArray[np.float64]) -> int:
    return max(1, len(values) // 5)


def _recorded(histories: Histories, metric: str) -> Any:
    """The rows of a metric in the order of rounds, grouped by run and size."""
    rows = of(histories, trained=False)
    rows = rows[rows["metric"] == metric].sort_values("round", kind="stable")
    columns = [c for c in rows.columns if c not in ("round", "time", "metric", "value", "status")]
    return rows.groupby(columns, sort=False)


# --- Table 2 ----------------------------------------------------------------------------------------------------------


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
    found = pd.concat(rows, ignore_index=True).drop(columns="key")
    nested = _recorded(histories, "unnested")["value"].sum().reset_index().drop(columns="key")
    labels = [c for c in nested.columns if c != "value"]
    nested = nested.groupby(labels, sort=False)["value"].sum().reset_index()
    return pd.concat([found, nested.assign(metric="mask_nesting_violations", model_size="all")], ignore_index=True)


def _first(histories: Histories, metric: str) -> pd.DataFrame:
    cells: pd.DataFrame = _recorded(histories, metric)["value"].first().reset_index()
    return cells
