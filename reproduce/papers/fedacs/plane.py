"""Drawing and numbers of the schematics (Figs. 2, 3, 5, 8): paths of three clients' server model in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.experiment import Experiment
from reproduce.papers.fedacs import closed_form, toy_cells, toys
from reproduce.papers.fedacs.closed_form import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

OPTIMUM, START = np.array([5 / 3, 1.0]), np.array([4.5, 3.0])
SHOWN = 400
"""Rounds of a path that are drawn."""

STAMP = (
    "Thin line: 400 rounds of one run; thick line: its expectation; dot: the closed-form end point; arrows: how much "
    "each client counts there. The paper's figure is a drawing without numbers; the three clients are ours."
)


def experiment(scale: str, system: str, algorithm: str = "fedavg") -> Experiment:
    found = toys.plane_panel(scale, system).experiments
    return next(e for e in found if e.labels["algorithm"] == algorithm)


def limit(system: str, algorithm: str) -> Floats:
    """The closed-form end point at the rate of the simulation."""
    e = experiment("paper", system)
    return toy_cells.limit(algorithm.removesuffix("_original"), e.problem, e.system, toys.PLANE_RATE)


def surrogate(system: str, algorithm: str) -> tuple[Floats, Floats]:
    """(aggregation weights [3], end point) as the rate goes to zero."""
    e = experiment("paper", system)
    steps, success = toy_cells.draws(e.system, 3)
    weights = closed_form.surrogate(algorithm, np.full(3, 1 / 3), success[0], steps[0].astype(float))
    return weights, weights @ toy_cells.minimisers(e.problem)


def distances(histories: Histories, system: str, algorithms: tuple[str, ...]) -> pd.DataFrame:
    """`distance_of_tail_average` to X*, one row per run."""
    frame = histories.frame
    chosen = frame[(frame["system"] == system) & frame["algorithm"].isin(algorithms)]
    return toy_cells.tail_average(chosen, "distance_of_tail_average", dict.fromkeys(algorithms, OPTIMUM))


def ground(ax: Axes, system: str, short: bool = False) -> None:
    """The clients' minimisers with what is unequal about them, the start and the true optimum; `short`: small."""
    e = experiment("paper", system)
    steps, success = toy_cells.draws(e.system, 3)
    for m, point in enumerate(toy_cells.minimisers(e.problem)):
        ax.plot(*point, marker="s", color="#808080", markersize=5, linestyle="none", zorder=3)
        client, gap = ("", "\n") if short else (f"client {m + 1}: ", ", ")
        text = f"{client}T = {steps[0][m]}{gap}1 − q = {success[0][m]:.2g}"
        ha, above = {0: ("left", -1), 1: ("right", -1), 2: ("left", 1)}[m]
        place: dict[str, Any] = {
            "ha": ha,
            "va": "bottom" if above > 0 else "top",
            "textcoords": "offset points",
            "xytext": (0, 5 * above),
        }
        ax.annotate(text, tuple(point), fontsize=5.5 if short else 6.5, color="#404040", **place)
    ax.plot(*START, marker="o", color="white", markeredgecolor="black", markersize=4, linestyle="none", zorder=4)
    ax.annotate("start", START + np.array([-0.12, 0.0]), ha="right", va="center", fontsize=5.5 if short else 6.5)
    ax.plot(
        *OPTIMUM,
        marker="*",
        color="black",
        markersize=6 if short else 10,
        linestyle="none",
        zorder=5,
        label="optimum $X^*$",
    )
    ax.set(xlim=(-0.45, 4.85), ylim=(-0.55, 3.55), xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def schematic(histories: Histories, system: str, paths: Sequence[tuple[str, str, str]]) -> Figure:
    """Paths (algorithm, label, colour) on the ground; the arrows are those of the first."""
    from reproduce.report import figures

    fig, axes = figures.sheet(1, 1, width=4.6, height=3.5)
    ax = axes[0, 0]
    ground(ax, system)
    for algorithm, label, color in paths:
        path(ax, histories, system, algorithm, label, color)
    pulls(ax, system, *paths[0][::2])
    figures.legend(fig)
    return fig


def sampling() -> Floats:
    """The probabilities with which FedACS draws the clients of the plane (eq. 15)."""
    steps, success = toy_cells.draws(experiment("paper", "toy2d").system, 3)
    p = 1 / (success[0] * steps[0])
    return np.asarray(p / p.sum())


def path(ax: Axes, histories: Histories, system: str, algorithm: str, label: str, color: str) -> None:
    """The path of seed 0, its expectation, and where both end."""
    frame = histories.frame
    rows = frame[(frame["system"] == system) & (frame["algorithm"] == algorithm)]
    _, x, rounds, _ = next(iter(toy_cells.traces(rows, ["system", "algorithm"])))
    drawn = np.vstack([START, x[0][rounds <= SHOWN]])
    ax.plot(*drawn.T, color=color, linewidth=0.6, alpha=0.55, zorder=2)
    e = experiment("paper", system)
    options: dict[str, Any] = {"lr": toys.PLANE_RATE, "e": toy_cells.minimisers(e.problem)}
    step = closed_form.expected_step(algorithm, *toy_cells.draws(e.system, 3), **options)
    mean = closed_form.expected_path(*step, START, SHOWN)
    ax.plot(*mean.T, color=color, linewidth=1.5, zorder=3, label=label)
    end = limit(system, algorithm)
    ax.plot(*end, marker="o", color=color, markeredgecolor="white", markersize=6.5, linestyle="none", zorder=6)


def pulls(ax: Axes, system: str, algorithm: str, color: str) -> None:
    """Arrows from the end point to the clients, as long as their weight in the surrogate objective."""
    e = experiment("paper", system)
    weights, _ = surrogate(system, algorithm)
    end = limit(system, algorithm)
    for weight, point in zip(weights, toy_cells.minimisers(e.problem), strict=True):
        to = end + (point - end) / np.linalg.norm(point - end) * 2.2 * weight
        ax.annotate(
            "", tuple(to), tuple(end), arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.1, "shrinkA": 3}
        )
        ax.annotate(f"{weight:.2f}", tuple(to), fontsize=6.5, color=color, ha="center", va="center",
                    bbox={"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.8})  # fmt: skip
