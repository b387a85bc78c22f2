"""The pictures of DeFedAvg: convergence over virtual seconds and over aggregations, timelines, paces, variants."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduce.papers.defedavg import runs
from reproduce.papers.defedavg.artifacts import NAMES
from reproduce.papers.defedavg.measures import varied
from reproduce.report import figures
from reproduce.report.histories import Histories
from reproduce.report.names import pretty
from reproduce.systems.schedule import ClientJob, Timeline

ROWS = (("train_loss", "training loss"), ("accuracy", "test accuracy (%)"))


def over_time(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Figs. 2-5. Rows: loss, accuracy; columns: data set and distribution."""
    places = _places(histories)
    shown, target = histories.of("clock.least"), histories.of("clock.until.value")
    fig, axes = figures.sheet(2, len(places), sharex="col")
    for column, (dataset, distribution) in enumerate(places):
        frame = histories.frame.assign(_target=target)
        frame = frame[(frame["dataset"] == dataset) & (frame["distribution"] == distribution)]
        frame = frame[frame["time"] <= shown[frame.index]]
        group = runs.GROUPS[distribution]
        order = [*group, *sorted(set(frame["algorithm"]) - set(group))]
        looks = figures.lines([*order[:4], *runs.GROUPS["iid"][:3], *runs.GROUPS["noniid"][:3], *order[4:]])
        lines = {"x": "time", "order": order, "styles": looks, "names": NAMES}
        if _column(axes[:, column], frame, histories, "virtual seconds", lines):
            value = float(frame["_target"].iloc[0])
            axes[1, column].axhline(value, color="#404040", linewidth=0.7, linestyle=(0, (1, 1)), zorder=1)
        axes[0, column].set_title(f"{pretty(dataset, NAMES)}, {pretty(distribution)}")
    _labelled(axes)
    figures.legend(fig)
    return fig


def over_rounds(histories: Histories, cells: pd.DataFrame, by: str) -> Figure:
    """Figs. 6 and 7. Rows: loss, accuracy; columns: data set and distribution; a line per value of the column `by`."""
    places = _places(histories)
    fig, axes = figures.sheet(2, len(places), sharex="col")
    some = varied(histories)
    for column, (dataset, distribution) in enumerate(places):
        frame, name = histories.frame, runs.PROPOSED[distribution]
        frame = frame[(frame["dataset"] == dataset) & (frame["algorithm"] == name)]
        if by == "K":
            frame = frame[frame["n"].isin(some)]
        frame = frame.assign(series=[f"{by} = {v}" for v in frame[by]])
        values = {e.labels[by] for e in histories.experiments if e.labels["dataset"] == dataset}
        lines = {"series": "series", "order": [f"{by} = {v}" for v in sorted(values)]}
        _column(axes[:, column], frame, histories, "aggregations", lines)
        axes[0, column].set_title(f"{pretty(dataset, NAMES)}, {pretty(distribution)}: {pretty(name)}", size=7)
    _labelled(axes)
    figures.legend(fig)
    return fig


def _places(histories: Histories) -> list[tuple[str, str]]:
    """The data sets and distributions of the declared runs."""
    return list(dict.fromkeys((str(e.labels["dataset"]), str(e.labels["distribution"])) for e in histories.experiments))


def _column(axes: Any, frame: pd.DataFrame, histories: Histories, xlabel: str, lines: dict[str, Any]) -> bool:
    """Loss above accuracy; False if there are no results."""
    for ax, (metric, _) in zip(axes, ROWS, strict=True):
        rows = frame[frame["metric"] == metric]
        if rows.empty:
            figures.missing(ax, "; ".join(dict.fromkeys(why for _, why in histories.missing)) or "no results")
            continue
        figures.curves(ax, rows, markers=5, **lines)
        if metric == "train_loss":
            ax.set_ylim(0, min(2.5, 1.05 * float(rows["value"].max())))
        else:
            ax.set_xlabel(xlabel)
    return not frame.empty


def _labelled(axes: Any) -> None:
    for ax, (_, label) in zip(axes[:, 0], ROWS, strict=True):
        if ax.lines:
            ax.set_ylabel(label)


def seconds(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Seconds per aggregation over n, a line per algorithm."""
    rows = cells[cells["metric"] == "mean_seconds_per_aggregation"]
    rows = rows.assign(n=rows["n"].astype(float))
    algorithms = list(dict.fromkeys(rows["algorithm"]))
    looks = figures.lines([a for a in algorithms if a != "defedavg_iid"])
    looks["defedavg_iid"] = figures.Look(figures.SKY, "-", "P")
    order = [a for a in algorithms if not a.startswith("defedavg")] + ["defedavg_iid", "defedavg_niid"]
    datasets, ns = list(dict.fromkeys(rows["dataset"])), sorted(set(rows["n"]))
    fig, axes = figures.sheet(1, len(datasets), sharey=True)
    for ax, dataset in zip(axes[0], datasets, strict=True):
        figures.curves(
            ax, rows[rows["dataset"] == dataset], x="n", order=order, styles=looks, names=NAMES, markers=4
        )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="n", title=pretty(dataset))
        ax.set_xticks(ns, [f"{n:g}" for n in ns])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("seconds per aggregation")
    figures.legend(fig)
    return fig


def timelines(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Fig. 1: who trains when, for three clients of which two are aggregated at a time."""
    fig, axes = figures.sheet(len(runs.EXAMPLES), 1, sharex=True, height=1.05)
    for ax, name in zip(axes[:, 0], runs.EXAMPLES, strict=True):
        drawn = runs.example(name)
        for job in drawn.jobs:
            _bar(ax, job, drawn.horizon)
        for aggregation in drawn.aggregations:
            ax.axvline(aggregation.time, color="#303030", linestyle=(0, (3, 2)), linewidth=0.7, zorder=1)
        _versions(ax, drawn)
        count = len(drawn.aggregations)
        ax.set_title(
            f"{pretty(name, NAMES)}: {count} aggregations, clients idle {100 * drawn.idle:.1f} % of the time",
            loc="left",
            pad=11,
        )
        ax.set(ylim=(-0.55, 2.55), xlim=(0, drawn.horizon))
        ax.set_xticks(range(0, 21, 2))
        ax.set_yticks(range(3), [f"client {i + 1}" for i in range(3)])
        ax.invert_yaxis()
        ax.grid(visible=False)
        ax.tick_params(axis="y", length=0)
    axes[-1, 0].set_xlabel("time (units)")
    return fig


def _bar(ax: Axes, job: ClientJob, horizon: float) -> None:
    """A job with the version it started from; a dot where the server receives its update."""
    end = min(job.end, horizon)
    color = figures.LINES[job.start_version % len(figures.LINES)][0]
    look: dict[str, Any] = {"color": color, "alpha": 0.55, "edgecolor": "white"}
    if not job.uploaded:
        look = {"color": "white", "edgecolor": color, "hatch": "//////"}
    ax.barh(job.client, end - job.start, left=job.start, height=0.62, linewidth=0.6, zorder=2, **look)
    if end - job.start > 0.5:
        white = {"fc": "white", "ec": "none", "pad": 0.8, "alpha": 0.8}
        middle = (job.start + end) / 2
        ax.text(
            middle, job.client, str(job.start_version), ha="center", va="center", fontsize=6.5, zorder=4, bbox=white
        )
    if job.arrival is not None:
        ax.plot(job.arrival, job.client, "o", color="black", markersize=2.8, zorder=5, clip_on=False)


def _versions(ax: Axes, drawn: Timeline) -> None:
    """The version that each aggregation makes, above its line; those of one moment together."""
    made: dict[float, list[str]] = {}
    for aggregation in drawn.aggregations:
        made.setdefault(round(aggregation.time, 9), []).append(str(aggregation.index + 1))
    for time, versions in made.items():
        ax.annotate(
            ", ".join(versions), (time, 1), (0, 1.5), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5, color="#303030",
        )  # fmt: skip


def variants(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Time to the target of every variant, one axes per distribution; beside it the algorithm with the best rates."""
    fig, axes = figures.sheet(1, len(runs.DISTRIBUTIONS), height=3.4)
    for ax, distribution in zip(axes[0], runs.DISTRIBUTIONS, strict=True):
        ax.set_title(pretty(distribution))
        rows = cells[(cells["metric"] == "time_to_target_s") & (cells["distribution"] == distribution)]
        if rows.empty:
            figures.missing(ax, "; ".join(dict.fromkeys(why for _, why in histories.missing)) or "no results")
            continue
        names = sorted(set(rows["algorithm"]), key=_family)
        for place, name in enumerate(names):
            mine = rows[rows["algorithm"] == name]
            base = _family(name)[0]
            look = figures.lines([base])[base]
            values, missed = mine["value"], bool(mine["censored"].any())
            ax.plot([values.min(), values.max()], [place, place], color=look.color, linewidth=1.0)
            ax.plot(values.mean(), place, ">" if missed else "o", color=look.color, markersize=4)
        ax.set_yticks(range(len(names)), [pretty(n, NAMES) for n in names], fontsize=6)
        ax.invert_yaxis()
        ax.set(xscale="log", xlabel="virtual seconds to the target")
    return fig


def _family(name: str) -> tuple[str, int, str]:
    """The algorithm of a variant; the algorithm itself first, its tuned rates second."""
    plain = name.removeprefix("tuned_")
    base = next(a for a in runs.POLICIES if plain.startswith(a))
    return base, 0 if name == base else 1 + (plain == name), name
