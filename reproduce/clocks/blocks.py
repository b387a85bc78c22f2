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
from typing import Any

import numpy as np

from reproduce.engine.requests import Ints
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Aggregation, Floats, Schedule, Simulation, check_length

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
        yield from _simulated(schedule.stream(seed, aggregations, horizon), updates)
    else:
        kernel, last = make(schedule.policy, Simulation(schedule, seed)), np.inf if horizon is None else horizon
        yield from _filled(library, kernel, schedule.steps, aggregations, last, updates)


def _simulated(stream: Iterator[Aggregation], updates: int) -> Iterator[Block]:
    """From the objects of the simulation in Python."""
    waiting: list[Aggregation] = []
    room = updates
    for aggregation in stream:
        waiting.append(aggregation)
        room -= len(aggregation.updates)
        if room <= 0:
            yield _packed(waiting)
            waiting, room = [], updates
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


@dataclass(frozen=True)
class _Kernel:
    """A loop in C and what it leaves to Python.

    name, numbers: of its functions, and what makes a simulation. n: updates that an aggregation has at most. draws:
    from a number of aggregations on, the draws of so many more, a row each; None: there are none. weights: the shares
    of the updates, from their `times` and where aggregations begin; steps: their local steps, from `times`, if they
    are not all the same.
    """

    name: str
    numbers: tuple[Any, ...]
    n: int
    draws: Callable[[int, int], Ints] | None
    weights: Callable[[Ints, Ints], Floats]
    steps: Callable[[Ints], Ints] | None = None


def _filled(
    library: Any, kernel: _Kernel, steps: int, aggregations: int | None, horizon: float, updates: int
) -> Iterator[Block]:
    """The blocks that a loop in C fills; its memory is freed in the end."""
    values = [c.ctypes.data_as(ctypes.c_void_p) if isinstance(c, np.ndarray) else c for c in kernel.numbers]
    memory = ctypes.c_void_p(getattr(library, f"{kernel.name}_new")(*values))
    try:
        _check_memory(memory.value)
        room = max(updates, kernel.n) + kernel.n
        most = max(1, room // kernel.n)
        whole: dict[str, Any] = {name: np.empty(room, np.int64) for name in ("client", "job", "version", "times")}
        whole |= {name: np.empty(room) for name in ("start", "end", "arrival")}
        time, first, left = np.empty(most), np.zeros(most + 1, np.int64), np.empty(0, np.int64)
        index = drawn = 0  # aggregations that were simulated, and that there were draws for
        while aggregations is None or index < aggregations:
            fewer = most if aggregations is None else min(most, aggregations - index)
            if kernel.draws and (missing := index + fewer - drawn) > 0:
                left = np.concatenate([left, kernel.draws(drawn, missing).ravel()])
                drawn += missing
            arrays = {"time": time, "first": first, "draws": left, **whole}
            out = _Out(most=fewer, room=room, horizon=horizon, **{k: v.ctypes.data for k, v in arrays.items()})
            _check_memory(getattr(library, f"{kernel.name}_run")(memory, ctypes.byref(out)))
            left = left[kernel.n * out.aggregations :]
            if not out.aggregations:
                return
            begins, times = first[: out.aggregations + 1].copy(), whole["times"][: out.updates]
            found = {name: array[: out.updates].copy() for name, array in whole.items() if name != "times"}
            found["steps"] = kernel.steps(times) if kernel.steps else np.full(len(times), steps, dtype=np.int64)
            found["weight"] = kernel.weights(times, begins)
            yield Block(index, time[: out.aggregations].copy(), begins, **found)
            index += out.aggregations
    finally:
        getattr(library, f"{kernel.name}_free")(memory)


def _check_memory(there: object) -> None:
    if not there:
        raise MemoryError("no memory for the schedule")


def _integers(*values: Any) -> tuple[ctypes.c_int64, ...]:
    return tuple(map(ctypes.c_int64, values))


def _seconds(*values: float) -> tuple[ctypes.c_double, ...]:
    return tuple(map(ctypes.c_double, values))


def _arrivals(policy: Any, run: Simulation) -> _Kernel:
    """DeFedAvg-IID, FedBuff and AsySG."""
    push = isinstance(policy, DeFedAvgIIDPolicy)
    block, keep = push and policy.block_uplink, push and policy.receive == "keep"
    fetch, spread = (0.0, run.download) if push and not policy.download_on_path else (run.download, 0.0)
    resting = 0 if push or policy.concurrency == "N" else run.clients - policy.n
    order = run.rng.permutation(run.clients) if resting else np.arange(run.clients)
    flags = _integers(run.clients, policy.n, push, block, keep, run.clients - resting)
    numbers = (*flags, order, np.array(run.job_seconds), *_seconds(run.upload, fetch, spread))
    draws = (lambda at, more: run.rng.integers(resting + 1, size=(more, policy.n))) if resting else None
    return _Kernel("arrivals", numbers, policy.n, draws, lambda times, first: np.full(len(times), 1 / policy.n))


def _buffers(policy: Any, run: Simulation) -> _Kernel:
    """DeFedAvg-nIID."""

    def weights(times: Ints, first: Ints) -> Floats:
        of = np.repeat(np.arange(len(first) - 1), np.diff(first))
        shares: Floats = times / np.bincount(of, weights=times, minlength=len(first) - 1)[of]
        return shares

    flags = (policy.variant == "hold", policy.receive == "keep", policy.empty == "skip")
    numbers = (*_integers(run.clients, policy.n, *flags), np.array(run.job_seconds))
    return _Kernel("buffers", (*numbers, *_seconds(run.upload, run.download)), policy.n, _drawn(policy, run), weights)


def _rounds(policy: Any, run: Simulation) -> _Kernel:
    """FedAvg: a round lasts until the last upload (0 seconds of contacts), and none is between two."""
    numbers = (*_integers(run.clients, policy.n, run.steps), np.array(run.job_seconds))
    numbers = (*numbers, *_seconds(run.upload, run.download, 0.0, 0.0))
    return _Kernel("rounds", numbers, policy.n, _drawn(policy, run), lambda times, first: times / policy.n)


def _contacts(policy: Any, run: Simulation) -> _Kernel:
    """FAVANO, whose `times` are the steps that were completed."""
    trip = run.upload + run.download
    contact = policy.n * trip if policy.contact == "serial" else trip
    numbers = (*_integers(run.clients, policy.n, run.steps), np.array(run.step_seconds))
    numbers = (*numbers, *_seconds(run.upload, run.download, contact, policy.wait * trip))

    def draws(at: int, more: int) -> Ints:
        return np.array([run.rng.choice(run.clients, policy.n, replace=False) for _ in range(more)], dtype=np.int64)

    return _Kernel(
        "rounds", numbers, policy.n, draws, lambda times, first: np.full(len(times), 1 / (policy.n + 1)), np.copy
    )


def _drawn(policy: Any, run: Simulation) -> Callable[[int, int], Ints]:
    """Of policies that draw n clients per round: those of so many rounds [rounds, n] from one on."""
    chosen = np.array(policy.selections, dtype=np.int64)
    if len(chosen):
        return lambda at, more: chosen[np.arange(at, at + more) % len(chosen)]
    return lambda at, more: run.rng.integers(0, run.clients, (more, policy.n))


KERNELS: dict[type, Callable[[Any, Simulation], _Kernel]] = {
    AsySGPolicy: _arrivals,
    DeFedAvgIIDPolicy: _arrivals,
    FedBuffPolicy: _arrivals,
    DeFedAvgNIIDPolicy: _buffers,
    FedAvgPolicy: _rounds,
    FavanoPolicy: _contacts,
}
"""The policies with compiled loops."""
