"""The schedule of asynchronous training (DeFedAvg, Sec. 4.1.3): the clients' pace, who trains when, from which model.

When a client starts, ends and delivers does not depend on what it learns. So the schedule is simulated first, in
seconds and without a model, and training replays it: in order of the aggregations, every update is trained from the
stored model of its start version; jobs that are never uploaded are never trained.

The server's *version* counts aggregations: version 0 is the initial model, aggregation `t` turns version t into t + 1.
Virtual time is in seconds from 0. Events of the same instant happen in this order: completions of jobs, arrivals of
uploads (with the aggregation they complete), arrivals of broadcasts, selections of clients, starts of jobs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Literal, NamedTuple

import numpy as np

from reproduce.declare.values import Bounds, Count, Floats, check_values

SPEED_STREAM = 11  # numpy.random.default_rng([seed, SPEED_STREAM]); 12 is the sampling of clients
LONGEST = 1e12
"""Seconds, 32,000 years, beyond which a duration is a slip; slow-down factors have the same bound."""
Seconds = Annotated[float, Bounds(0, LONGEST)]
Factor = Annotated[float, Bounds(1 / LONGEST, LONGEST)]


class Speeds(ABC):
    """Base of the rules for the clients' slow-down factors, which stay the same during a run."""

    @abstractmethod
    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        """Factor s_m by which client m's steps take longer than `Pace.step`: float64, shape (clients,), > 0."""


@dataclass(frozen=True)
class UniformSlowdown(Speeds):
    """Drawn once per client and seed from numpy.random.default_rng([seed, 11]).uniform(low, high).

    The paper says that "computation speeds" are uniform on [1, 5]. `model` "slowdown" takes the number as the slow-down
    factor, which its times support; "rate" takes it literally, as the speed v with high <-> the fastest: s = high / v.
    """

    low: Factor = 1.0
    high: Factor = 5.0
    model: Literal["slowdown", "rate"] = "slowdown"

    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        drawn = np.random.default_rng([seed, SPEED_STREAM]).uniform(self.low, self.high, clients)
        return drawn if self.model == "slowdown" else self.high / drawn


@dataclass(frozen=True)
class Explicit(Speeds):
    """Given slow-down factors; asking for another number of clients is an error."""

    values: tuple[Factor, ...]

    def slowdowns(self, seed: int, clients: int) -> np.ndarray:
        if clients != len(self.values):
            raise ValueError(f"slow-down factors are given for {len(self.values)} clients, not for {clients}")
        return np.array(self.values, dtype=float)


@dataclass(frozen=True)
class Pace:
    """Virtual seconds: `step` per local step of a client with slow-down 1, `upload` and `download` per model sent.

    Transfers of different clients do not disturb each other; aggregating, sampling and evaluating take no time.
    """

    step: Seconds
    upload: Seconds
    download: Seconds
    speeds: Speeds = field(default_factory=UniformSlowdown)

    def __post_init__(self) -> None:
        if not (self.step or self.upload or self.download):
            raise ValueError("a step and transfers cannot all take no time")

    def step_seconds(self, seed: int, clients: int) -> np.ndarray:
        """Seconds of a step of every client: float64, shape (clients,)."""
        return self.speeds.slowdowns(seed, clients) * self.step


def paper_pace(flop: float, size: float) -> Pace:
    """`flop` operations per step at 10 GFLOP/s for the fastest client; a model of `size` bytes over 400 Mbit/s."""
    seconds = size * 8 / 400e6
    return Pace(step=flop / 1e10, upload=seconds, download=seconds)


FASHION_MNIST = paper_pace(17.0e6, 2.2e6)  # 1.70 ms per step, 44.0 ms per transfer
CIFAR10 = paper_pace(31.4e6, 3.53e6)  # 3.14 ms per step, 70.6 ms per transfer


SAMPLING_STREAM = 12  # numpy.random.default_rng([seed, SAMPLING_STREAM])

Receive = Literal["consume", "keep"]
"""The number of times that a client trains from a received model: once, or again as long as there is no newer one."""

REPEATS = 10_000
"""Jobs that a client which never waits does in the time of a download and an upload, at most."""
Clients = Annotated[int, Bounds(1, 10**6)]
"""Clients, or clients that are drawn or received at a time."""


class Update(NamedTuple):
    """A job whose result enters an aggregation.

    `job` counts the jobs that this client started, from 0, including those never uploaded: (seed, client, job) names
    its random stream. `start_version` is the model it trained from, `steps` how many local steps it completed (0 is
    possible for favano). From `start` to `end` it trained, at `arrival` the server has it, in virtual seconds. `weight`
    is its share in the aggregation.
    """

    client: int
    job: int
    start_version: int
    steps: int
    start: float
    end: float
    arrival: float
    weight: float


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The server's step from version `index` to `index + 1` at virtual second `time`.

    The weights of the updates sum to 1; for favano with the weight 1 / (n + 1) of the server's own model.
    """

    index: int
    time: float
    updates: tuple[Update, ...]

    @property
    def staleness(self) -> tuple[int, ...]:
        """For every update, the number of aggregations since the model it started from."""
        return tuple(self.index - update.start_version for update in self.updates)


class ClientJob(NamedTuple):
    """A client's training from `start` to `end` (seconds), used or not.

    `arrival`: when the server received its update, None if not within the timeline: it is still running, waits in the
    send buffer, or a newer result took its place there.
    """

    client: int
    job: int
    start_version: int
    start: float
    end: float
    arrival: float | None

    @property
    def uploaded(self) -> bool:
        return self.arrival is not None


@dataclass(frozen=True)
class Timeline:
    """Everything that happened from 0 to `horizon` seconds; jobs ordered by client and start."""

    clients: int
    horizon: float
    aggregations: tuple[Aggregation, ...]
    jobs: tuple[ClientJob, ...]

    @property
    def idle(self) -> float:
        """Share of all clients' time until the horizon in which they do not train."""
        busy = sum(min(job.end, self.horizon) - job.start for job in self.jobs)
        return 1.0 - busy / (self.clients * self.horizon)


class Simulation:
    """One run of a policy: its numbers, its draws, how many jobs each client began; a log of the jobs, if asked for."""

    def __init__(self, schedule: Schedule, seed: int, record: bool = False) -> None:
        self.clients, self.steps = schedule.clients, schedule.steps
        self.step_seconds: list[float] = schedule.step_seconds(seed).tolist()
        self.job_seconds = [self.steps * seconds for seconds in self.step_seconds]
        self.upload, self.download = schedule.pace.upload, schedule.pace.download
        self.rng = np.random.default_rng([seed, SAMPLING_STREAM])
        self.started = [0] * self.clients
        self.log: dict[tuple[int, int], tuple[int, float, float, float]] | None = {} if record else None
        self.catch_up: Callable[[float], object] = lambda horizon: None
        """Notes the jobs up to a horizon that the policy has not looked at yet."""

    def train(self, client: int, version: int, start: float, weight: float) -> Update:
        """The client's next job, which it uploads as soon as it ends."""
        job, end = self.started[client], start + self.job_seconds[client]
        arrival = end + self.upload
        self.started[client] += 1
        self.note(client, job, version, start, end, arrival)
        return Update(client, job, version, self.steps, start, end, arrival, weight)

    def note(self, client: int, job: int, version: int, start: float, end: float, arrival: float = math.inf) -> None:
        """Log a job, in place of what was known of it; when its update arrives, in seconds."""
        if self.log is not None:
            self.log[client, job] = (version, start, end, arrival)

    def jobs(self, horizon: float) -> tuple[ClientJob, ...]:
        """The jobs started before `horizon`, as they stood then; the aggregations must have been drawn up to there."""
        self.catch_up(horizon)
        return tuple(
            ClientJob(*key, version, start, end, arrival if arrival <= horizon else None)
            for key, (version, start, end, arrival) in sorted((self.log or {}).items())
            if start < horizon
        )


class Policy:
    """The times when clients train and the server aggregates: an algorithm of DeFedAvg seen by the clock alone."""

    n: int

    @property
    def broadcasts(self) -> bool:
        """Tells whether every model is sent to all clients, and not to each that begins a job."""
        return False

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        """Raises ValueError if the policy cannot run with so many clients and local steps at this pace."""

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        """The aggregations of a run in order, without end."""
        raise NotImplementedError


def check_repeats(seconds: float, pace: Pace) -> None:
    """Raises ValueError if jobs that follow one another every `seconds` are too many to simulate."""
    if REPEATS * seconds <= pace.upload + pace.download:
        raise ValueError(
            f"a client that keeps training from the same model would finish more than {REPEATS:,} jobs, {seconds:g} s "
            'each, while a model is sent to it and back: use longer jobs, or receive="consume"'
        )


@dataclass(frozen=True)
class Schedule:
    """The order of local trainings: `policy` with `clients` clients of `steps` local steps per job at this pace."""

    policy: Policy
    clients: Clients
    steps: Count
    pace: Pace

    def __post_init__(self) -> None:
        check_values(self)
        self.step_seconds(0)  # ValueError if there are no speeds for so many clients
        self.policy.check(self.clients, self.steps, self.pace)

    def step_seconds(self, seed: int) -> Floats:
        """Seconds of a step of every client (clients,)."""
        return self.pace.step_seconds(seed, self.clients)

    def simulate(self, seed: int, aggregations: int | None = None, horizon: float | None = None) -> list[Aggregation]:
        """The first `aggregations`, or those up to `horizon` virtual seconds inclusive, whichever are fewer."""
        return list(self.stream(seed, aggregations, horizon))

    def stream(self, seed: int, aggregations: int | None = None, horizon: float | None = None) -> Iterator[Aggregation]:
        """Yields the aggregations of `simulate` one after the other."""
        return self._drawn(Simulation(self, seed), aggregations, horizon)

    def timeline(self, seed: int, aggregations: int | None = None, horizon: float | None = None) -> Timeline:
        """The timeline of `simulate` with all jobs. Without a horizon it ends with the last aggregation."""
        run = Simulation(self, seed, record=True)
        drawn = list(self._drawn(run, aggregations, horizon))
        complete = aggregations is not None and len(drawn) == aggregations
        end = drawn[-1].time if complete or horizon is None else horizon
        return Timeline(self.clients, end, tuple(drawn), run.jobs(end))

    def _drawn(self, run: Simulation, aggregations: int | None, horizon: float | None) -> Iterator[Aggregation]:
        for aggregation in islice(self.policy.aggregations(run), aggregations):
            if horizon is not None and aggregation.time > horizon:
                return
            yield aggregation
