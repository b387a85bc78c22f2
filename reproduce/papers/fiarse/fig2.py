"""Fig. 2: how the accuracies of the clients are distributed, each with the submodel of its size on its own test set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.fiarse import cells, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SEED, BINS = 0, 15


def draw(histories: Histories, found: pd.DataFrame) -> Figure:
    """One panel per method, stacked by size, the largest at the bottom."""
    import numpy as np

    from reproduce.report import figures
    from reproduce.report.names import pretty

    rows = histories.frame[(histories.frame["metric"] == "client_accuracy") & (histories.frame["seed"] == SEED)]
    setting = next(iter(panels.settings(histories.scale).values()))
    capacities = setting.system.capacity.capacities(setting.problem.clients)
    colors = (figures.BLUE, figures.SKY, figures.ORANGE, figures.VERMILLION)
    fig, axes = figures.sheet(1, len(panels.MAIN), sharex=True, sharey=True, height=1.9)
    for ax, algorithm in zip(axes[0], panels.MAIN, strict=True):
        here = rows[rows["algorithm"] == algorithm]
        ax.set(title=pretty(algorithm), xlabel="accuracy (%)")
        if here.empty:
            figures.missing(ax, histories.reason(f"four-{setting.problem.data}") or "no results")
            continue
        values = here.set_index(here["key"].astype(int))["value"].sort_index().to_numpy(float)
        edges = np.linspace(values.min(), max(values.max(), values.min() + 1), BINS + 1)
        parts = [values[capacities == size] for size in panels.FOUR]
        names = [f"size {cells.size_label(size)}" for size in panels.FOUR]
        ax.hist(parts, edges, stacked=True, color=colors, label=names, edgecolor="white", linewidth=0.3)
        ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("clients")
    figures.legend(fig)
    return fig


ARTIFACT = Artifact(
    "fiarse",
    "fig2",
    "Accuracies of the clients on their own test sets",
    panels.four_first,
    cells.clients,
    draw,
    rows=("algorithm",),
    columns=("metric",),
    options={
        "stamp": "Histograms: seed 0, 15 bins from the least to the greatest accuracy of a method; the statistics in "
        "the cells are of all seeds. ScaleFL is not part of this package yet."
    },
)
