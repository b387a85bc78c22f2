"""What a schedule does in numbers, without training: taken from its stream, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reproduce.clocks.blocks import Block, blocks
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

WINDOWS = 128
"""Aggregations are counted in at most twice as many windows of equal length."""


@dataclass(frozen=True)
class Summary:
    """Numbers of the first `aggregations` of a schedule, the last one at `seconds`.

    staleness [S]: how many updates had the staleness 0, 1, ...; idle: share of its time that each client that was heard
    did not train, from 0 to the end of its last job that was uploaded; silent: clients that were never heard;
    rates: aggregations per second in windows of `window` seconds, the last of which need not be whole.
    """

    clients: int
    aggregations: int
    updates: int
    seconds: float
    staleness: Ints
    idle: Floats
    rates: Floats
    window: float

    @property
    def silent(self) -> int:
        return self.clients - len(self.idle)

    @property
    def mean_staleness(self) -> float:
        return float(self.staleness @ np.arange(len(self.staleness)) / max(1, self.updates))

    @property
    def concurrency(self) -> float:
        """How many clients train at a time, in the mean, if the silent ones do as the others."""
        return float(self.clients * (1 - self.idle.mean())) if len(self.idle) else 0.0

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
            "idle_mean": float(self.idle.mean()) if len(self.idle) else 1.0,
            "concurrency_mean": self.concurrency,
            "clients_never_heard": self.silent,
        }


def summarise(
    schedule: Schedule, seed: int, aggregations: int | None = None, horizon: float | None = None, compiled: bool = True
) -> Summary:
    """The summary of the first `aggregations`, or those up to `horizon` seconds, whichever are fewer."""
    return summary(schedule, seed, blocks(schedule, seed, aggregations, horizon, compiled=compiled))


def summary(schedule: Schedule, seed: int, stream: Iterable[Block]) -> Summary:
    """As `summarise`, of blocks that somebody else may look at, too."""
    clients = schedule.clients
    lengths = schedule.steps * schedule.pace.step_seconds(seed, clients)
    staleness, windows = np.zeros(1, np.int64), _Windows()
    trained, last, jobs, uploads = np.zeros(clients), np.zeros(clients), np.zeros(clients), np.zeros(clients)
    count, seconds = 0, 0.0
    for block in stream:
        found = np.bincount(block.staleness)
        more = max(len(found), len(staleness))
        staleness = np.pad(staleness, (0, more - len(staleness))) + np.pad(found, (0, more - len(found)))
        trained += np.bincount(block.client, block.end - block.start, clients)
        uploads += np.bincount(block.client, minlength=clients)
        np.maximum.at(last, block.client, block.end)
        np.maximum.at(jobs, block.client, block.job + 1)
        windows.add(block.time)
        count, seconds = count + len(block.time), float(block.time[-1])
    # Jobs before one that was uploaded are complete, uploaded or not.
    busy, heard = trained + (jobs - uploads) * lengths, last > 0
    updates = int(uploads.sum())
    return Summary(
        clients=clients,
        aggregations=count,
        updates=updates,
        seconds=seconds,
        staleness=staleness if updates else staleness[:0],
        idle=np.clip(1 - busy[heard] / last[heard], 0.0, 1.0),
        rates=windows.counts[: windows.used] / windows.width,
        window=windows.width,
    )


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
