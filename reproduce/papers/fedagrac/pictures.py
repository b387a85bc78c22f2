"""Special pictures of FedaGrac."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from reproduce.papers.fedagrac.closed_form import local_paths
from reproduce.papers.fedagrac.measures import server_path, timed
from reproduce.papers.fedagrac.regression import FAST, SLOW
from reproduce.problems import Quadratic
from reproduce.report import figures
from reproduce.report.histories import Histories

SHOWN_ROUNDS, LOCAL_ROUNDS = 15, 3
ORDER = ("fedagrac", "fedavg", "fednova", "scaffold", "fedprox")
SCHEMES = ("fedagrac", "fedagrac_avg", "fedagrac_first", "fedagrac_reverse")


def path(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 1: the server's and the clients' ways of one algorithm."""
    (experiment,) = histories.experiments
    name = str(experiment.labels["algorithm"])
    _landscape(ax, experiment.problem)  # type: ignore[arg-type]
    server = server_path(histories, name)
    for paths in local_paths(experiment, server, LOCAL_ROUNDS):
        for i, color in ((SLOW, figures.ORANGE), (FAST, figures.GREY)):
            ax.plot(*paths[i].T, color=color, linewidth=0.7, zorder=2)
    look = figures.lines(["fedagrac"])["fedagrac"].plot
    ax.plot(*server[: SHOWN_ROUNDS + 1].T, **{**look, "markersize": 2.8, "linewidth": 1.1})
    ax.plot([], [], color=figures.ORANGE, linewidth=0.9, label="local path, 2 steps")
    ax.plot([], [], color=figures.GREY, linewidth=0.9, label="local path, 40 steps")
    place = ax.get_subplotspec()
    if place is not None and place.is_last_row():
        ax.set_xlabel("a")


def _landscape(ax: Axes, problem: Quadratic) -> None:
    """Contours of the mean objective, its minimiser and those of the two clients."""
    minimisers, hessians = problem.minima(), np.array(problem.hessians)
    a, b = np.meshgrid(np.linspace(-3.4, 2.4, 121), np.linspace(-0.4, 3.0, 81))
    z = np.stack([a, b], axis=-1)
    height = np.zeros_like(a)
    for e, h in zip(minimisers, hessians, strict=True):
        height += 0.25 * np.einsum("yxi,ij,yxj->yx", z - e, h, z - e)
    lowest = float(height.min())
    ax.contour(a, b, height - lowest, levels=[0.05, 0.2, 0.5, 1, 2, 4, 7], colors="#c8c8c8", linewidths=0.5, zorder=1)
    ax.grid(visible=False)
    star: dict[str, Any] = {"linestyle": "none", "marker": "*", "markersize": 7, "zorder": 4}
    star |= {"markeredgecolor": "white", "markeredgewidth": 0.5}
    ax.plot(*problem.optimum(), color=figures.BLACK, label="global minimiser", **star)
    ax.plot(*minimisers[SLOW], color=figures.ORANGE, label="minimiser, client with 2 steps", **star)
    ax.plot(*minimisers[FAST], color=figures.GREY, label="minimiser, client with 40 steps", **star)


def over_lambda(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 2: accuracy after the last round, over constant λ as a line, with `increase` among them as bars."""
    groups = cells[cells["metric"] == "accuracy_at_last_round"].groupby("lambda", sort=False)["value"]
    mean, low, high = (groups.agg(how) for how in ("mean", "min", "max"))
    names = [str(name) for name in mean.index]
    line = figures.lines(["fedagrac"])["fedagrac"]
    ax.set(xlabel="calibration rate λ", ylabel="accuracy after the last round (%)")
    if "increase" not in names:
        at = [float(n) for n in names]
        ax.plot(at, mean, **line.plot)
        ax.fill_between(at, low, high, color=line.color, alpha=0.16, linewidth=0)
        for x, lost, of in zip(at, groups.size() - groups.count(), groups.size(), strict=True):
            if lost:
                ax.annotate(f"{lost} of {of}\ndiverged", (x, 0.03), xycoords=("data", "axes fraction"), ha="center")
        ax.set_xlim(-0.05 * at[-1], 1.08 * at[-1])
        return
    places = list(range(len(names)))
    ax.bar(places, mean, 0.6, color=line.color, yerr=[mean - low, high - mean], error_kw={"elinewidth": 0.8})
    ax.set_xticks(places, names)
    ax.set_ylim(max(0.0, float(low.min()) - 4), float(high.max()) + 2)
    for x, value, top in zip(places, mean, high, strict=True):
        ax.annotate(f"{value:.1f}", (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=6.5)
    ax.grid(visible=False, axis="x")


def schemes(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 3: accuracy over the rounds, a line per scheme."""
    rows = histories.frame[(histories.frame["metric"] == "accuracy") & histories.frame["algorithm"].isin(SCHEMES)]
    names = {name: name.replace("fedagrac", "FedaGrac").replace("_", "-") for name in SCHEMES}
    figures.curves(ax, rows[rows["round"] > 0], order=SCHEMES, names=names)
    # The first rounds climb steeply and would hide what the curves do later.
    late = rows.loc[rows["round"] >= rows["round"].max() // 10, "value"]
    ax.set_ylim(late.quantile(0.02) - 1, late.max() + 1)
    ax.set_xlabel("round")


def rates(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 4: accuracy over λ and learning rate."""
    figures.heatmap(ax, cells, x="lambda", y="learning_rate", names={"lambda": "λ", "learning_rate": "rate η"})


def over_time(block: np.ndarray, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 5: the same accuracies over simulated time and over rounds."""
    rows = timed(histories)
    later = rows.loc[rows["round"] > 0, "value"]  # leaves out what the random initial models score
    for ax, x, label in zip(block.flat, ("time", "round"), ("simulated time (s)", "round"), strict=True):
        figures.curves(ax, rows, x=x, order=ORDER)
        ax.set_xlabel(label)
        ax.set_ylim(later.min() - 1, later.max() + 1)


def readings(
    ax: Axes, histories: Histories, cells: pd.DataFrame, names: dict[str, str], levels: dict[str, str]
) -> None:
    """Sensitivity: accuracy over λ, a line per reading in `names`; level lines for the algorithms without λ."""
    # Lines that are neither FedAvg's nor FedNova's.
    lines = figures.lines(["fedagrac", "fedau", "os", "fedprox", "scaffold"])
    looks = dict(zip(names, lines.values(), strict=True))
    found = cells[~cells["algorithm"].isin(levels)]
    for k, name in enumerate(dict.fromkeys(found["algorithm"])):
        groups = found[found["algorithm"] == name].groupby("lambda")["value"]
        mean, low, high = groups.mean(), groups.min(), groups.max()
        at = [i + 0.06 * (k - 1.5) for i in range(len(mean))]
        ax.errorbar(at, mean, yerr=[mean - low, high - mean], label=names[name], elinewidth=0.8, **looks[name].plot)
        for x, y, lost, of in zip(at, mean, groups.size() - groups.count(), groups.size(), strict=True):
            if lost:
                ax.annotate(f"{lost}/{of} diverged", (x, y), (4, -9), textcoords="offset points", fontsize=6)
    for (name, text), look in zip(levels.items(), figures.lines(levels).values(), strict=True):
        level = cells.loc[cells["algorithm"] == name, "value"]
        ax.axhline(level.mean(), label=text, color=look.color, linestyle=look.dashes, linewidth=0.9)
        ax.axhspan(level.min(), level.max(), color=look.color, alpha=0.12, linewidth=0)
    rates = sorted(set(found["lambda"]))
    ax.set_xticks(range(len(rates)), [f"{lam:g}" for lam in rates])
    ax.set(xlabel="calibration rate λ", xlim=(-0.5, len(rates) - 0.5))
