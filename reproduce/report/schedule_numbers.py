"""What a schedule does in numbers, without training: taken from its stream, in memory that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reproduce.clocks.blocks import blocks
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

WINDOWS = 128
"""Aggregations are counted in at most twice as many windows of equal length."""
JOBS = 50_000
"""Who trains is watched job by job, and only so long that there are about so many, but for three cycles at least."""


@dataclass(frozen=True)
class Summary:
    """Numbers of the first `aggregations` of a schedule, the last one at `seconds`.

    staleness [S]: how many updates had the staleness 0, 1, ...; silent: clients that were never heard; rates:
    aggregations per second in windows of `window` seconds, the last of which need not be whole; idle [clients]: share
    of the first `watched` seconds in which a client did not train, a job that runs at their end counted up to it.
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
    watched: float

    @property
    def mean_staleness(self) -> float:
        return float(self.staleness @ np.arange(len(self.staleness)) / max(1, self.updates))

    @property
    def concurrency(self) -> float:
        """How many clients train at a time, in the mean over the seconds watched."""
        return float((1 - self.idle).sum())

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
            "concurrency_mean": self.concurrency,
            "watched_seconds": self.watched,
            "clients_never_heard": self.silent,
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
    watched = min(seconds, max(3.0, JOBS / schedule.clients) * cycle(schedule, seed))
    return Summary(
        clients=schedule.clients,
        aggregations=count,
        updates=updates,
        seconds=seconds,
        staleness=staleness if updates else staleness[:0],
        silent=int((uploads == 0).sum()),
        rates=windows.counts[: windows.used] / windows.width,
        window=windows.width,
        idle=_idle(schedule, seed, watched),
        watched=watched,
    )


def cycle(schedule: Schedule, seed: int) -> float:
    """Seconds of a download, a job and an upload of the mean client; of a job alone where it need not wait for them."""
    pace = schedule.pace
    job = schedule.steps * float(pace.step_seconds(seed, schedule.clients).mean())
    waits = getattr(schedule.policy, "receive", "consume") == "consume" or not job
    return job + (pace.download + pace.upload) * waits


def _idle(schedule: Schedule, seed: int, seconds: float) -> Floats:
    """The share of its first seconds in which each client does not train; 1 where there are none.

    Taken from the simulation with all its jobs: the stream has those that are uploaded, and these only when they are.
    """
    if not seconds:
        return np.ones(schedule.clients)
    jobs = schedule.timeline(seed, horizon=seconds).jobs
    client = np.array([job.client for job in jobs], np.int64)
    trained = np.array([min(job.end, seconds) - job.start for job in jobs])
    return 1 - np.bincount(client, trained, schedule.clients) / seconds


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
