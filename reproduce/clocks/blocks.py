"""A schedule as arrays, block after block: any number of aggregations in memory that does not grow with it.

What `systems.schedule` simulates one object at a time comes here as a stream. The policies' loops are compiled
(schedule.c); without a C compiler, or for a policy without one, the simulation in Python fills the blocks. Both give
the same bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Aggregation, Schedule, Setup, check_length

if TYPE_CHECKING:
    from reproduce.engine.requests import Ints
    from reproduce.systems.schedule import Floats

SOURCE = Path(__file__).with_name("schedule.c")
UPDATES = 1 << 16
"""Updates of a block, or those of one aggregation where these are more."""


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
    compiled: bool = True,
) -> Iterator[Block]:
    """The first `aggregations`, or those up to `horizon` virtual seconds inclusive, whichever are fewer.

    compiled: False asks for the simulation in Python. Raises ValueError if neither length is given.
    """
    check_length(aggregations, horizon)
    make = KERNELS.get(type(schedule.policy))
    library = _library() if make and compiled else None
    if make is None or library is None:
        yield from _simulated(schedule, seed, aggregations, horizon, updates)
    else:
        with make(library, schedule, schedule.setup(seed), updates) as kernel:
            yield from kernel.blocks(aggregations, np.inf if horizon is None else horizon)


def _simulated(
    schedule: Schedule, seed: int, aggregations: int | None, horizon: float | None, updates: int
) -> Iterator[Block]:
    """From the objects of the simulation in Python."""
    waiting: list[Aggregation] = []
    count = 0
    for aggregation in schedule.stream(seed, aggregations, horizon):
        waiting.append(aggregation)
        count += len(aggregation.updates)
        if count >= updates:
            yield _packed(waiting)
            waiting, count = [], 0
    if waiting:
        yield _packed(waiting)


def _packed(drawn: list[Aggregation]) -> Block:
    columns = list(zip(*(u for a in drawn for u in a.updates), strict=True)) or [()] * 8
    client, job, version, steps = (np.array(c, dtype=np.int64) for c in columns[:4])
    start, end, arrival, weight = (np.array(c, dtype=np.float64) for c in columns[4:])
    first = np.concatenate([[0], np.cumsum([len(a.updates) for a in drawn])]).astype(np.int64)
    time = np.array([a.time for a in drawn])
    return Block(drawn[0].index, time, first, client, job, version, steps, start, end, arrival, weight)


# --- compiled ---------------------------------------------------------------------------------------------------------


class _Out(ctypes.Structure):
    """The struct of that name in schedule.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("most", "room", "aggregations", "updates", "used")),
        ("horizon", ctypes.c_double),
        *(
            (name, ctypes.c_void_p)
            for name in ("draws", "time", "first", "client", "job", "version", "start", "end", "arrival", "times")
        ),
    )


def _library() -> Any:
    """The compiled loops, None where they cannot be."""
    from reproduce.engine.kernels.library import exact  # it needs torch, which planning does without

    found = exact(SOURCE)
    if found is not None:
        for name in ("arrivals_new", "buffers_new", "rounds_new"):
            getattr(found, name).restype = ctypes.c_void_p
    return found


class _Kernel:
    """A simulation in C: its memory, and the blocks that it fills."""

    name: str
    draws: Ints | None = None
    """Draws that the loop has been given and not used: numbers, or rows of n."""

    def __init__(self, library: Any, schedule: Schedule, setup: Setup, updates: int, *numbers: Any) -> None:
        self.library, self.setup, self.policy, self.n = library, setup, schedule.policy, schedule.policy.n
        self.room = max(updates, self.n) + self.n
        self.memory = ctypes.c_void_p(getattr(library, f"{self.name}_new")(*numbers))
        self._check(self.memory.value)

    def __enter__(self) -> _Kernel:
        return self

    def __exit__(self, *reason: object) -> None:
        getattr(self.library, f"{self.name}_free")(self.memory)

    def draw(self, count: int) -> Ints:
        """The next `count` draws, which one run cannot exhaust."""
        raise NotImplementedError

    def blocks(self, aggregations: int | None, horizon: float) -> Iterator[Block]:
        index, run = 0, getattr(self.library, f"{self.name}_run")
        most = max(1, self.room // self.n)
        whole: dict[str, Any] = {name: np.empty(self.room, np.int64) for name in ("client", "job", "version", "times")}
        whole |= {name: np.empty(self.room) for name in ("start", "end", "arrival")}
        time, first = np.empty(most), np.zeros(most + 1, np.int64)
        while aggregations is None or index < aggregations:
            fewer = most if aggregations is None else min(most, aggregations - index)
            draws = self._refilled(fewer)
            arrays = {"time": time, "first": first, **whole} | ({"draws": draws} if draws is not None else {})
            out = _Out(most=fewer, room=self.room, horizon=horizon, **{k: v.ctypes.data for k, v in arrays.items()})
            self._check(run(self.memory, ctypes.byref(out)))
            if draws is not None:
                self.draws = draws[out.used :]
            if not out.aggregations:
                return
            part = slice(out.updates)
            yield self._block(index, time[: out.aggregations].copy(), first[: out.aggregations + 1].copy(), part, whole)
            index += out.aggregations

    def _block(self, index: int, time: Floats, first: Ints, part: slice, whole: dict[str, Any]) -> Block:
        taken = {name: array[part].copy() for name, array in whole.items() if name != "times"}
        times = whole["times"][part]
        return Block(index, time, first, steps=self.steps(times), weight=self.weights(times, first), **taken)

    def steps(self, times: Ints) -> Ints:
        """The local steps of the updates."""
        return np.full(len(times), self.setup.steps, dtype=np.int64)

    def weights(self, times: Ints, first: Ints) -> Floats:
        """The updates' shares of their aggregations."""
        return np.full(first[-1], 1 / self.n)

    def _refilled(self, aggregations: int) -> Ints | None:
        """Draws enough for as many aggregations; None if the policy draws nothing."""
        raise NotImplementedError

    @staticmethod
    def _check(done: object) -> None:
        if not done:
            raise MemoryError("no memory for the schedule")


class _Arrivals(_Kernel):
    """DeFedAvg-IID, FedBuff and AsySG."""

    name = "arrivals"

    def __init__(self, library: Any, schedule: Schedule, setup: Setup, updates: int) -> None:
        policy, clients = schedule.policy, setup.clients
        on_path = getattr(policy, "download_on_path", True)
        fetch, spread = (setup.download, 0.0) if on_path else (0.0, setup.download)
        self.choices, order = 0, np.arange(clients)
        if getattr(policy, "concurrency", "N") == "n" and policy.n < clients:
            self.choices, order = clients - policy.n + 1, setup.rng.permutation(clients)
        pushing, block = isinstance(policy, DeFedAvgIIDPolicy), getattr(policy, "block_uplink", True)
        keep, seconds = getattr(policy, "receive", "consume") == "keep", np.array(setup.job_seconds)
        counts = (clients, policy.n, pushing, block, keep, clients - self.choices + bool(self.choices))
        super().__init__(
            library, schedule, setup, updates, *map(ctypes.c_int64, counts), _pointer(order), _pointer(seconds),
            *map(ctypes.c_double, (setup.upload, fetch, spread)),
        )  # fmt: skip

    def _refilled(self, aggregations: int) -> Ints | None:
        if not self.choices:
            return None
        left = np.empty(0, np.int64) if self.draws is None else self.draws
        needed = aggregations * self.n - len(left)
        return np.concatenate([left, self.setup.rng.integers(self.choices, size=needed)]) if needed > 0 else left


class _Drawn(_Kernel):
    """Base of the policies that draw n clients per round: draws are rows of n."""

    drawn = 0

    def rows(self, rounds: int) -> Ints:
        """The clients of so many rounds more [rounds, n]."""
        policy: Any = self.policy
        if policy.selections:
            at = np.arange(self.drawn, self.drawn + rounds) % len(policy.selections)
            return np.array(policy.selections, dtype=np.int64)[at]
        return self.setup.rng.integers(0, self.setup.clients, (rounds, self.n))

    def _refilled(self, aggregations: int) -> Ints | None:
        left = np.empty((0, self.n), np.int64) if self.draws is None else self.draws
        needed = aggregations - len(left)
        if needed <= 0:
            return left
        rows = self.rows(needed)
        self.drawn += needed
        return np.concatenate([left, rows])


class _Buffers(_Drawn):
    """DeFedAvg-nIID."""

    name = "buffers"

    def __init__(self, library: Any, schedule: Schedule, setup: Setup, updates: int) -> None:
        policy: Any = schedule.policy
        flags = (policy.variant == "hold", policy.receive == "keep", policy.empty == "skip")
        seconds = np.array(setup.job_seconds)
        super().__init__(
            library, schedule, setup, updates, *map(ctypes.c_int64, (setup.clients, policy.n, *flags)),
            _pointer(seconds), ctypes.c_double(setup.upload), ctypes.c_double(setup.download),
        )  # fmt: skip

    def weights(self, times: Ints, first: Ints) -> Floats:
        of = np.repeat(np.arange(len(first) - 1), np.diff(first))
        heard = np.bincount(of, weights=times, minlength=len(first) - 1)
        shares: Floats = times / heard[of]
        return shares


class _Rounds(_Drawn):
    """FedAvg."""

    name = "rounds"

    def __init__(self, library: Any, schedule: Schedule, setup: Setup, updates: int) -> None:
        contact, pause, seconds = self.timing(schedule.policy, setup)
        super().__init__(
            library, schedule, setup, updates,
            *map(ctypes.c_int64, (setup.clients, schedule.policy.n, setup.steps)), _pointer(np.array(seconds)),
            *map(ctypes.c_double, (setup.upload, setup.download, contact, pause)),
        )  # fmt: skip

    def timing(self, policy: Any, setup: Setup) -> tuple[float, float, list[float]]:
        """Seconds of a round's contacts (0: until the last upload), between rounds, and of a job."""
        return 0.0, 0.0, setup.job_seconds

    def weights(self, times: Ints, first: Ints) -> Floats:
        shares: Floats = times / self.n
        return shares


class _Contacts(_Rounds):
    """FAVANO, whose `times` are the steps that were completed."""

    def timing(self, policy: Any, setup: Setup) -> tuple[float, float, list[float]]:
        trip = setup.upload + setup.download
        return (policy.n * trip if policy.contact == "serial" else trip), policy.wait * trip, setup.step_seconds

    def rows(self, rounds: int) -> Ints:
        draw = self.setup.rng.choice
        return np.array([draw(self.setup.clients, self.n, replace=False) for _ in range(rounds)], dtype=np.int64)

    def steps(self, times: Ints) -> Ints:
        return times.copy()

    def weights(self, times: Ints, first: Ints) -> Floats:
        return np.full(first[-1], 1 / (self.n + 1))


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


KERNELS: dict[type, Callable[[Any, Schedule, Setup, int], _Kernel]] = {
    AsySGPolicy: _Arrivals,
    DeFedAvgIIDPolicy: _Arrivals,
    FedBuffPolicy: _Arrivals,
    DeFedAvgNIIDPolicy: _Buffers,
    FedAvgPolicy: _Rounds,
    FavanoPolicy: _Contacts,
}
"""The policies with compiled loops."""
