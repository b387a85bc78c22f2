"""The pictures of FIARSE: histograms over clients, curves per size, the sweep over sizes, sets of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reproduce.algorithms.submodels import size_key
from reproduce.papers.fiarse import sets
from reproduce.papers.fiarse.measures import of, size_label
from reproduce.report import figures
from reproduce.report.names import pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SEED, BINS = 0, 15
COLORS = (figures.BLUE, figures.SKY, figures.ORANGE, figures.VERMILLION, figures.PURPLE)
TICKS = ("1/256", "1/64", "1/16", "1/4", "1.0")


def sizes_of(histories: Histories) -> tuple[float, ...]:
    """The trained sizes, largest first."""
    found: tuple[float, ...] = histories.experiments[0].system.capacity.sizes
    return found


def reason(histories: Histories) -> str:
    """Why something is not there."""
    return "; ".join(dict.fromkeys(why for _, why in histories.missing)) or "no results"


def histograms(histories: Histories, found: pd.DataFrame, algorithms: Sequence[str]) -> Figure:
    """The accuracies of the clients, one axes per method, stacked by size, the largest at the bottom."""
    rows = histories.frame[(histories.frame["metric"] == "client_accuracy") & (histories.frame["seed"] == SEED)]
    first: Any = histories.experiments[0]
    capacities = first.system.capacity.capacities(first.problem.clients)
    fig, axes = figures.sheet(1, len(algorithms), sharex=True, sharey=True, height=1.9)
    for ax, algorithm in zip(axes[0], algorithms, strict=True):
        here = rows[rows["algorithm"] == algorithm]
        ax.set(title=pretty(algorithm), xlabel="accuracy (%)")
        if here.empty:
            figures.missing(ax, reason(histories))
            continue
        values = here.set_index(here["key"].astype(int))["value"].sort_index().to_numpy(float)
        edges = np.linspace(values.min(), max(values.max(), values.min() + 1), BINS + 1)
        sizes = sizes_of(histories)
        parts = [values[capacities == size] for size in sizes]
        names = [f"size {size_label(size_key(size))}" for size in sizes]
        ax.hist(parts, edges, stacked=True, color=COLORS[: len(sizes)], label=names, edgecolor="white", linewidth=0.3)
        ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("clients")
    figures.legend(fig)
    return fig


def curves(histories: Histories, found: pd.DataFrame, algorithms: Sequence[str]) -> Figure:
    """Global accuracy over the rounds: one line of axes per data set, one axes per size, the smallest first."""
    datasets = list(dict.fromkeys(e.labels["dataset"] for e in histories.experiments))
    keys = [size_key(size) for size in sorted(sizes_of(histories))]
    fig, axes = figures.sheet(len(datasets), len(keys), sharex=True, sharey="row", height=1.75)
    rows = of(histories, algorithms).query("metric == 'accuracy'")
    for line, dataset in zip(axes, datasets, strict=True):
        here = rows[rows["dataset"] == dataset]
        for ax, key in zip(line, keys, strict=True):
            ax.set_title(f"size {size_label(key)}")
            if here.empty:
                figures.missing(ax, reason(histories))
                continue
            figures.curves(ax, here.loc[here["key"] == key], order=algorithms, band="sd")
        line[0].set_ylabel(f"{pretty(dataset)}\naccuracy (%)")
    for ax in axes[-1]:
        ax.set_xlabel("round")
    figures.legend(fig)
    return fig


def sweep(histories: Histories, found: pd.DataFrame, algorithms: Sequence[str]) -> Figure:
    """Final global accuracy over the size; markers at the trained ones."""
    fig, axes = figures.sheet(width=figures.FULL * 0.7, height=2.7)
    ax = axes[0, 0]
    all_sizes = sorted({1.0, *histories.experiments[0].algorithm.sweep})
    named = {size_label(size_key(size)): size for size in all_sizes}
    rows = found.assign(size=found["model_size"].map(named))
    figures.curves(ax, rows, x="size", order=algorithms, band="sd")
    trained = sizes_of(histories)
    for line in ax.get_lines():
        line.set_markevery([i for i, size in enumerate(all_sizes) if size in trained])
    ax.set_xscale("log")
    ax.set_xticks([named[tick] for tick in TICKS], TICKS)
    ax.minorticks_off()
    ax.set(xlabel="size of the submodel (share of the weights)", ylabel="accuracy (%)")
    ax.set_title(", ".join(map(pretty, rows["dataset"].unique())))
    figures.legend(fig)
    return fig


def exploration(histories: Histories, found: pd.DataFrame) -> Figure:
    """What submodels have reached, and the share of them that is replaced, over the rounds; one line per size."""
    rows = of(histories, trained=False)
    shown = {"explored": "share of the weights", "replaced": "share of the submodel"}
    titles = ("reached so far", "replaced since the round before")
    fig, axes = figures.sheet(1, 2, height=2.1)
    for ax, title, (metric, ylabel) in zip(axes[0], titles, shown.items(), strict=True):
        here = rows[(rows["metric"] == metric) & (rows["key"] != "1")]
        lines = here.assign(size=[f"size {size_label(key)}" for key in here["key"]])
        if metric == "explored":
            trained = rows[rows["metric"] == "untrained"]
            held = trained.assign(size="held by a participant", value=1 - trained["value"])
            lines = pd.concat([lines, held], ignore_index=True)
        figures.curves(ax, lines, series="size", band="sd")
        ax.set(title=title, xlabel="round", ylabel=ylabel)
    figures.legend(fig)
    return fig


def patterns(histories: Histories, found: pd.DataFrame) -> Figure:
    """The network and the small client's part of it, method by method, in two consecutive rounds."""
    model: Any = histories.experiments[0].problem.model  # type: ignore[attr-defined]
    algorithms = [str(e.labels["algorithm"]) for e in histories.experiments]
    fig, axes = figures.sheet(1, 2 * len(algorithms), height=1.5)
    for i, algorithm in enumerate(algorithms):
        weights = np.abs(sets.table(histories, algorithm, "weight"))
        for t, mask in enumerate(sets.masks(histories, algorithm)):
            ax = axes[0, 2 * i + t]
            ax.set_title(f"{pretty(algorithm)}, round {t}")
            ax.axis("off")
            _edges(ax, model, mask, weights[t] / weights[t].max())
    return fig


def _edges(ax: Axes, model: Any, mask: np.ndarray, weight: np.ndarray) -> None:
    """Kept edges solid and as wide as their weights, the others dashed; inputs at the bottom."""
    at = 0
    for layer, (name, shape) in enumerate(model.shapes.items()):
        if name.endswith("weight"):
            outputs, inputs = shape
            for j, (o, i) in enumerate(np.ndindex(outputs, inputs)):
                ends = [(i + 0.5) / inputs, (o + 0.5) / outputs], [layer / 2, layer / 2 + 1]
                look = {"linewidth": 0.4 + 1.6 * weight[at + j], "color": figures.BLUE}
                faint = {"linewidth": 0.3, "color": "#b0b0b0", "linestyle": "--"}
                ax.plot(*ends, **(look if mask[at + j] else faint))
            ax.plot((np.arange(inputs) + 0.5) / inputs, [layer / 2] * inputs, "o", color="#404040", markersize=2.5)
        at += int(np.prod(shape))
    ax.plot((np.arange(outputs) + 0.5) / outputs, [layer / 2 + 0.5] * outputs, "o", color="#404040", markersize=2.5)
