"""The pictures of FedACS that are not plain curves, what its curves have beside lines, and captions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reproduce.declare.experiment import Experiment
from reproduce.papers.fedacs import measures, theory
from reproduce.papers.fedacs.choices import ASSIGNED, BESIDE, CHOICES, CROPS, MORE, NETWORK, RATES, SLOWER, TWICE
from reproduce.report import captions, categories, figures, styles
from reproduce.report.histories import Histories
from reproduce.report.names import pretty
from reproduce.report.styles import Style
from reproduce.systems import System

GROUPS = {
    "fedacs": "FedACS", "fedavg": "FedAvg, OS", "ca_fedavg": "CA-FedAvg, FedVARP, FedAU", "fednova": "FedNova",
}  # fmt: skip
"""One algorithm of each group that shares its limit on quadratics, and the group."""
DISTANCE = r"distance $\|X_r - X^*\|$"
CALIBRATED = {False: "common rate 0.002", True: "calibrated rates"}


def settings_of_fig4(histories: Histories) -> str:
    """The caption's settings, of the runs of this scale."""
    e: Any = histories.experiments[0]
    return (
        f"One rate {e.algorithm.lr}, no calibration; {e.clock.rounds:,} rounds from the origin (the paper gives "
        "neither length nor start)."
    )


def log_distance(ax: Axes, rows: pd.DataFrame, low: float = np.inf, high: float = 0.0) -> None:
    """A logarithmic y axis around the values of the rows, from `low` to `high` at least."""
    figures.plain_log(ax, "y")
    ax.set_ylim(min(0.9 * rows["value"].min(), low), max(1.1 * rows["value"].max(), high))


def convergence(axes: np.ndarray, histories: Histories, cells: pd.DataFrame, order: tuple[str, ...]) -> None:
    """Fig. 7: distances over rounds in one system; without calibration above, with it below."""
    frame = histories.frame
    rows = frame[(frame["metric"] == "distance") & (frame["round"] % 10 == 0)]
    rows = measures.calibrated_too(rows, histories)
    system = histories.experiments[0].labels["system"]
    for ax, (calibrated, title) in zip(axes.flat, CALIBRATED.items(), strict=True):
        ax.set_title(f"{system} system, {title}")
        curves = rows[rows["calibrate"] == calibrated]
        figures.curves(ax, curves, order=order)
        figures.plain_log(ax, "y")
        ax.set(ylim=(0.004, 0.8), xlabel="round" if ax is axes.flat[-1] else "", ylabel=DISTANCE)
        limits = {}
        for name, text in GROUPS.items():
            e: Any = histories.declared(system=system, algorithm=name)
            color, limit = styles.known()[name].color, np.linalg.norm(theory.limit(e, calibrated) - e.problem.optimum())
            figures.reference(ax, float(limit), dashes="dashed", color=color)
            limits[text.replace(", ", ",\n")] = float(limit), color
        figures.named(ax, limits)


def clients(histories: Histories, cells: pd.DataFrame, systems: Mapping[str, System], clients: int) -> Figure:
    """Fig. 1: work and links of every client; in a system that changes their ranges and the first round."""
    fig, axes = figures.sheet(2, len(systems), height=1.5, sharex=True, sharey="row")
    at = np.arange(1, clients + 1)
    for column, (name, system) in enumerate(systems.items()):
        axes[0, column].set_title(f"{name} system")
        draws = theory.draws(system, clients)
        for ax, values, color in zip(axes[:, column], draws, (styles.DARK, styles.GREY), strict=True):
            low, high = values.min(0), values.max(0)
            if len(values) > 1:
                ax.bar(at, high - low, bottom=low, color=color, alpha=0.35, width=0.8)
                ax.plot(at, values[0], "o", color=color, markersize=3)
            else:
                ax.bar(at, high, color=color, width=0.8)
            ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("local work\n$T_m$ (steps)")
    axes[1, 0].set_ylabel("success of a\nlink, $1 - q_m$")
    axes[1, 0].set_ylim(0, 1.02)
    for ax in axes[1]:
        ax.set(xlabel="client (number)", xticks=[1, *range(5, clients + 1, 5)])
    return fig


def schematic(
    histories: Histories, cells: pd.DataFrame, paths: tuple[tuple[str, str], ...], sampling: bool = False
) -> Figure:
    """Figs. 2, 3, 5: paths (algorithm, label) in the plane; the arrows are those of the first. sampling: a text says
    how FedACS draws the clients (eq. 15)."""
    fig, axes = figures.sheet(1, 1, width=4.6, height=0.76 * min(4.6, figures.page()))
    ax = axes[0, 0]
    ground(ax, histories.experiments[0], short=figures.page() < 4.6)
    drawn_as = styles.of(algorithm for algorithm, _ in paths)
    for algorithm, label in paths:
        _path(ax, histories, algorithm, label, drawn_as[algorithm].color)
    first, _ = paths[0]
    _pulls(ax, histories.declared(algorithm=first), drawn_as[first].color)
    if sampling:
        steps, success = theory.draws(histories.experiments[0].system, 3)
        p = 1 / (success[0] * steps[0])
        text = f"FedACS draws the clients\nwith p = ({', '.join(f'{q:.3f}' for q in p / p.sum())})"
        ax.text(4.75, 1.3, text, ha="right", va="center", fontsize=6.5, color=drawn_as["fedacs"].color)
    captions.legend(fig)
    return fig


def ground(ax: Axes, e: Any, short: bool = False) -> None:
    """The clients' minimisers with what is unequal about them, the start and the true optimum; `short`: small."""
    size = styles.SMALL if short else styles.TEXT
    steps, success = theory.draws(e.system, 3)
    for m, point in enumerate(e.problem.minima()):
        ax.plot(*point, marker="s", color=styles.GREY, markersize=5, linestyle="none", zorder=3)
        client, gap = ("", "\n") if short else (f"client {m + 1}: ", ", ")
        text = f"{client}T = {steps[0][m]}{gap}1 − q = {success[0][m]:.2g}"
        ha, va, above = (("left", "top", -5), ("right", "top", -5), ("left", "bottom", 5))[m]
        place: Any = {"ha": ha, "va": va, "textcoords": "offset points", "xytext": (0, above)}
        ax.annotate(text, tuple(point), fontsize=size, color="#404040", **place)
    start = np.array(e.problem.start)
    ax.plot(*start, marker="o", color="white", markeredgecolor="black", markersize=4, linestyle="none", zorder=4)
    ax.annotate("start", tuple(start), (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=size)
    star: Any = {"marker": "*", "color": "black", "markersize": 6 if short else 10, "linestyle": "none", "zorder": 7}
    ax.plot(*e.problem.optimum(), label="optimum $X^*$", **star)
    ax.set(xlim=(-0.45, 4.85), ylim=(-0.55, 3.55), xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def _path(ax: Axes, histories: Histories, algorithm: str, label: str, color: str, shown: int = 400) -> None:
    """The path of seed 0 in the first rounds, its expectation, and where both end."""
    e: Any = histories.declared(algorithm=algorithm)
    x, rounds = next((x, rounds) for other, x, rounds, _ in measures.traces(histories) if other is e)
    points = np.vstack([e.problem.start, x[0][rounds <= shown]])
    ax.plot(*points.T, color=color, linewidth=0.6, alpha=0.55, zorder=2)
    mean = theory.expected_path(*theory.step_of(e), np.array(e.problem.start), shown)
    ax.plot(*mean.T, color=color, linewidth=1.5, zorder=3, label=label)
    end: Any = {"marker": "o", "color": color, "markeredgecolor": "white", "markersize": 6.5, "linestyle": "none"}
    ax.plot(*theory.limit(e), zorder=6, **end)


def _pulls(ax: Axes, e: Experiment, color: str) -> None:
    """Arrows from the end point to the clients, as long as their weight in the surrogate objective."""
    problem: Any = e.problem
    weights, _ = theory.limit_to_zero(e)
    end = theory.limit(e)
    arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 1.1, "shrinkA": 3}
    for weight, point in zip(weights, problem.minima(), strict=True):
        way = (point - end) / np.linalg.norm(point - end)
        ax.annotate("", tuple(end + 2.2 * weight * way), tuple(end), arrowprops=arrow)
        tip = end + 2.2 * weight * way
        beyond = tip + 0.17 * way
        if np.linalg.norm(beyond - point) < 0.3:  # would cover the client, or what is written there
            beyond = tip + 0.3 * np.array([way[1], -way[0]])
        ax.annotate(f"{weight:.2f}", tuple(beyond), fontsize=6.5, color=color, ha="center", va="center",
                    bbox={"fc": "white", "ec": "none", "pad": 0.4, "alpha": 0.8}, zorder=7)  # fmt: skip


def points_in_the_plane(histories: Histories, cells: pd.DataFrame, algorithms: tuple[str, ...]) -> Figure:
    """Fig. 8: where algorithms that correct nothing, one heterogeneity or both end. Left: the clients and the part that
    is on the right; right: closed forms, and simulated runs as small marks."""
    fig, axes = figures.sheet(1, 2, height=3.0, least=2.7)
    left, right = axes[0]
    ground(left, histories.experiments[0], short=True)
    left.set(xlim=(-0.7, 5.0), ylim=(-0.9, 3.9))
    low, size = np.array([0.82, 0.7]), np.array([1.2, 1.16])
    left.add_patch(Rectangle(tuple(low), *size, fill=False, edgecolor=styles.DARK, linewidth=0.7))
    right.set(xlim=(low[0], low[0] + size[0]), ylim=(low[1], low[1] + size[1]), xlabel="$x_1$", ylabel="$x_2$")
    drawn_as = styles.of(algorithms)
    for e, x, rounds, _ in measures.traces(histories):
        if (name := str(e.labels["algorithm"])) in algorithms:
            mark: dict[str, Any] = {"markersize": 4.4, "markeredgecolor": "white", "markeredgewidth": 0.3}
            right.plot(
                *measures.second_half(x, rounds).T, marker=drawn_as[name].marker, color=drawn_as[name].color,
                alpha=0.85, linestyle="none", zorder=4, label=pretty(name), **mark,
            )  # fmt: skip
    _ends(right, histories)
    captions.legend(fig)
    return fig


def _ends(ax: Axes, histories: Histories) -> None:
    """The four limits as the rate goes to zero, and arrows between them for what each heterogeneity does."""
    ends = {
        "fedacs": ("$X^*$: no bias", (-0.03, -0.1)),
        "fednova": ("$\\tilde{X}_1$: links", (-0.03, -0.1)),
        "ca_fedavg": ("$\\tilde{X}_2$: work", (0.05, 0.05)),
        "fedavg": ("$\\tilde{X}_3$: both", (-0.04, 0.07)),
    }
    points: Any = {n: theory.limit_to_zero(histories.declared(algorithm=n))[1] for n in ends}
    for start, end, text, turn in (
        ("fedacs", "fednova", "unequal links", (0, 7)), ("ca_fedavg", "fedavg", "unequal links", (0, -10)),
        ("fedacs", "ca_fedavg", "unequal\nwork", (24, 0)), ("fednova", "fedavg", "unequal\nwork", (24, 0)),
    ):  # fmt: skip
        color = styles.DARK if "links" in text else styles.GREY
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 5, "shrinkB": 5}
        ax.annotate("", points[end], points[start], arrowprops=style, zorder=3)
        middle = (points[start] + points[end]) / 2
        ax.annotate(text, middle, turn, textcoords="offset points", ha="center", va="center", fontsize=6, color=color)
    for name, (text, (dx, dy)) in ends.items():
        ax.plot(*points[name], marker="o", markerfacecolor="none", markeredgecolor="black", markersize=9, zorder=5)
        ax.annotate(text, points[name] + [dx, dy], ha="left" if dx > 0 else "right", va="center", fontsize=6.8)


def choices(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Sensitivity: a line of dots per choice that is told apart from the default, an axes per data set that has some;
    a remark names the others. Where none has any, the defaults alone."""
    questions = {f"{c.question}: {c.answer}": c.question for c in (*CHOICES, *MORE, *SLOWER, *TWICE, *NETWORK, *CROPS)}
    rows = cells.assign(choice=cells["question"] + ": " + cells["answer"])
    sets, alike = {}, []
    for name, values in rows.groupby("dataset", sort=False):
        e: Any = histories.declared(dataset=name)
        kind = f"{pretty(name)}, {'LR' if type(e.problem.model).__name__ == 'Softmax' else 'CNN'}"
        run = [c for c in questions if c in set(values["choice"])]
        distinct = [c for c in run if categories.differ(values, "choice", "algorithm", c, run[0])]
        if distinct:
            sets[kind] = values, {c: questions[c] for c in distinct}
        alike += [f"{kind}: {', '.join(c for c in run if c not in distinct)}."] * (run != distinct)
    sets = {kind: each for kind, each in sets.items() if len(each[1]) > 1} or sets
    fig, axes = figures.stack([0.175 * len(lines) + 0.6 for _, lines in sets.values()] or [0.2])
    if not sets:
        axes[0].set_axis_off()
        captions.remark(
            fig, "Of the data sets nothing was run; the readings of the decaying rate of Fig. 4 are in the cells."
        )
    for ax, (kind, (values, lines)) in zip(axes, sets.items(), strict=False):
        _dots(ax, values, lines)
        counts = sorted({*values.groupby("choice")["seed"].nunique()})
        ax.set_title(f"{kind}, {' or '.join(map(str, counts))} seeds", loc="right")
    if alike:
        captions.remark(fig, f"Not told apart from the default. {' '.join(alike)}")
    captions.legend(fig)
    return fig


def _dots(ax: Axes, rows: pd.DataFrame, questions: Mapping[str, str]) -> None:
    """The choices of one data set, and a thin line at what each algorithm has by default."""
    texts = {c: c.removeprefix("default: ").replace(" x", " ×") for c in questions}
    order = (*GROUPS, *BESIDE)
    categories.dots(ax, rows, row="choice", rows=list(questions), order=order, texts=texts, groups=questions)
    ax.set_xlabel("final accuracy (%)")
    means = rows[rows["choice"] == next(iter(questions))].groupby("algorithm")["value"].mean()
    for name, style in styles.of(order).items():
        if name in means:
            ax.axvline(means[name], color=style.color, linewidth=0.6, alpha=0.6, zorder=1)


TRADED = {
    "final_accuracy": "All classes", "slow_class_accuracy": "Classes of slow clients",
    "fast_class_accuracy": "The other classes",
}  # fmt: skip
ASSIGNED_LOOKS = (
    Style(styles.BLUE, "solid", "o"), Style(styles.VERMILLION, "dashed", "s"), Style(styles.BLACK, "dotted", "^"),
)  # fmt: skip


def traded(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Leads of FedACS over FedAvg against the rate: on all classes, on those of slow clients, on the others."""
    fig, axes = figures.sheet(columns=3, height=2.2, sharey=True)
    values = cells.pivot(index=["metric", "slow_own", "rate", "seed"], columns="algorithm", values="value")
    leads = (values["fedacs"] - values["fedavg"]).rename("value").reset_index(["metric", "slow_own", "seed"])
    for ax, (metric, title) in zip(axes.flat, TRADED.items(), strict=True):
        figures.plain_log(ax, "x")
        part = leads[leads["metric"] == metric].assign(metric="lead")
        for k, (slow, style) in enumerate(zip(ASSIGNED, ASSIGNED_LOOKS, strict=True)):
            if len(selected := part[part["slow_own"] == slow]):
                beside = selected.index * 1.08 ** (k - 1)  # lest bars hide each other
                figures.mean(ax, beside, selected, spread="bars", label=f"slow own {slow}", **style.plot)
        figures.reference(ax, 0)
        ax.set_xticks(RATES, [f"{rate:g}" for rate in RATES])
        ax.set_xticks([], minor=True)
        ax.set(title=title, xlabel="rate, times the default")
    axes[0, 0].set_ylabel("FedACS minus FedAvg (points)")
    captions.legend(fig)
    return fig


def surrogates(histories: Histories, cells: pd.DataFrame, system: System) -> Figure:
    """The weights of the surrogate objectives, and how far simulated aggregates are from those of all clients."""
    fig, axes = figures.sheet(1, 2, height=2.3, least=2.7)
    left, right = axes[0]
    steps, success = (values[0] for values in theory.draws(system, 20))
    for name, style in styles.of(GROUPS).items():
        omega = theory.surrogate(name, np.full(20, 1 / 20), success, steps.astype(float))
        left.plot(np.arange(1, 21), omega, label=GROUPS[name], markevery=3, **style.plot)
    left.set(xlabel="client (number; slow and badly connected first)", ylim=(0, None))
    left.set_ylabel("weight in the surrogate\nobjective (share)")
    left.set_xticks([1, *range(5, 21, 5)])
    rows = cells[cells["metric"] == "expected_update_deviation"]
    for i, scheme in enumerate(theory.SIMULATED):
        values = rows.loc[rows["algorithm"] == f"fedavg_{scheme}", "value"]
        right.plot(np.full(len(values), i), values, "o", color=styles.DARK, alpha=0.6)
    figures.reference(right, 0.02, dashes="dashed")
    right.annotate("tolerance of the claim", (2.4, 0.0204), ha="right", fontsize=6.5, color=styles.DARK)
    right.set_xticks(range(3), [f"{theory.SCHEMES[s]}\nsampling" for s in theory.SIMULATED])
    right.set(ylabel="relative deviation from\nfull participation", xlim=(-0.5, 2.5), ylim=(0, 0.023))
    captions.legend(fig)
    return fig
