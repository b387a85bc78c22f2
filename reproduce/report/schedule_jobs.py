"""Every job of a schedule, also one that is never uploaded, in memory that does not grow with the horizon.

The stream of blocks has the jobs that are uploaded, and these only when they are. Under most policies every job is
uploaded sooner or later. Under DeFedAvg-nIID, variant "continue", most are overwritten instead; but there a client does
not notice that it is drawn, so that its jobs follow from the models that arrive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduce.clocks.blocks import Block, blocks
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

FOLLOWED = 1000
"""Clients, at most, whose jobs are followed from model to model: each job of each client would take too long."""


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
    return np.sort(np.argsort(_job_seconds(schedule, seed), kind="stable")[every // 2 :: every])


def jobs(schedule: Schedule, seed: int, seconds: float, compiled: bool = True) -> Iterator[Jobs]:
    """The jobs that the watched clients start before virtual second `seconds`; one that runs then ends there."""
    told = (_followed if _continues(schedule) else _uploaded)(schedule, seed, seconds, compiled)
    for client, start, end in told:
        early = start < seconds
        yield Jobs(client[early], start[early], np.minimum(end[early], seconds))


def _uploaded(schedule: Schedule, seed: int, seconds: float, compiled: bool) -> Iterator[Jobs]:
    """The jobs that were uploaded when all that a client sends by itself are; the next one of those that are asked."""
    asked = isinstance(schedule.policy, DeFedAvgNIIDPolicy | FavanoPolicy)
    length = _job_seconds(schedule, seed)
    following = np.full(schedule.clients, schedule.pace.download if asked else np.inf)
    for block in blocks(schedule, seed, horizon=sys.float_info.max, compiled=compiled):
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


def _followed(schedule: Schedule, seed: int, seconds: float, compiled: bool) -> Iterator[Jobs]:
    """A client's next job starts when the last one has ended and a model has arrived that is newer than that one's."""
    policy: Any = schedule.policy
    length = _job_seconds(schedule, seed)[watched(schedule, seed)]
    start, client = np.full(len(length), schedule.pace.download), np.arange(len(length))
    yield Jobs(client, start, start + length)
    for block in blocks(schedule, seed, horizon=seconds, compiled=compiled):
        arrived = block.time + schedule.pace.download
        while len(known := np.flatnonzero(start < arrived[-1])):
            newer = arrived[np.searchsorted(arrived, start[known], "right")]
            free = start[known] + length[known]
            start[known] = np.maximum(free, newer) if policy.receive == "consume" else free
            yield Jobs(known, start[known], start[known] + length[known])


def _continues(schedule: Schedule) -> bool:
    return isinstance(schedule.policy, DeFedAvgNIIDPolicy) and schedule.policy.variant == "continue"


def _job_seconds(schedule: Schedule, seed: int) -> Floats:
    """Seconds of a whole job of every client."""
    return schedule.steps * schedule.step_seconds(seed)
