"""Special pictures of FedaGrac."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from reproduce.papers.fedagrac.measures import server_path, timed
from reproduce.papers.fedagrac.theory import FAST, SLOW, local_paths
from reproduce.problem import Quadratic
from reproduce.report import categories, figures, metrics, styles
from reproduce.report.histories import Histories

SHOWN_ROUNDS, LOCAL_ROUNDS = 15, 3
SLOW_COLOR, FAST_COLOR = styles.ORANGE, styles.SKY
ORDER = ("fedagrac", "fedavg", "fednova", "scaffold", "fedprox")
SCHEMES = ("fedagrac", "fedagrac_avg", "fedagrac_first", "fedagrac_reverse")


def path(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 1: the server's and the clients' ways of one algorithm."""
    (experiment,) = histories.experiments
    name = str(experiment.labels["algorithm"])
    _landscape(ax, experiment.problem)  # type: ignore[arg-type]
    server = server_path(histories, name)
    for paths in local_paths(experiment, LOCAL_ROUNDS):
        for i, color in ((SLOW, SLOW_COLOR), (FAST, FAST_COLOR)):
            ax.plot(*paths[i].T, color=color, linewidth=0.7, zorder=2)
    style: dict[str, Any] = {"color": styles.BLACK, "marker": "o", "markersize": 2.6, "linewidth": 1.0, "zorder": 3}
    ax.plot(*server[: SHOWN_ROUNDS + 1].T, label="model of the server, round by round", **style)
    ax.plot([], [], color=SLOW_COLOR, linewidth=0.9, label="local path, 2 steps")
    ax.plot([], [], color=FAST_COLOR, linewidth=0.9, label="local path, 40 steps")
    place = ax.get_subplotspec()
    if place is not None and place.is_last_row():
        ax.set_xlabel("parameter a")


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
    ax.plot(*problem.optimum(), color=styles.BLACK, label="global minimiser", **star)
    ax.plot(*minimisers[SLOW], color=SLOW_COLOR, label="minimiser, client with 2 steps", **star)
    ax.plot(*minimisers[FAST], color=FAST_COLOR, label="minimiser, client with 40 steps", **star)


def over_lambda(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 2: accuracy after the last round over λ; constant ones on a line, the one that increases beside it."""
    rows = cells[cells["metric"] == "accuracy_at_last_round"]
    names = [str(name) for name in dict.fromkeys(rows["lambda"])]
    places = {name: float(name) for name in names if name != "increase"}
    ticks = list(np.arange(0, max(places.values()) + 0.1, 0.5))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if "increase" in names:
        places["increase"] = 1.3 * max(places.values())
        ax.set_xticks([*ticks, places["increase"]], [*(f"{tick:g}" for tick in ticks), "\nincrease"])
    at = rows["lambda"].astype(str).map(places)
    line, rising = styles.of(["fedagrac", "fedagrac_increase"]).values()
    for label, part, style in (
        ("FedaGrac, constant λ", rows["lambda"] != "increase", line.plot),
        ("FedaGrac, λ that increases", rows["lambda"] == "increase", {**rising.plot, "linestyle": "none"}),
    ):
        if part.any():
            figures.mean(ax, at[part], rows[part], spread="bars", label=label, **style)
    groups = rows.groupby(at)["value"]
    lost = groups.size() - groups.count()
    if lost.any():  # a line of text below the lowest bar
        bottom, top = ax.get_ylim()
        ax.set_ylim(bottom - 0.2 * (top - bottom), top)
    for x, diverged, of in zip(lost.index, lost, groups.size(), strict=True):
        if diverged:
            ax.annotate(f"{diverged} of {of}\ndiverged", (x, 0.03), xycoords=("data", "axes fraction"), ha="center")
    wide = 0.12 * (at.max() - at.min())  # half a text on each side
    ax.set_xlim(at.min() - wide, at.max() + wide)
    ax.set(xlabel="calibration rate λ", ylabel="accuracy after the last round (%)")


def schemes(ax: Axes, histories: Histories, cells: pd.DataFrame, smooth: int) -> None:
    """Fig. 3: accuracy over the rounds, a line per scheme, from a tenth of the rounds on: before, curves climb steeply
    and would hide what they do later. smooth: evaluations of a trailing mean."""
    rows = histories.frame[(histories.frame["metric"] == "accuracy") & histories.frame["algorithm"].isin(SCHEMES)]
    # The random initial model is in no trailing mean; its row stays, as the only one of a run that diverged at once.
    trained = rows.assign(value=rows["value"].where(rows["round"] > 0))
    begin = max(1, smooth, rows["round"].max() // 10)
    figures.curves(ax, metrics.smooth(trained, smooth), order=SCHEMES, markers=6, start=begin)
    ax.set_xlabel("round")


def rates(ax: Axes, histories: Histories, cells: pd.DataFrame, limits: tuple[float, float]) -> None:
    """Fig. 4: accuracy over λ and learning rate; a frame around the paper's best pair, rate 0.005 and λ 1 for LR."""
    names = {"lambda": "calibration rate λ", "learning_rate": "learning rate η"}
    categories.heatmap(ax, cells, x="lambda", y="learning_rate", names=names, limits=limits, label="accuracy (%)")
    columns, rows = (sorted(set(cells[name].astype(float))) for name in ("lambda", "learning_rate"))
    if histories.scale == "paper" and set(cells["model"]) == {"lr"} and 1.0 in columns and 0.005 in rows:
        style: Any = {"fill": False, "edgecolor": styles.VERMILLION, "linewidth": 1.8, "zorder": 4, "gid": "printed"}
        corner = columns.index(1.0) - 0.5, rows.index(0.005) - 0.5
        ax.add_patch(Rectangle(corner, 1, 1, label="best pair in the paper (Sec. 6.2)", **style))


def over_time(block: np.ndarray, histories: Histories, cells: pd.DataFrame) -> None:
    """Fig. 5: test accuracy of the algorithms over simulated time and, beside it, over rounds."""
    rows = timed(histories)
    later = rows.loc[rows["round"] > 0, "value"]  # leaves out what the random initial models score
    for ax, x, label in zip(block.flat, ("time", "round"), ("simulated time (s)", "round"), strict=True):
        figures.curves(ax, rows, x=x, order=ORDER)
        ax.set_xlabel(label)
        ax.set_ylim(later.min() - 1, later.max() + 1)


def readings(
    ax: Axes, histories: Histories, cells: pd.DataFrame, names: dict[str, str], levels: tuple[str, ...]
) -> None:
    """Sensitivity: a line of dots per λ, a dot per reading in `names`; `levels`, the algorithms without λ, above."""
    chosen = sorted(set(cells.loc[~cells["algorithm"].isin(levels), "lambda"]))
    rows = cells.assign(line=cells["lambda"].where(~cells["algorithm"].isin(levels), -1.0))
    order = [*levels, *(name for name in names if name in set(rows["algorithm"]))]
    texts = {-1.0: "without λ", **{lam: f"λ = {lam:g}" for lam in chosen}}
    categories.dots(ax, rows, row="line", rows=[-1.0, *chosen], order=order, names=names, texts=texts)
    ax.set_xlabel("accuracy, last ten rounds (%)")
