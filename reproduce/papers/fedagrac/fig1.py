"""Fig. 1: paths of six algorithms in the parameter plane of a linear regression with unequal step counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedagrac import instances, regression
from reproduce.papers.fedagrac.regression import FAST, SLOW, Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

DRAWN = ("fedavg", "fednova", "fedprox", "fedlin", "scaffold", "fedagrac")
SHOWN_ROUNDS, LOCAL_ROUNDS = 15, 3


def panels(scale: str) -> tuple[Panel, ...]:
    """The same at every scale."""
    return (regression.panel(),)


def server_path(histories: Histories, algorithm: str) -> Floats:
    """x_1, x_2, ... [rounds + 1, 2] of one algorithm."""
    rows = histories.frame[(histories.frame["metric"] == "x") & (histories.frame["algorithm"] == algorithm)]
    path = rows.pivot_table(index="round", columns="key", values="value").sort_index()[["0", "1"]].to_numpy()
    return np.concatenate([[regression.START], path])


def cells(histories: Histories) -> pd.DataFrame:
    """Where each path ends, how far it strays from the straight line, and whose minimiser draws its end; and on random
    instances, numbered by the seed, whether FedaGrac's path is the straighter one (1) or not (0)."""
    import pandas as pd

    best, (minimisers, _) = regression.optimum(), regression.quadratics()
    length = float(np.linalg.norm(best - regression.START))
    across = np.array([-best[1], best[0]]) / length  # the start is the origin
    rows = []
    for name in regression.ALGORITHMS:
        path = server_path(histories, name)
        pulls = [np.linalg.norm(best - minimisers[i]) - np.linalg.norm(path[-1] - minimisers[i]) for i in (SLOW, FAST)]
        values = {
            "relative_distance_to_optimum_final": np.linalg.norm(path[-1] - best) / length,
            "max_perpendicular_deviation": np.abs(path @ across).max() / length,
            "slow_minimiser_pull": pulls[0],
            "fast_minimiser_pull": pulls[1],
        }
        rows += [(("reference"), name, -1, metric, float(value)) for metric, value in values.items()]
    drawn = instances.random_quadratics()
    ours = instances.deviations("fedagrac", *drawn)
    for name in instances.RIVALS:
        straighter = instances.deviations(name, *drawn) - ours > instances.TIE
        rows += [("random", name, i, "straighter_path", float(won)) for i, won in enumerate(straighter)]
    return pd.DataFrame(rows, columns=["instance", "algorithm", "seed", "metric", "value"])


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(2, 3, sharex=True, sharey=True, height=2.1)
    look = figures.lines(["fedagrac"])["fedagrac"].plot
    for ax, name in zip(axes.flat, DRAWN, strict=True):
        _landscape(ax)
        path = server_path(histories, name)
        for paths in regression.local_paths(name, path, LOCAL_ROUNDS):
            for i, color in ((SLOW, figures.ORANGE), (FAST, figures.GREY)):
                ax.plot(*paths[i].T, color=color, linewidth=0.7, zorder=2)
        shown = path[: SHOWN_ROUNDS + 1]
        ax.plot(*shown.T, **{**look, "markersize": 2.8, "linewidth": 1.1})
        ax.set_title(pretty(name))
    axes[0, 0].plot([], [], color=figures.ORANGE, linewidth=0.9, label="local path, 2 steps")
    axes[0, 0].plot([], [], color=figures.GREY, linewidth=0.9, label="local path, 40 steps")
    for ax in axes[:, 0]:
        ax.set_ylabel("b")
    for ax in axes[-1]:
        ax.set_xlabel("a")
    figures.legend(fig)
    return fig


def _landscape(ax: Axes) -> None:
    """Contours of the mean objective, its minimiser and those of the two clients."""
    from reproduce.report import figures

    minimisers, hessians = regression.quadratics()
    a, b = np.meshgrid(np.linspace(-3.4, 2.4, 121), np.linspace(-0.4, 3.0, 81))
    z = np.stack([a, b], axis=-1)
    height = np.zeros_like(a)
    for e, h in zip(minimisers, hessians, strict=True):
        height += 0.25 * np.einsum("yxi,ij,yxj->yx", z - e, h, z - e)
    lowest = float(height.min())
    ax.contour(a, b, height - lowest, levels=[0.05, 0.2, 0.5, 1, 2, 4, 7], colors="#c8c8c8", linewidths=0.5, zorder=1)
    ax.grid(visible=False)
    look: dict[str, Any] = {
        "linestyle": "none",
        "markersize": 7,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "zorder": 4,
    }
    star: dict[str, Any] = {**look, "marker": "*"}
    ax.plot(*regression.optimum(), color=figures.BLACK, label="global minimiser", **star)
    ax.plot(*minimisers[SLOW], color=figures.ORANGE, label="minimiser, client with 2 steps", **star)
    ax.plot(*minimisers[FAST], color=figures.GREY, label="minimiser, client with 40 steps", **star)


ARTIFACT = Artifact(
    "fedagrac",
    "fig1",
    "Paths in the parameter plane of a linear regression, two clients with 2 and 40 local steps",
    panels,
    cells,
    draw,
    options={
        "stamp": "Server models of 15 rounds, local paths of the first 3. Data, steps and rates are ours: the paper's "
        "schematic gives none. Without noise SCAFFOLD reaches the minimiser too; what differs is the way there."
    },
)
