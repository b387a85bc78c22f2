"""The pictures of FIARSE: histograms over clients, curves per size, the sweep over sizes, sets of weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduce.algorithms.submodels import size_key
from reproduce.papers.fiarse.measures import coordinates, masks, of, size_label
from reproduce.report import captions, figures, metrics, styles
from reproduce.report.histories import Histories
from reproduce.report.names import pretty

SEED, BINS = 0, np.arange(0, 101, 5)
"""Of the histograms: the seed, and the ends of the bins, the same in all of them."""
HELD: dict[str, Any] = {"color": styles.DARK}
LEFT_OUT: dict[str, Any] = {"color": "#b0b0b0", "linewidth": 0.4, "linestyle": "--"}
TICKS = ("1/256", "1/64", "1/16", "1/4", "1.0")


def sizes_of(histories: Histories) -> tuple[float, ...]:
    """The trained sizes, largest first."""
    sizes: tuple[float, ...] = histories.experiments[0].system.capacity.sizes
    return sizes


def histogram(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """The accuracies of the clients with one method, stacked by size, the largest at the bottom as in the paper."""
    rows = histories.frame[(histories.frame["metric"] == "client_accuracy") & (histories.frame["seed"] == SEED)]
    first: Any = histories.experiments[0]
    capacities = first.system.capacity.capacities(first.problem.clients)
    values = rows.set_index(rows["key"].astype(int))["value"].sort_index().to_numpy(float)
    least, most = np.searchsorted(BINS, values.min(), "right") - 1, np.searchsorted(BINS, values.max())
    sizes = sizes_of(histories)
    parts = [values[capacities == size] for size in sizes]
    names = [f"size {size_label(size_key(size))}" for size in sizes]
    colors = styles.ramp(len(sizes))[::-1]  # a size has the colour that it has where the smallest is first
    style: dict[str, Any] = {"color": colors, "edgecolor": "white", "linewidth": 0.3}
    ax.hist(parts, BINS[least : max(least + 1, most) + 1].tolist(), stacked=True, label=names, **style)
    figures.reference(ax, float(values.mean()), "mean over clients", upright=True, color=styles.VERMILLION)
    ax.grid(visible=False, axis="x")
    ax.set(xlabel="accuracy (%)", ylabel="clients (number)")


def curves(
    axes: np.ndarray, histories: Histories, cells: pd.DataFrame, algorithms: Sequence[str]
) -> list[dict[str, str]]:
    """Global accuracy over the rounds on one data set: one axes per size, the smallest first."""
    keys = [size_key(size) for size in sorted(sizes_of(histories))]
    rows = of(histories, algorithms).query("metric == 'accuracy'")
    (dataset,) = rows["dataset"].unique()
    for ax, key in zip(axes.flat, keys, strict=True):
        figures.curves(ax, rows.loc[rows["key"] == key], order=algorithms)
        ax.set(title=f"size {size_label(key)}", xlabel="round", ylabel=f"{pretty(dataset)}\naccuracy (%)")
    return [{"model_size": size_label(key), "last": rows["round"].max()} for key in keys]


def sweep(ax: Axes, histories: Histories, cells: pd.DataFrame, algorithms: Sequence[str]) -> None:
    """Final global accuracy over the size; markers at the trained ones."""
    all_sizes = sorted({1.0, *histories.experiments[0].algorithm.sweep})
    named = {size_label(size_key(size)): size for size in all_sizes}
    rows = cells.assign(size=cells["model_size"].map(named))
    ax.set_xscale("log")
    figures.curves(ax, rows, x="size", order=algorithms)
    trained = sizes_of(histories)
    for line in (line for line in ax.get_lines() if np.size(line.get_xdata()) == len(all_sizes)):
        line.set_markevery([i for i, size in enumerate(all_sizes) if size in trained])
    ax.set_xticks([named[tick] for tick in TICKS], TICKS)
    ax.minorticks_off()
    ax.set(xlabel="size of the submodel (share of the weights)", ylabel="accuracy (%)")


def exploration(axes: np.ndarray, histories: Histories, cells: pd.DataFrame) -> None:
    """Two curves per size over the rounds: the share that submodels have reached, and the share that is replaced in
    them. The latter is noise from round to round: trailing means of ten rounds show its course."""
    rows = of(histories, trained=False)
    shown = {"explored": "share of the weights", "replaced": "share of the submodel"}
    titles = ("reached so far", "replaced since the round before")
    for ax, title, (metric, ylabel) in zip(axes.flat, titles, shown.items(), strict=True):
        selected = rows[(rows["metric"] == metric) & (rows["key"] != "1")]
        keys = sorted(set(selected["key"]), key=float)
        names = {key: f"size {size_label(key)}" for key in keys}
        if metric == "explored":
            held = rows[rows["metric"] == "untrained"].groupby("round")["value"].mean()
            ax.plot(held.index, 1 - held, color=styles.GREY, linewidth=1.6, label="held by a participant", zorder=1.4)
        smooth = 10 if metric == "replaced" else 1
        style: dict[str, Any] = {"order": keys, "styles": styles.ordered(keys), "names": names, "start": smooth - 1}
        figures.curves(ax, metrics.smooth(selected, smooth), series="key", **style)
        ax.set(title=title, xlabel="round", ylabel=ylabel)


def patterns(histories: Histories, cells: pd.DataFrame) -> Figure:
    """The network and the small client's part of it, method by method, in two consecutive rounds."""
    model: Any = histories.experiments[0].problem.model  # type: ignore[attr-defined]
    algorithms = [str(e.labels["algorithm"]) for e in histories.experiments]
    fig, axes = figures.sheet(len(algorithms), 2, width=4.4, height=1.3)
    for beside, algorithm in zip(axes, algorithms, strict=True):
        weights = np.abs(coordinates(histories, algorithm, "weight"))
        for t, (ax, mask) in enumerate(zip(beside, masks(histories, algorithm), strict=True)):
            ax.set_title(f"{pretty(algorithm)}, round {t}")
            ax.axis("off")
            _edges(ax, model, mask, weights[t] / weights[t].max())
    axes[0, 0].plot([], [], label="weight that the client holds", **HELD, linewidth=1.5)
    axes[0, 0].plot([], [], label="weight that it does not hold", **LEFT_OUT)
    captions.legend(fig)
    return fig


def _edges(ax: Axes, model: Any, mask: np.ndarray, weight: np.ndarray) -> None:
    """Kept edges solid and as wide as their weights, the others dashed; inputs at the bottom."""
    at = 0
    for layer, (name, shape) in enumerate(model.shapes.items()):
        if name.endswith("weight"):
            outputs, inputs = shape
            for j, (o, i) in enumerate(np.ndindex(outputs, inputs)):
                ends = [(i + 0.5) / inputs, (o + 0.5) / outputs], [layer / 2, layer / 2 + 1]
                ax.plot(*ends, **({**HELD, "linewidth": 0.4 + 1.6 * weight[at + j]} if mask[at + j] else LEFT_OUT))
            ax.plot((np.arange(inputs) + 0.5) / inputs, [layer / 2] * inputs, "o", color="#404040", markersize=2.5)
        at += int(np.prod(shape))
    ax.plot((np.arange(outputs) + 0.5) / outputs, [layer / 2 + 0.5] * outputs, "o", color="#404040", markersize=2.5)
