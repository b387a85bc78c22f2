"""The picture of a schedule: a timeline of its first clients, and what it does as histograms."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from reproduce.report import figures, looks
from reproduce.report.schedule_numbers import Summary
from reproduce.systems.schedule import Schedule, Timeline

LANES = 16
"""Clients with a lane of their own."""
JOBS = 20000
"""Jobs, about, of the part of the schedule that is simulated with all of them, but at least three cycles."""
REST = "#e6e6e6"
PANELS = {
    "staleness": ("staleness (versions)", "share of the updates", True),
    "clients_at_work": ("clients at work", "share of the time", True),
    "idle": ("idle share", "share of the clients", False),
    "aggregations_per_second": ("aggregations per s", "share of the time", False),
}
"""Of each histogram: what it is of, what its bars are, and whether the former is a whole number."""


def draw(schedule: Schedule, seed: int, numbers: Summary, title: str) -> Figure:
    """Timeline of the beginning; staleness, clients at work, idle shares and aggregations per second of all of it."""
    download, each = schedule.pace.download, cycle(schedule, seed)
    # All jobs of the beginning are simulated, more than the lanes show, so that these show what comes of a job.
    first = download + min(40.0, max(3.0, JOBS / schedule.clients)) * each
    begin = schedule.timeline(seed, horizon=max(min(numbers.seconds, first), 1e-9))
    with figures.style():
        fig = Figure(figsize=(figures.FULL, 4.6), layout="constrained")
        axes: dict[str, Axes] = fig.subplot_mosaic([["lanes"] * len(PANELS), [*PANELS]], height_ratios=[1.5, 1.0])
        lanes(axes["lanes"], begin, schedule, download + 12 * each)
        axes["lanes"].set_title(title, loc="left", pad=16)  # above the legend
        for name, found in numbers.histograms().items():
            xlabel, ylabel, whole = PANELS[name]
            axes[name].stairs(found.shares, found.edges, fill=True, color=looks.DARK)
            axes[name].set(xlabel=xlabel, ylabel=ylabel)
            axes[name].xaxis.set_major_locator(MaxNLocator(3, integer=whole))
    return fig


def cycle(schedule: Schedule, seed: int) -> float:
    """Seconds from job to job of the mean client: with the transfers that it waits for."""
    policy: Any = schedule.policy
    pace = schedule.pace
    job = schedule.steps * float(pace.step_seconds(seed, schedule.clients).mean())
    if getattr(policy, "receive", "consume") == "keep" and job:
        blocked, fetches = (getattr(policy, name, False) for name in ("block_uplink", "download_on_path"))
        return job + pace.upload * blocked + pace.download * fetches
    return pace.download + job + pace.upload


def lanes(ax: Axes, begin: Timeline, schedule: Schedule, seconds: float) -> None:
    """A lane per client: dark where it trains, hatched if the result is never uploaded; over its edge, the uploads.

    FAVANO's clients are all heard at the end of the round: its clock does not say in which order they are contacted.
    """
    end, count, upload = min(seconds, begin.horizon), min(LANES, schedule.clients), schedule.pace.upload
    jobs = [j for j in begin.jobs if j.client < count and j.start < end]
    colors = looks.ramp(max((j.start_version for j in jobs), default=0) + 1)
    ax.barh(range(count), end, height=0.7, color=REST)
    for job in jobs:
        color = colors[job.start_version]
        look: dict[str, Any] = {"color": color, "edgecolor": "white"}
        if job.overwritten:
            look = {"color": "white", "edgecolor": color, "hatch": "//////"}
        ax.barh(job.client, job.end - job.start, left=job.start, height=0.7, linewidth=0.3, **look)
        if job.arrival is not None:
            ax.barh(job.client + 0.25, upload, left=job.arrival - upload, height=0.2, color=looks.VERMILLION, zorder=2)
    times = [a.time for a in begin.aggregations if a.time <= end]
    tick: dict[str, Any] = {"color": "#303030", "marker": "|", "linestyle": "none"}
    ax.plot(times, [count - 0.35] * len(times), markersize=3, clip_on=False, **tick)
    ax.set(xlim=(0, end), ylim=(count - 0.4, -0.6), xlabel="virtual seconds", ylabel="client")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(visible=False)
    marks = [
        Patch(facecolor=colors[0], label="trains (light: from later versions)"),
        Patch(facecolor="white", edgecolor=colors[0], hatch="//////", label="trained in vain"),
        Patch(facecolor=looks.VERMILLION, label="uploads"),
        Patch(facecolor=REST, label="waits or downloads"),
        Line2D([], [], markersize=5, label="aggregation", **tick),
    ]
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 0.98), "ncols": len(marks)}
    ax.legend(handles=marks, fontsize=looks.SMALL, frameon=False, **above)
