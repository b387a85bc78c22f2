"""The pictures of DeFedAvg: convergence over virtual seconds and over aggregations, timelines, paces, variants."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduce.papers.defedavg import runs
from reproduce.papers.defedavg.choices import TEXTS
from reproduce.papers.defedavg.settings import EXAMPLES
from reproduce.report import captions, categories, figures, styles
from reproduce.report.histories import Histories
from reproduce.report.names import pretty
from reproduce.systems.policies import POLICIES
from reproduce.systems.schedule import ClientJob, Timeline

ROWS = (("train_loss", "training loss"), ("accuracy", "test accuracy (%)"))


def over_time(axes: np.ndarray, histories: Histories, cells: pd.DataFrame, begin: float) -> list[dict[str, Any] | None]:
    """Figs. 2-5: loss and accuracy over virtual seconds from `begin` on; the paper's times belong to the accuracy.

    The axis is logarithmic: algorithms differ by factors of time, and on a linear one the fastest two are a corner.
    """
    frame = histories.frame
    group = runs.GROUPS[str(histories.experiments[0].labels["distribution"])]
    order = [*group, *sorted(set(frame["algorithm"]) - set(group))]
    figures.plain_log(axes[1, 0], "x")  # the loss above shares it
    _column(axes, frame, "virtual seconds", {"x": "time", "order": order, "start": begin})
    figures.reference(axes[1, 0], float(histories.of("clock.until.value").iloc[0]), "target")
    return [None, {}]


def over_rounds(axes: np.ndarray, histories: Histories, cells: pd.DataFrame, by: str) -> None:
    """Figs. 6 and 7: loss and accuracy over aggregations, a line per value of the column `by`."""
    distribution = str(histories.experiments[0].labels["distribution"])
    frame = histories.frame[histories.frame["algorithm"] == runs.PROPOSED[distribution]]
    values = sorted({e.labels[by] for e in histories.experiments})
    names = {str(v): f"{by} = {v}" for v in values}
    lines = {"series": by, "order": values, "styles": styles.ordered(values), "names": names}
    _column(axes, frame, "aggregations", lines)


def _column(axes: np.ndarray, frame: pd.DataFrame, xlabel: str, lines: dict[str, Any]) -> None:
    """Loss above accuracy."""
    for ax, (metric, ylabel) in zip(axes[:, 0], ROWS, strict=True):
        rows = frame[frame["metric"] == metric]
        figures.curves(ax, rows, markers=5, **lines)
        ax.set_ylabel(ylabel)
    axes[0, 0].set_ylim(0, min(2.5, 1.05 * float(frame.loc[frame["metric"] == ROWS[0][0], "value"].max())))
    axes[1, 0].set_xlabel(xlabel)


def seconds_per_aggregation(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Draws virtual seconds per aggregation over n, the participants of an aggregation. One axes per data set, one line
    per algorithm, one legend below. cells: the per-seed values of the figure."""
    rows = cells[cells["metric"] == "mean_seconds_per_aggregation"]
    rows = rows.assign(n=rows["n"].astype(float))
    order = [*dict.fromkeys(rows["algorithm"])]
    datasets, ns = list(dict.fromkeys(rows["dataset"])), sorted(set(rows["n"]))
    fig, axes = figures.sheet(1, len(datasets), sharey=True, height=2.4)
    for ax, dataset in zip(axes[0], datasets, strict=True):
        selected = rows[rows["dataset"] == dataset]
        figures.curves(ax, selected, x="n", order=order, markers=4, spread="band")
        ax.set(xscale="log", yscale="log", xlabel="participants n", title=pretty(dataset))
        ax.set_xticks(ns, [f"{n:g}" for n in ns])
        ax.minorticks_off()
        ax.set_yticks([0.03, 0.1, 0.3, 1, 3, 10], ["0.03", "0.1", "0.3", "1", "3", "10"])
    axes[0, 0].set_ylabel("virtual seconds per aggregation")
    captions.legend(fig)
    return fig


def timelines(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Fig. 1: who trains when, for three clients of which two are aggregated at a time."""
    fig, axes = figures.sheet(len(EXAMPLES), 1, sharex=True, height=1.05)
    shades = styles.ramp(max(job.start_version for name in EXAMPLES for job in runs.example(name).jobs) + 1)
    for ax, name in zip(axes[:, 0], EXAMPLES, strict=True):
        timeline = runs.example(name)
        for job in timeline.jobs:
            _bar(ax, job, timeline.horizon, shades[job.start_version])
        for aggregation in timeline.aggregations:
            ax.axvline(aggregation.time, color="#303030", linestyle=(0, (3, 2)), linewidth=0.7, zorder=1)
        _versions(ax, timeline)
        count = len(timeline.aggregations)
        ax.set_title(f"{pretty(name)}: {count} aggregations, {100 * timeline.idle:.1f} % idle", loc="left", pad=11)
        ax.set(ylim=(-0.55, 2.55), xlim=(0, timeline.horizon))
        ax.set_xticks(range(0, 21, 2))
        ax.set_yticks(range(3), [f"client {i + 1}" for i in range(3)])
        ax.invert_yaxis()
        ax.grid(visible=False)
        ax.tick_params(axis="y", length=0)
    axes[-1, 0].set_xlabel("time (units)")
    return fig


def _bar(ax: Axes, job: ClientJob, horizon: float, color: str) -> None:
    """A job with the version it started from; a dot where the server receives its update."""
    end = min(job.end, horizon)
    style: dict[str, Any] = {"color": color, "alpha": 0.75, "edgecolor": "white"}
    if not job.uploaded:
        style = {"color": "white", "edgecolor": color, "hatch": "//////"}
    ax.barh(job.client, end - job.start, left=job.start, height=0.62, linewidth=0.6, zorder=2, **style)
    if end - job.start > 0.5:
        white = {"fc": "white", "ec": "none", "pad": 0.8, "alpha": 0.8}
        middle = (job.start + end) / 2
        ax.text(
            middle, job.client, str(job.start_version), ha="center", va="center", fontsize=6.5, zorder=4, bbox=white
        )
    if job.arrival is not None:
        ax.plot(job.arrival, job.client, "o", color="black", markersize=2.8, zorder=5, clip_on=False)


def _versions(ax: Axes, timeline: Timeline) -> None:
    """The version that each aggregation makes, above its line; those of one moment together."""
    by_time: dict[float, list[str]] = {}
    for aggregation in timeline.aggregations:
        by_time.setdefault(round(aggregation.time, 9), []).append(str(aggregation.index + 1))
    for time, versions in by_time.items():
        ax.annotate(
            ", ".join(versions), (time, 1), (0, 1.5), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5, color="#303030",
        )  # fmt: skip


def choices(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Time to the target of every variant of one distribution; beside it the algorithm with the best rates."""
    rows = cells[cells["metric"] == "time_to_target_s"]
    names = sorted(set(rows["algorithm"]), key=_family)
    families = {name: _family(name)[0] for name in names}
    rows = rows.assign(base=rows["algorithm"].map(families))
    order = list(dict.fromkeys(families.values()))
    shown = [name for name in names if categories.differ(rows, "algorithm", "base", name, families[name])]
    categories.dots(ax, rows, row="algorithm", rows=shown, series="base", order=order, names=TEXTS, groups=families)
    figures.plain_log(ax, "x")
    ax.set_xlabel("seconds to the target")
    alike = {base: [n for n in names if families[n] == base and n not in shown] for base in order}
    listing = "; ".join(
        f"{pretty(b, TEXTS)}: {', '.join(pretty(n, TEXTS) for n in same)}" for b, same in alike.items() if same
    )
    captions.remark(ax.figure, f"{ax.get_title()}, not told apart from {listing}.")  # type: ignore[arg-type]


def _family(name: str) -> tuple[str, int, str]:
    """The algorithm of a variant; the algorithm itself first, its tuned rates second."""
    untuned = name.removeprefix("tuned_")
    base = next(a for a in POLICIES if untuned.startswith(a))
    return base, 0 if name == base else 1 + (untuned == name), name
