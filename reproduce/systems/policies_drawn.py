"""Policies that draw n clients and wait for them: those of FedAvg, DeFedAvg-nIID and FAVANO."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reproduce.systems.schedule import (
    Aggregation,
    ClientJob,
    Policy,
    Receive,
    Setup,
    Simulation,
    Update,
    check_repeats,
    check_rounds,
)
from reproduce.systems.speeds import LONGEST, Pace


@dataclass(frozen=True)
class Sampled(Policy):
    """Base of the policies that draw n clients with replacement in every round.

    The draws are `integers(0, clients, n)` of numpy.random.default_rng([seed, 12]). `selections` prescribes them
    instead: the n clients of each round, repeated in turn.
    """

    n: int
    selections: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"at least 1 client must take part in a round, not {self.n}")
        if any(len(chosen) != self.n for chosen in self.selections):
            raise ValueError(f"the selections {self.selections} must name {self.n} clients each")

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if any(not 0 <= client < clients for chosen in self.selections for client in chosen):
            raise ValueError(f"the selections {self.selections} name clients outside 0..{clients - 1}")

    def select(self, setup: Setup, round: int) -> list[tuple[int, int]]:
        """(client, m) of `round` in order of clients; m is how often the client was drawn."""
        if self.selections:
            drawn = list(self.selections[round % len(self.selections)])
        else:
            drawn = setup.rng.integers(0, setup.clients, self.n).tolist()
        return sorted(Counter(drawn).items())


@dataclass(frozen=True)
class FedAvgPolicy(Sampled):
    """Synchronous: the server sends its model to the clients drawn and waits for the slowest (DeFedAvg, eqs. 2-3)."""

    def start(self, setup: Setup) -> Simulation:
        return _FedAvg(self, setup)


class _FedAvg(Simulation):
    def __init__(self, policy: FedAvgPolicy, setup: Setup) -> None:
        super().__init__(setup)
        self.policy = policy

    def aggregations(self) -> Iterator[Aggregation]:
        setup, seconds = self.setup, self.setup.job_seconds
        started, now, version = [0] * setup.clients, 0.0, 0
        while True:
            updates = []
            for client, times in self.policy.select(setup, version):
                weight = times / self.policy.n
                start = now + setup.download
                end = start + seconds[client]
                arrival = end + setup.upload
                updates.append(Update(client, started[client], version, setup.steps, start, end, arrival, weight))
                self.note(client, started[client], version, start, end, arrival)
                started[client] += 1
            now = max(update.arrival for update in updates)
            yield Aggregation(version, now, tuple(updates))
            version += 1


@dataclass(frozen=True)
class DeFedAvgNIIDPolicy(Sampled):
    """Clients train all the time; the server empties the send buffers of the clients drawn (DeFedAvg, Alg. 1).

    Every aggregated model is sent to all clients. A client trains from the newest model in its receive buffer and
    leaves the result in its send buffer, over an older one. `variant`: "continue" - never waits to be drawn; "hold" -
    idles while its send buffer is full. `receive`: "consume" - trains from a model once, then waits for the next;
    "keep" - any number of times. `empty`: for a drawn client whose buffer is empty the server can "wait", or "skip" it;
    then the weights are m / (draws that delivered), and where none did the new model is the old one.
    """

    variant: Literal["continue", "hold"] = "continue"
    receive: Receive = "consume"
    empty: Literal["wait", "skip"] = "wait"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.empty not in ("wait", "skip"):
            raise ValueError(f"of an empty send buffer, the server can 'wait' for it or 'skip' it, not '{self.empty}'")
        if self.variant not in ("continue", "hold") or self.receive not in ("consume", "keep"):
            raise ValueError(f"unknown variant '{self.variant}' or use of the receive buffer '{self.receive}'")

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        super().check(clients, steps, pace)
        if self.receive == "keep" and self.variant == "continue":
            check_repeats(steps * float(pace.step_seconds(0, clients).min()), pace)
        if self.empty == "skip" and pace.upload + pace.download == 0:
            raise ValueError("rounds that skip empty buffers take no time where transfers take none")
        if self.empty == "skip":
            check_rounds(pace.upload + pace.download, steps * float(pace.step_seconds(0, clients).max()))

    def start(self, setup: Setup) -> Simulation:
        return _DeFedAvgNIID(self, setup)


class _DeFedAvgNIID(Simulation):
    """Clients do not influence each other, so each is brought up to date only when it is drawn.

    `arrived[t]` is when version t reached the clients and round t starts. Of a client are known: the moment it is free
    for its next job, the version and number of its last one, and the finished job in its send buffer.
    """

    def __init__(self, policy: DeFedAvgNIIDPolicy, setup: Setup) -> None:
        super().__init__(setup)
        self.policy = policy
        self.hold, self.keep = policy.variant == "hold", policy.receive == "keep"
        self.seconds = setup.job_seconds
        self.arrived = [setup.download]
        self.free = [setup.download] * setup.clients
        self.fetched = [-1] * setup.clients
        self.started = [0] * setup.clients
        self.buffer: list[tuple[int, int, float, float] | None] = [None] * setup.clients

    def aggregations(self) -> Iterator[Aggregation]:
        setup = self.setup
        while True:
            version, now = len(self.arrived) - 1, self.arrived[-1]
            updates = []
            drawn = self.policy.select(setup, version)
            for client, _ in drawn:
                self._advance(client, now)
            if self.policy.empty == "skip":
                drawn = [(client, times) for client, times in drawn if self.buffer[client]]
            heard = sum(times for _, times in drawn)
            for client, times in drawn:
                job, start_version, start, end, taken = self._take(client, now)
                arrival = taken + setup.upload
                updates.append(Update(client, job, start_version, setup.steps, start, end, arrival, times / heard))
                self.note(client, job, start_version, start, end, arrival)
            time = max((update.arrival for update in updates), default=now + setup.upload)
            self.arrived.append(time + setup.download)
            yield Aggregation(version, time, tuple(updates))

    def _take(self, client: int, now: float) -> tuple[int, int, float, float, float]:
        """Empty the send buffer, at `now` or when the running job fills it; the job taken, and the moment."""
        taken = now
        if self.buffer[client] is None:
            job = self._next(client)
            assert job is not None, "a client drawn with an empty send buffer has a model to train from"
            self._train(client, job)
            taken = self.free[client]
        finished = self.buffer[client]
        assert finished is not None
        self.buffer[client] = None
        if self.hold:
            self.free[client] = taken
        return *finished, taken

    def _next(self, client: int) -> tuple[float, int] | None:
        """Start and version of the client's next job; None if it depends on a broadcast that is not yet known."""
        free, fetched = self.free[client], self.fetched[client]
        version = bisect_right(self.arrived, free) - 1
        if version > fetched or self.keep:
            return free, version
        if fetched + 1 == len(self.arrived):
            return None
        start = self.arrived[fetched + 1]
        return start, bisect_right(self.arrived, start) - 1

    def _advance(self, client: int, now: float) -> None:
        """Complete the jobs that end by `now`. Later ones are not decided: a newer model may come in this instant."""
        while not (self.hold and self.buffer[client]):
            job = self._next(client)
            # A job that starts now does so after the server has looked into the send buffers.
            if job is None or job[0] == now or job[0] + self.seconds[client] > now:
                return
            self._train(client, job)

    def _train(self, client: int, job: tuple[float, int]) -> None:
        start, version = job
        end = start + self.seconds[client]
        replaced = self.buffer[client]
        if replaced is not None:
            self.note(client, *replaced, overwritten=end)
        self.buffer[client] = (self.started[client], version, start, end)
        self.started[client] += 1
        self.fetched[client], self.free[client] = version, end

    def jobs(self, horizon: float) -> tuple[ClientJob, ...]:
        for client in range(self.setup.clients):
            self._advance(client, horizon)
            finished, running = self.buffer[client], self._next(client)
            if finished is not None:
                self.note(client, *finished)
            if running is not None and not (self.hold and finished):
                start, version = running
                self.note(client, self.started[client], version, start, start + self.seconds[client])
        return super().jobs(horizon)


@dataclass(frozen=True)
class FavanoPolicy(Policy):
    """The server interrupts n clients, averages their models with its own and sends them the result (FAVANO / QuAFL).

    The clients of a round are drawn without replacement from numpy.random.default_rng([seed, 12]). Each has completed
    q <= K steps since its last contact and starts anew. `contact`: "serial" - one after the other, a round lasts n
    round trips; "parallel" - one round trip. `wait`: pause between rounds, in round trips (FAVANO's own experiments:
    4/3). The weight of an update is 1 / (n + 1); the server's own model has the same.
    """

    n: int
    contact: Literal["serial", "parallel"] = "serial"
    wait: float = 0.0

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 <= self.wait < math.inf:
            raise ValueError(f"favano needs n >= 1 and a finite wait >= 0, not {self.n} and {self.wait}")
        if self.contact not in ("serial", "parallel"):
            raise ValueError(f"favano contacts clients 'serial' or 'parallel', not '{self.contact}'")

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if not pace.upload + pace.download > 0:
            raise ValueError("favano needs transfers that take time: without them its rounds would take none")
        if self.n > clients:
            raise ValueError(f"favano cannot draw {self.n} of {clients} clients without replacement")
        trips = self.wait + (self.n if self.contact == "serial" else 1)
        seconds = trips * (pace.upload + pace.download)
        if seconds > LONGEST:
            raise ValueError(f"a round of favano takes {LONGEST:g} seconds at most, not {seconds:g}")
        check_rounds(seconds, steps * float(pace.step_seconds(0, clients).max()))

    def start(self, setup: Setup) -> Simulation:
        return _Favano(self, setup)


class _Favano(Simulation):
    def __init__(self, policy: FavanoPolicy, setup: Setup) -> None:
        super().__init__(setup)
        self.policy = policy
        # Per client: number of contacts, version and moment of the last one.
        self.contacts = [0] * setup.clients
        self.version = [0] * setup.clients
        self.begun = [setup.download] * setup.clients

    def aggregations(self) -> Iterator[Aggregation]:
        setup, n = self.setup, self.policy.n
        trip = setup.upload + setup.download
        now, version = setup.download, 0
        while True:
            chosen = sorted(setup.rng.choice(setup.clients, n, replace=False).tolist())
            time = now + (n * trip if self.policy.contact == "serial" else trip)
            updates = []
            for client in chosen:
                job, start, seconds = self.contacts[client], self.begun[client], setup.step_seconds[client]
                # The small number keeps a step that ends in the instant of the contact.
                steps = min(setup.steps, math.floor((now - start) / seconds + 1e-9)) if seconds else setup.steps
                end = start + steps * seconds
                updates.append(Update(client, job, self.version[client], steps, start, end, time, 1 / (n + 1)))
                self.note(client, job, self.version[client], start, min(start + setup.steps * seconds, now), time)
                self.contacts[client], self.version[client], self.begun[client] = job + 1, version + 1, time
            yield Aggregation(version, time, tuple(updates))
            now, version = time + self.policy.wait * trip, version + 1

    def jobs(self, horizon: float) -> tuple[ClientJob, ...]:
        seconds = self.setup.job_seconds
        for client, start in enumerate(self.begun):
            self.note(client, self.contacts[client], self.version[client], start, start + seconds[client])
        return super().jobs(horizon)
