"""The pictures of FedACS that are not plain curves, what its curves have beside lines, and captions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullLocator

from reproduce.experiment import Experiment
from reproduce.papers.fedacs import closed_form, measures
from reproduce.papers.fedacs.theory import SCHEMES, SIMULATED
from reproduce.report import figures
from reproduce.report.histories import Histories
from reproduce.report.names import pretty
from reproduce.systems import System

GROUPS = ("fedacs", "fedavg", "ca_fedavg", "fednova")
"""One algorithm of each group that shares its limit on quadratics."""
DISTANCE = r"$\|X_r - X^*\|$"


# ---- accuracy curves (Figs. 6, 9, 10)


def lines_and_bars(histories: Histories) -> str:
    """What lines and bars are; one seed has neither mean nor bar."""
    if histories.seeds_each[1] == 1:
        return "Lines: test accuracy, trailing mean over 10 rounds."
    return (
        "Lines: mean over seeds of test accuracy, trailing mean over 10 rounds; bars: sample standard deviation over "
        "seeds of the raw accuracy."
    )


def deviations(ax: Axes, rows: pd.DataFrame, order: tuple[str, ...]) -> None:
    """Ten bars per curve, shifted against each other: the standard deviation over seeds of the raw accuracy."""
    looks = figures.lines(order)
    step = max(1, int(rows["round"].max()) // 10)
    for i, name in enumerate(order):
        raw = rows[rows["algorithm"] == name].pivot_table(index="round", columns="seed", values="value", dropna=False)
        if raw.shape[1] < 2:
            continue
        at = raw[(raw.index % step == i * step // len(order)) & (raw.index > 0)]
        ax.errorbar(
            at.index, at.mean(axis=1), yerr=at.std(axis=1), zorder=2, color=looks[name].color, linewidth=0.7,
            capsize=1.4, alpha=0.7, linestyle="none",
        )  # fmt: skip


# ---- quadratics (Figs. 4 and 7)


def settings_of_fig4(histories: Histories) -> str:
    """The caption's settings, of the runs of this scale."""
    e: Any = histories.experiments[0]
    return (
        f"Lines: mean over seeds; bands: least to greatest. One rate {e.algorithm.lr}, no calibration; "
        f"{e.clock.rounds:,} rounds from the origin (the paper gives neither length nor start)."
    )


def log_distance(ax: Axes, rows: pd.DataFrame, low: float = np.inf, high: float = 0.0) -> None:
    """A logarithmic y axis around the values of the rows, from `low` to `high` at least."""
    log_axis(ax, min(0.9 * rows["value"].min(), low), max(1.1 * rows["value"].max(), high))


def log_axis(ax: Axes, low: float, high: float) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5 times powers of ten."""
    ax.set(yscale="log", ylim=(low, high))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:g}")


def convergence(histories: Histories, cells: pd.DataFrame, order: tuple[str, ...]) -> Figure:
    """Fig. 7: distances over rounds; without calibration above, with it below, a column per system."""
    frame = histories.frame
    rows = frame[(frame["metric"] == "distance") & (frame["round"] % 10 == 0)]
    rows = measures.calibrated_too(rows, histories)
    means = rows.groupby(["system", "calibrate", "algorithm", "round"])["value"].mean()
    systems = list(dict.fromkeys(e.labels["system"] for e in histories.experiments))
    fig, axes = figures.sheet(2, len(systems), sharey=True, sharex=True)
    looks = figures.lines(order)
    for column, system in enumerate(systems):
        for row, (calibrated, title) in enumerate({False: "common rate 0.002", True: "calibrated rates"}.items()):
            ax = axes[row, column]
            ax.set_title(f"{system} system, {title}")
            here = rows[(rows["system"] == system) & (rows["calibrate"] == calibrated)]
            if here.empty:
                figures.missing(ax, histories.reason(f"fig7-{system}") or "no results")
                continue
            figures.curves(ax, here, order=order, styles=looks, band=None)
            log_axis(ax, 0.65 * means.min(), 1.1 * means.max())
            for name in GROUPS:
                e = measures.declared(histories, system=system, algorithm=name)
                _limit(ax, e, calibrated, looks[name].color)
    for ax in axes[-1]:
        ax.set_xlabel("round")
    for ax in axes[:, 0]:
        ax.set_ylabel(DISTANCE)
    figures.legend(fig)
    return fig


def _limit(ax: Axes, e: Any, calibrated: bool, color: str) -> None:
    """Dashes at the distance of the closed-form limit; one below the axis is written down instead."""
    distance = float(np.linalg.norm(closed_form.limit(e, calibrated) - e.problem.optimum()))
    if distance > ax.get_ylim()[0]:
        ax.axhline(distance, color=color, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    else:
        text = f"limit of {pretty(e.labels['algorithm'])}: {distance:.2g} ↓"
        ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", color=color, fontsize=6.5)


# ---- systems (Fig. 1) and the plane (Figs. 2, 3, 5, 8)


def clients(histories: Histories, cells: pd.DataFrame, systems: Mapping[str, System], clients: int) -> Figure:
    """Fig. 1: work and links of every client; in a system that changes their ranges and the first round."""
    fig, axes = figures.sheet(2, len(systems), height=1.5, sharex=True, sharey="row")
    at = np.arange(clients)
    for column, (name, system) in enumerate(systems.items()):
        axes[0, column].set_title(f"{name} system")
        draws = closed_form.draws(system, clients)
        for ax, values, color in zip(axes[:, column], draws, (figures.BLUE, figures.GREEN), strict=True):
            low, high = values.min(0), values.max(0)
            if len(values) > 1:
                ax.bar(at, high - low, bottom=low, color=color, alpha=0.35, width=0.8)
                ax.plot(at, values[0], "o", color=color, markersize=3)
            else:
                ax.bar(at, high, color=color, width=0.8)
            ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("local work $T_m$")
    axes[1, 0].set_ylabel("success $1 - q_m$")
    axes[1, 0].set_ylim(0, 1.02)
    for ax in axes[1]:
        ax.set(xlabel="client", xticks=range(0, clients, 5))
    return fig


def schematic(
    histories: Histories, cells: pd.DataFrame, paths: tuple[tuple[str, str, str], ...], sampling: bool = False
) -> Figure:
    """Figs. 2, 3, 5: paths (algorithm, label, colour) in the plane; the arrows are those of the first. sampling: the
    title says how FedACS draws the clients (eq. 15)."""
    fig, axes = figures.sheet(1, 1, width=4.6, height=3.5)
    ax = axes[0, 0]
    ground(ax, histories.experiments[0])
    for algorithm, label, color in paths:
        _path(ax, histories, algorithm, label, color)
    first, _, color = paths[0]
    _pulls(ax, measures.declared(histories, algorithm=first), color)
    if sampling:
        steps, success = closed_form.draws(histories.experiments[0].system, 3)
        p = 1 / (success[0] * steps[0])
        ax.set_title(f"FedACS draws the clients with p = ({', '.join(f'{q:.3f}' for q in p / p.sum())})")
    figures.legend(fig)
    return fig


def ground(ax: Axes, e: Any, short: bool = False) -> None:
    """The clients' minimisers with what is unequal about them, the start and the true optimum; `short`: small."""
    size = 5.5 if short else 6.5
    steps, success = closed_form.draws(e.system, 3)
    for m, point in enumerate(e.problem.minima()):
        ax.plot(*point, marker="s", color="#808080", markersize=5, linestyle="none", zorder=3)
        client, gap = ("", "\n") if short else (f"client {m + 1}: ", ", ")
        text = f"{client}T = {steps[0][m]}{gap}1 − q = {success[0][m]:.2g}"
        ha, va, above = (("left", "top", -5), ("right", "top", -5), ("left", "bottom", 5))[m]
        place: Any = {"ha": ha, "va": va, "textcoords": "offset points", "xytext": (0, above)}
        ax.annotate(text, tuple(point), fontsize=size, color="#404040", **place)
    start = np.array(e.problem.start)
    ax.plot(*start, marker="o", color="white", markeredgecolor="black", markersize=4, linestyle="none", zorder=4)
    ax.annotate("start", start + np.array([-0.12, 0.0]), ha="right", va="center", fontsize=size)
    star: Any = {"marker": "*", "color": "black", "markersize": 6 if short else 10, "linestyle": "none", "zorder": 5}
    ax.plot(*e.problem.optimum(), label="optimum $X^*$", **star)
    ax.set(xlim=(-0.45, 4.85), ylim=(-0.55, 3.55), xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def _path(ax: Axes, histories: Histories, algorithm: str, label: str, color: str, shown: int = 400) -> None:
    """The path of seed 0 in the first rounds, its expectation, and where both end."""
    e: Any = measures.declared(histories, algorithm=algorithm)
    x, rounds = next((x, rounds) for _, names, x, rounds, _ in measures.traces(histories) if names == dict(e.labels))
    drawn = np.vstack([e.problem.start, x[0][rounds <= shown]])
    ax.plot(*drawn.T, color=color, linewidth=0.6, alpha=0.55, zorder=2)
    mean = closed_form.expected_path(*closed_form.step_of(e), np.array(e.problem.start), shown)
    ax.plot(*mean.T, color=color, linewidth=1.5, zorder=3, label=label)
    end: Any = {"marker": "o", "color": color, "markeredgecolor": "white", "markersize": 6.5, "linestyle": "none"}
    ax.plot(*closed_form.limit(e), zorder=6, **end)


def _pulls(ax: Axes, e: Experiment, color: str) -> None:
    """Arrows from the end point to the clients, as long as their weight in the surrogate objective."""
    problem: Any = e.problem
    weights, _ = closed_form.limit_to_zero(e)
    end = closed_form.limit(e)
    arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 1.1, "shrinkA": 3}
    for weight, point in zip(weights, problem.minima(), strict=True):
        to = tuple(end + (point - end) / np.linalg.norm(point - end) * 2.2 * weight)
        ax.annotate("", to, tuple(end), arrowprops=arrow)
        ax.annotate(f"{weight:.2f}", to, fontsize=6.5, color=color, ha="center", va="center",
                    bbox={"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.8})  # fmt: skip


def points_in_the_plane(histories: Histories, cells: pd.DataFrame, algorithms: tuple[str, ...]) -> Figure:
    """Fig. 8: where algorithms that correct nothing, one heterogeneity or both end; small marks: simulated runs."""
    fig, axes = figures.sheet(1, 1, width=5.2, height=3.9)
    ax = axes[0, 0]
    ax.set(xlim=(0.55, 2.45), ylim=(0.6, 2.0), xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    inset = ax.inset_axes((0.64, 0.31, 0.355, 0.48))
    ground(inset, histories.experiments[0], short=True)
    inset.set(xticks=[], yticks=[], xlabel="", ylabel="", xlim=(-0.6, 5.0), ylim=(-1.4, 4.2))
    inset.spines[:].set(visible=True, color="#b0b0b0")
    inset.grid(visible=False)
    inset.add_patch(Rectangle((0.55, 0.6), 1.9, 1.4, fill=False, edgecolor="#404040", linewidth=0.6))
    looks = figures.lines(algorithms)
    for _, names, x, rounds, _ in measures.traces(histories):
        if (name := names["algorithm"]) in algorithms:
            ax.plot(
                *measures.second_half(x, rounds).T, marker=looks[name].marker, color=looks[name].color, markersize=3.2,
                markeredgewidth=0, alpha=0.75, linestyle="none", zorder=4, label=pretty(name),
            )  # fmt: skip
    _ends(ax, histories)
    figures.legend(fig)
    return fig


def _ends(ax: Axes, histories: Histories) -> None:
    """The four limits as the rate goes to zero, and arrows between them for what each heterogeneity does."""
    ends = {
        "fedacs": ("$X^*$: no bias\nFedACS", (0.12, -0.06)),
        "fednova": ("$\\tilde{X}_1$: links\nFedNova", (-0.09, -0.05)),
        "ca_fedavg": ("$\\tilde{X}_2$: work\nCA-FedAvg, FedAU, FedVARP", (0.06, 0.11)),
        "fedavg": ("$\\tilde{X}_3$: both\nFedAvg, OS", (-0.09, 0.03)),
    }
    points: Any = {n: closed_form.limit_to_zero(measures.declared(histories, algorithm=n))[1] for n in ends}
    for start, end, color in (
        ("fedacs", "fednova", "black"), ("ca_fedavg", "fedavg", "black"),
        ("fedacs", "ca_fedavg", "#909090"), ("fednova", "fedavg", "#909090"),
    ):  # fmt: skip
        look = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 5, "shrinkB": 5}
        ax.annotate("", points[end], points[start], arrowprops=look, zorder=3)
    for name, (text, (dx, dy)) in ends.items():
        ax.plot(*points[name], marker="o", markerfacecolor="none", markeredgecolor="black", markersize=9, zorder=5)
        ax.annotate(text, points[name] + [dx, dy], ha="left" if dx > 0 else "right", va="center", fontsize=6.8)


# ---- what the paper does not have


def choices(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Sensitivity: an axes of dots per data set, and the curves of the two readings of a decaying rate."""
    data: dict[str, Any] = {}
    for e in histories.experiments:
        data.setdefault(str(e.labels["dataset"]), e.problem)
    del data["quadratic"]
    fig, axes = figures.sheet(1, len(data) + 1, height=4.0)
    for ax, (dataset, problem) in zip(axes[0], data.items(), strict=False):
        kind = "LR" if type(problem.model).__name__ == "Softmax" else "CNN"
        rows = cells[cells["dataset"] == dataset]
        ax.set_title(f"{pretty(dataset)}, {kind}, {rows['seed'].nunique()} seeds")
        if rows.empty:
            panel = f"sensitivity-{dataset.replace('_', '-')}"
            figures.missing(ax, histories.reason(panel) or "no results")
        else:
            _dots(ax, rows, histories, label=ax is axes[0, 0])
    _decays(axes[0, -1], histories)
    figures.legend(fig)
    return fig


def _dots(ax: Axes, rows: pd.DataFrame, histories: Histories, label: bool) -> None:
    """A line of the plot per choice, a dot per algorithm with the range of its seeds."""
    looks = figures.lines(GROUPS)
    asked = [e.labels for e in histories.experiments if e.labels["dataset"] != "quadratic"]
    choices = list(dict.fromkeys((str(labels["question"]), str(labels["answer"])) for labels in asked))
    for name, off in zip(GROUPS, (0.27, 0.09, -0.09, -0.27), strict=True):
        groups = rows[rows["algorithm"] == name].groupby(["question", "answer"], sort=False)["value"]
        if not groups.ngroups:
            continue
        mean, low, high = (groups.agg(how) for how in ("mean", "min", "max"))
        at = [off - choices.index(choice) for choice in mean.index]
        look = looks[name]
        ax.errorbar(
            mean, at, xerr=[mean - low, high - mean], label=pretty(name), color=look.color, marker=look.marker,
            linestyle="none", markersize=3.4, elinewidth=0.7,
        )  # fmt: skip
        if choices[0] in mean.index:
            ax.axvline(mean[choices[0]], color=look.color, linewidth=0.5, alpha=0.5, zorder=1)
    texts = [f"{question}: {answer}".removeprefix("default: ") if label else "" for question, answer in choices]
    ax.set_yticks([-i for i in range(len(choices))], texts)
    ax.set(xlabel="final accuracy (%)", ylim=(-len(choices) + 0.4, 0.6))
    for i in range(1, len(choices)):
        if choices[i][0] != choices[i - 1][0]:
            ax.axhline(0.5 - i, color="#c0c0c0", linewidth=0.6)
    ax.grid(visible=False, axis="y")


def _decays(ax: Axes, histories: Histories) -> None:
    rows = histories.frame[(histories.frame["metric"] == "distance") & (histories.frame["round"] % 10 == 0)]
    ax.set_title(f"Fig. 4, decay, {rows['seed'].nunique()} seeds")
    if rows.empty:
        figures.missing(ax, histories.reason("sensitivity-decay") or "no results")
        return
    toys = [e.labels for e in histories.experiments if e.labels["dataset"] == "quadratic"]
    names = {str(labels["algorithm"]): str(labels["answer"]) for labels in toys}
    looks = dict(zip(names, figures.lines(["fedavg", "fedau", "os"]).values(), strict=True))
    figures.curves(ax, rows, order=tuple(names), styles=looks, names=names)
    log_distance(ax, rows)
    ax.set(xlabel="round", ylabel=DISTANCE)


def theory(histories: Histories, cells: pd.DataFrame, system: System) -> Figure:
    """The weights of the surrogate objectives, and how far simulated aggregates are from those of all clients."""
    fig, axes = figures.sheet(1, 2, height=2.3)
    looks = figures.lines(GROUPS)
    left, right = axes[0]
    steps, success = (values[0] for values in closed_form.draws(system, 20))
    for name in GROUPS:
        omega = closed_form.surrogate(name, np.full(20, 1 / 20), success, steps.astype(float))
        left.plot(np.arange(20), omega, label=pretty(name), markevery=3, **looks[name].plot)
    left.set(
        xlabel="client (slow and badly connected first)", ylabel="weight in the surrogate objective", ylim=(0, None)
    )
    left.set_xticks(range(0, 20, 5))
    rows = cells[cells["metric"] == "expected_update_deviation"]
    for i, scheme in enumerate(SIMULATED):
        values = rows.loc[rows["algorithm"] == f"fedavg_{scheme}", "value"]
        right.plot(np.full(len(values), i), values, "o", color="#404040", alpha=0.6)
    right.axhline(0.02, color="#808080", linestyle="--", linewidth=0.8)
    right.annotate("tolerance of the claim", (2.4, 0.0204), ha="right", fontsize=6.5, color="#505050")
    right.set_xticks(range(3), [f"{SCHEMES[s]} sampling" for s in SIMULATED])
    right.set(ylabel="deviation from full participation", xlim=(-0.5, 2.5), ylim=(0, 0.023))
    figures.legend(fig)
    return fig
