"""What a schedule does in numbers, without training: taken from its stream, in memory that does not grow with it.

The stream of blocks has the jobs that are uploaded, and these only when they are. Under most policies every job is
uploaded sooner or later. Under DeFedAvg-nIID, variant "continue", most are overwritten instead; but there a client does
not notice that it is drawn, so that its jobs follow from the models that arrive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduce.clocks.blocks import Block, blocks
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

WINDOWS, LEAST = 256, 30
"""Aggregations are counted in at most so many windows of equal length, so many at least in the mean of a window."""
MOMENTS = 400
"""Moments, evenly spread over the time, at which the clients at work are counted."""
BINS = 24
"""Bars of a histogram, at most."""
FOLLOWED = 1000
"""Clients, at most, whose jobs are followed from model to model: each job of each client would take too long."""


class Histogram(NamedTuple):
    """The shares [B] that lie between the edges [B + 1]."""

    edges: Floats
    shares: Floats


@dataclass(frozen=True)
class Summary:
    """Numbers of the first `aggregations` of a schedule, the last one at `seconds`; all are of the time up to there.

    staleness [S]: how many updates had the staleness 0, 1, ...; silent: clients that were never heard; rates:
    aggregations per second in windows of equal length; idle: share of the seconds in which a client did not train, of
    every client, or of some of all speeds where there are too many to follow (`watched`); working [MOMENTS]: how many
    clients trained.
    """

    clients: int
    aggregations: int
    seconds: float
    staleness: Ints
    silent: int
    rates: Floats
    idle: Floats
    working: Floats

    def scalars(self) -> dict[str, float]:
        """What one number says, ready for JSON."""
        updates, idle = int(self.staleness.sum()), float(self.idle.mean())
        return {
            "clients": self.clients,
            "aggregations": self.aggregations,
            "updates": updates,
            "seconds": self.seconds,
            "aggregations_per_second": self.aggregations / self.seconds if self.seconds else 0.0,
            "staleness_mean": float(self.staleness @ np.arange(len(self.staleness)) / max(1, updates)),
            "staleness_max": max(0, len(self.staleness) - 1),
            "idle_mean": idle,
            "concurrency_mean": self.clients * (1 - idle),
            "clients_watched": len(self.idle),
            "clients_never_heard": self.silent,
        }

    def document(self) -> dict[str, Any]:
        """All, ready for JSON: the scalars, and of every histogram the shares between edges, one more than these."""
        shown = {
            name: {"edges": h.edges.tolist(), "shares": h.shares.tolist()} for name, h in self.histograms().items()
        }
        return {**self.scalars(), "histograms": shown}

    def histograms(self) -> dict[str, Histogram]:
        """Shares of the updates, of the time, of the clients watched, and of the time."""
        return {
            "staleness": _histogram(np.arange(len(self.staleness)), 1.0, self.staleness),
            "clients_at_work": _histogram(self.working, self.clients / len(self.idle)),
            "idle": _histogram(self.idle, 0.001),
            "aggregations_per_second": _histogram(self.rates, len(self.rates) / (self.seconds or 1.0)),
        }


def summarise(schedule: Schedule, seed: int, aggregations: int | None = None, horizon: float | None = None) -> Summary:
    """The summary of the first `aggregations`, or those up to `horizon` seconds, whichever are fewer."""
    staleness, uploads = np.zeros(0, np.int64), np.zeros(schedule.clients, np.int64)
    seconds, count = 0.0, 0
    for block in blocks(schedule, seed, aggregations, horizon):
        found = np.bincount(block.staleness, minlength=len(staleness))
        found[: len(staleness)] += staleness
        staleness = found
        uploads += np.bincount(block.client, minlength=schedule.clients)
        count, seconds = count + len(block.time), float(block.time[-1])
    rates = _rates(schedule, seed, count, seconds)
    idle, working = _work(schedule, seed, seconds)
    return Summary(schedule.clients, count, seconds, staleness, int((uploads == 0).sum()), rates, idle, working)


def _rates(schedule: Schedule, seed: int, count: int, seconds: float) -> Floats:
    """Aggregations per second in windows of equal length [W], W <= WINDOWS; none without aggregations."""
    if not count:
        return np.zeros(0)
    windows = min(max(1, count // LEAST), WINDOWS)
    edges = np.linspace(0, seconds * (1 + 1e-9), windows + 1)  # an aggregation counts where its time ends
    counts = sum(np.histogram(block.time, edges)[0] for block in blocks(schedule, seed, count))
    return np.asarray(counts * windows / seconds)


def _work(schedule: Schedule, seed: int, seconds: float) -> tuple[Floats, Floats]:
    """The share of its first seconds in which each watched client does not train; how many train at its moments."""
    count = len(watched(schedule, seed))
    if not seconds:
        return np.ones(count), np.zeros(MOMENTS)
    moments = (np.arange(MOMENTS) + 0.5) / MOMENTS * seconds
    trained, change = np.zeros(count), np.zeros(MOMENTS + 1)
    for job in jobs(schedule, seed, seconds):
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


# --- every job, also one that is never uploaded -----------------------------------------------------------------------


class Jobs(NamedTuple):
    """J jobs: place of the client in `watched`, and virtual seconds from `start` to `end` [J]."""

    client: Ints
    start: Floats
    end: Floats


def watched(schedule: Schedule, seed: int) -> Ints:
    """The clients whose jobs are told: all, or `FOLLOWED` at equal distances in the order of their speeds."""
    if not _continues(schedule):
        return np.arange(schedule.clients)
    every = -(-schedule.clients // FOLLOWED)
    return np.sort(np.argsort(schedule.steps * schedule.step_seconds(seed), kind="stable")[every // 2 :: every])


def jobs(schedule: Schedule, seed: int, seconds: float) -> Iterator[Jobs]:
    """The jobs that the watched clients start before virtual second `seconds`; one that runs then ends there."""
    length = schedule.steps * schedule.step_seconds(seed)  # of a whole job of every client
    if _continues(schedule):
        told = _followed(schedule, seed, seconds, length[watched(schedule, seed)])
    else:
        told = _uploaded(schedule, seed, seconds, length)
    for client, start, end in told:
        early = start < seconds
        yield Jobs(client[early], start[early], np.minimum(end[early], seconds))


def _uploaded(schedule: Schedule, seed: int, seconds: float, length: Floats) -> Iterator[Jobs]:
    """The jobs that were uploaded when all that a client sends by itself are; the next one of those that are asked."""
    asked = isinstance(schedule.policy, DeFedAvgNIIDPolicy | FavanoPolicy)
    following = np.full(schedule.clients, schedule.pace.download if asked else np.inf)
    for block in blocks(schedule, seed, horizon=sys.float_info.max):
        yield Jobs(block.client, block.start, _ends(block, schedule, length))
        if asked:
            following[block.client] = _following(block, schedule)
        if block.time[-1] > seconds + length.max() + schedule.pace.upload:
            break
    yield Jobs(np.arange(schedule.clients), following, following + length)


def _ends(block: Block, schedule: Schedule, length: Floats) -> Floats:
    """Until when the clients trained [U]: FAVANO's when they are contacted, also in a step that is then lost."""
    policy, pace = schedule.policy, schedule.pace
    if not isinstance(policy, FavanoPolicy):
        return block.end
    trips = policy.n if policy.contact == "serial" else 1
    return np.minimum(block.start + length[block.client], block.arrival - trips * (pace.upload + pace.download))


def _following(block: Block, schedule: Schedule) -> Floats:
    """When clients that wait to be asked begin their next job [U]; `hold`: when asked, if they have a newer model."""
    policy: Any = schedule.policy
    pace = schedule.pace
    if isinstance(policy, FavanoPolicy):
        return block.arrival
    taken, waits = block.arrival - pace.upload, (block.staleness == 0) & (policy.receive == "consume")
    return np.where(waits, np.repeat(block.time, np.diff(block.first)) + pace.download, taken)


def _followed(schedule: Schedule, seed: int, seconds: float, length: Floats) -> Iterator[Jobs]:
    """A client's next job starts when the last one has ended and a model has arrived that is newer than that one's."""
    policy: Any = schedule.policy
    start, client = np.full(len(length), schedule.pace.download), np.arange(len(length))
    yield Jobs(client, start, start + length)
    for block in blocks(schedule, seed, horizon=seconds):
        arrived = block.time + schedule.pace.download
        while len(known := np.flatnonzero(start < arrived[-1])):
            newer = arrived[np.searchsorted(arrived, start[known], "right")]
            free = start[known] + length[known]
            start[known] = np.maximum(free, newer) if policy.receive == "consume" else free
            yield Jobs(known, start[known], start[known] + length[known])


def _continues(schedule: Schedule) -> bool:
    return isinstance(schedule.policy, DeFedAvgNIIDPolicy) and schedule.policy.variant == "continue"
