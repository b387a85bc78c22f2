"""The picture of a schedule: a timeline of its first clients, and what it does as histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reproduce.report import figures, looks
from reproduce.report.schedule_numbers import Summary, cycle
from reproduce.systems.schedule import Schedule, Timeline

LANES = 16
"""Clients with a lane of their own."""
JOBS = 20000
"""Jobs, about, of the part of the schedule that is simulated with all of them."""


def draw(schedule: Schedule, seed: int, numbers: Summary, title: str) -> Figure:
    """Timeline; staleness, clients at work, idle shares, aggregations per second."""
    begin = beginning(schedule, seed, numbers.seconds)
    with figures.style():
        fig = Figure(figsize=(figures.FULL, 4.6), layout="constrained")
        axes = fig.subplot_mosaic("tttt\nscia", height_ratios=[1.5, 1.0])
        lanes(axes["t"], begin, schedule, 12 * cycle(schedule, seed))
        axes["t"].set_title(title, loc="left", pad=16)  # above the legend
        ax = axes["s"]
        ax.bar(np.arange(len(numbers.staleness)), numbers.staleness / max(1, numbers.updates), width=1.0)
        ax.set(xlabel="staleness (versions)", ylabel="share of the updates")
        _histogram(axes["c"], working(begin), "clients at work", "share of the time")
        axes["c"].set_title(f"of the first {begin.horizon:.3g} s")
        _histogram(axes["i"], numbers.idle, "idle share", "share of the clients")
        if numbers.watched < numbers.seconds:
            axes["i"].set_title(f"of the first {numbers.watched:.3g} s")
        whole = numbers.rates[:-1] if len(numbers.rates) > 1 else numbers.rates
        _histogram(axes["a"], whole, "aggregations per second", "share of the time")
    return fig


def beginning(schedule: Schedule, seed: int, seconds: float) -> Timeline:
    """The first part of the schedule, at most `seconds` long, with all its jobs."""
    cycles = min(40.0, max(3.0, JOBS / schedule.clients))
    return schedule.timeline(seed, horizon=max(min(seconds, cycles * cycle(schedule, seed)), 1e-9))


def working(begin: Timeline) -> Any:
    """How many clients train, at 400 moments evenly spread over a timeline."""
    moments = (np.arange(400) + 0.5) / 400 * begin.horizon
    starts, ends = np.sort([j.start for j in begin.jobs]), np.sort([j.end for j in begin.jobs])
    return np.searchsorted(starts, moments, "right") - np.searchsorted(ends, moments, "right")


def lanes(ax: Axes, begin: Timeline, schedule: Schedule, seconds: float) -> None:
    """A lane per client: dark where it trains, hatched if the result is never uploaded, light while it uploads."""
    end, count = min(seconds, begin.horizon), min(LANES, schedule.clients)
    jobs = [j for j in begin.jobs if j.client < count and j.start < end]
    colors = looks.ramp(max((j.start_version for j in jobs), default=0) + 1)
    for job in jobs:
        color = colors[job.start_version]
        look: dict[str, Any] = {"color": color, "edgecolor": "white"}
        if job.overwritten:
            look = {"color": "white", "edgecolor": color, "hatch": "//////"}
        ax.barh(job.client, job.end - job.start, left=job.start, height=0.7, linewidth=0.3, **look)
        if job.arrival is not None and schedule.pace.upload:
            up = schedule.pace.upload
            ax.barh(job.client, up, left=job.arrival - up, height=0.35, color="#404040", alpha=0.45, linewidth=0)
    times = [a.time for a in begin.aggregations if a.time <= end]
    ax.plot(times, [count - 0.35] * len(times), "|", color="#303030", markersize=3, clip_on=False)
    ax.set(xlim=(0, end), ylim=(count - 0.4, -0.6), xlabel="virtual seconds", ylabel="client")
    ax.grid(visible=False)
    marks = [
        Patch(facecolor=colors[0], label="trains (light: from later versions)"),
        Patch(facecolor="#404040", alpha=0.45, label="uploads"),
        Patch(facecolor="white", edgecolor=colors[0], hatch="//////", label="trained in vain"),
        Patch(facecolor="white", label="waits"),
    ]
    ax.legend(handles=marks, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=4, fontsize=6, frameon=False)


def _histogram(ax: Axes, values: Any, xlabel: str, ylabel: str) -> None:
    if len(values):
        ax.hist(values, bins=24, weights=np.full(len(values), 1 / len(values)))
    ax.set(xlabel=xlabel, ylabel=ylabel)
