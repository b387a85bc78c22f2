"""A schedule as arrays, block after block: what `systems.schedule` simulates, without an object for every update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from reproduce.engine.requests import Ints
from reproduce.systems.schedule import Aggregation, Floats, Schedule

UPDATES = 1 << 16
"""Updates of a block, about."""


@dataclass(frozen=True)
class Block:
    """T aggregations in a row with their U updates; the fields of the updates are those of `Update`.

    index: of the first aggregation; time [T]; first [T + 1]: where each aggregation's updates begin; all others [U].
    """

    index: int
    time: Floats
    first: Ints
    client: Ints
    job: Ints
    version: Ints
    steps: Ints
    start: Floats
    end: Floats
    arrival: Floats
    weight: Floats

    @property
    def aggregation(self) -> Ints:
        """The aggregation of every update [U]."""
        return self.index + np.repeat(np.arange(len(self.time)), np.diff(self.first))

    @property
    def staleness(self) -> Ints:
        """How many aggregations happened since the model that an update started from [U]."""
        return self.aggregation - self.version


def blocks(
    schedule: Schedule,
    seed: int,
    aggregations: int | None = None,
    horizon: float | None = None,
    updates: int = UPDATES,
) -> Iterator[Block]:
    """The first `aggregations`, or those up to `horizon` virtual seconds inclusive, whichever are fewer.

    Raises ValueError if neither length is given.
    """
    stream = schedule.stream(seed, aggregations, horizon)
    while drawn := list(islice(stream, max(1, updates // schedule.policy.n))):
        yield _packed(drawn)


def _packed(drawn: list[Aggregation]) -> Block:
    columns = list(zip(*(u for a in drawn for u in a.updates), strict=True)) or [()] * 8
    client, job, version, steps = (np.array(c, dtype=np.int64) for c in columns[:4])
    start, end, arrival, weight = (np.array(c, dtype=np.float64) for c in columns[4:])
    first = np.concatenate([[0], np.cumsum([len(a.updates) for a in drawn])]).astype(np.int64)
    time = np.array([a.time for a in drawn])
    return Block(drawn[0].index, time, first, client, job, version, steps, start, end, arrival, weight)
