"""What a schedule does in numbers, without training: taken from its stream, in memory that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.clocks.blocks import blocks
from reproduce.report.schedule_jobs import jobs, watched
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

WINDOWS = 128
"""Aggregations are counted in at most twice as many windows of equal length."""
LEAST = 30
"""Aggregations of a window in the mean: with fewer, rates would tell how they are counted."""
MOMENTS = 400
"""Moments, evenly spread over the time, at which the clients at work are counted."""
BINS = 24
"""Bars of a histogram, at most."""


@dataclass(frozen=True)
class Histogram:
    """The shares that lie between the edges: shares [B], edges [B + 1]."""

    edges: Floats
    shares: Floats


@dataclass(frozen=True)
class Summary:
    """Numbers of the first `aggregations` of a schedule, the last one at `seconds`; all are of the time up to there.

    staleness [S]: how many updates had the staleness 0, 1, ...; silent: clients that were never heard; rates:
    aggregations per second in windows of `window` seconds; idle: share of the seconds in which a client did not train,
    of every client, or of some of all speeds where there are too many to follow (`schedule_jobs.watched`); working
    [MOMENTS]: how many clients trained.
    """

    clients: int
    aggregations: int
    updates: int
    seconds: float
    staleness: Ints
    silent: int
    rates: Floats
    window: float
    idle: Floats
    working: Floats

    @property
    def mean_staleness(self) -> float:
        return float(self.staleness @ np.arange(len(self.staleness)) / max(1, self.updates))

    def record(self) -> dict[str, float]:
        """The scalars, ready for JSON."""
        return {
            "clients": self.clients,
            "aggregations": self.aggregations,
            "updates": self.updates,
            "seconds": self.seconds,
            "aggregations_per_second": self.aggregations / self.seconds if self.seconds else 0.0,
            "staleness_mean": self.mean_staleness,
            "staleness_max": max(0, len(self.staleness) - 1),
            "idle_mean": float(self.idle.mean()),
            "concurrency_mean": self.clients * (1 - float(self.idle.mean())),
            "clients_watched": len(self.idle),
            "clients_never_heard": self.silent,
        }

    def histograms(self) -> dict[str, Histogram]:
        """Shares of the updates, of the time, of the clients watched, and of the time."""
        return {
            "staleness": _histogram(np.arange(len(self.staleness)), 1.0, self.staleness),
            "clients_at_work": _histogram(self.working, self.clients / len(self.idle)),
            "idle": _histogram(self.idle, 0.001),
            "aggregations_per_second": _histogram(self.rates, 1 / self.window),
        }


def summarise(
    schedule: Schedule, seed: int, aggregations: int | None = None, horizon: float | None = None, compiled: bool = True
) -> Summary:
    """The summary of the first `aggregations`, or those up to `horizon` seconds, whichever are fewer."""
    staleness, windows = np.zeros(1, np.int64), _Windows()
    uploads, seconds, count = np.zeros(schedule.clients, np.int64), 0.0, 0
    for block in blocks(schedule, seed, aggregations, horizon, compiled=compiled):
        found = np.bincount(block.staleness)
        more = max(len(found), len(staleness))
        staleness = np.pad(staleness, (0, more - len(staleness))) + np.pad(found, (0, more - len(found)))
        uploads += np.bincount(block.client, minlength=schedule.clients)
        windows.add(block.time)
        count, seconds = count + len(block.time), float(block.time[-1])
    updates = int(uploads.sum())
    rates, window = windows.rates(seconds)
    idle, working = _work(schedule, seed, seconds, compiled)
    return Summary(
        clients=schedule.clients,
        aggregations=count,
        updates=updates,
        seconds=seconds,
        staleness=staleness if updates else staleness[:0],
        silent=int((uploads == 0).sum()),
        rates=rates,
        window=window,
        idle=idle,
        working=working,
    )


def cycle(schedule: Schedule, seed: int) -> float:
    """Seconds from job to job of the mean client: with the transfers that it waits for."""
    policy: Any = schedule.policy
    pace = schedule.pace
    job = schedule.steps * float(pace.step_seconds(seed, schedule.clients).mean())
    if getattr(policy, "receive", "consume") == "keep" and job:
        blocked, fetches = (getattr(policy, name, False) for name in ("block_uplink", "download_on_path"))
        return job + pace.upload * blocked + pace.download * fetches
    return pace.download + job + pace.upload


def _work(schedule: Schedule, seed: int, seconds: float, compiled: bool) -> tuple[Floats, Floats]:
    """The share of its first seconds in which each watched client does not train; how many train at its moments."""
    count = len(watched(schedule, seed))
    if not seconds:
        return np.ones(count), np.zeros(MOMENTS)
    moments = (np.arange(MOMENTS) + 0.5) / MOMENTS * seconds
    trained, change = np.zeros(count), np.zeros(MOMENTS + 1)
    for job in jobs(schedule, seed, seconds, compiled):
        trained += np.bincount(job.client, job.end - job.start, count)
        for sign, times in ((1, job.start), (-1, job.end)):
            change += sign * np.bincount(np.searchsorted(moments, times), minlength=MOMENTS + 1)
    return 1 - trained / seconds, change.cumsum()[:-1] * schedule.clients / count


def _histogram(values: Any, unit: float, weights: Any = None) -> Histogram:
    """Bins of whole units with whole units in their middle, so that none has more of a counted quantity by chance."""
    if not len(values):
        return Histogram(np.zeros(1), np.zeros(0))
    units = np.floor(values / unit + 0.5).astype(np.int64)
    low, high = int(units.min()), int(units.max())
    width = -(-(high - low + 1) // BINS)
    counts = np.bincount((units - low) // width, weights)
    edges = (low - 0.5 + width * np.arange(len(counts) + 1, dtype=np.float64)) * unit
    return Histogram(edges, counts / counts.sum())


class _Windows:
    """How many times fall into windows of equal width; where there are too many windows, pairs are put together."""

    def __init__(self) -> None:
        self.width, self.used, self.counts = 1e-9, 0, np.zeros(2 * WINDOWS)

    def add(self, times: Floats) -> None:
        while times[-1] >= self.width * len(self.counts):
            pairs = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([pairs, np.zeros(WINDOWS)])
            self.width *= 2
        place = (times / self.width).astype(np.int64)
        self.counts += np.bincount(place, minlength=len(self.counts))
        self.used = int(place[-1]) + 1

    def rates(self, seconds: float) -> tuple[Floats, float]:
        """Times per second in the whole windows of `seconds`, and their width: `LEAST` in the mean, or all in one."""
        total = self.counts.sum()
        if total < 2 * LEAST:
            return np.full(min(1, self.used), total / (seconds or 1.0)), seconds or 1.0
        together = int(np.ceil(LEAST * self.used / total))
        width = together * self.width
        whole = int(seconds / width)
        counts = self.counts[: whole * together].reshape(whole, together).sum(axis=1)
        return counts / width, width
