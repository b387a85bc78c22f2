"""Policies of asynchronous training: who draws n clients (FedAvg, DeFedAvg-nIID, FAVANO), and who takes the first n
updates to arrive (DeFedAvg-IID, FedBuff, AsySG)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Literal

from reproduce.declare.values import NonNegative, Whole
from reproduce.systems.schedule import Aggregation, Clients, Pace, Policy, Receive, Simulation, Update, check_repeats


@dataclass(frozen=True)
class Sampled(Policy):
    """Base of the policies that draw n clients with replacement in every round.

    The draws are `integers(0, clients, n)` of numpy.random.default_rng([seed, 12]). `selections` prescribes them
    instead: the n clients of each round, repeated in turn.
    """

    n: Clients
    selections: tuple[tuple[Whole, ...], ...] = ()

    def select(self, run: Simulation, round: int) -> list[tuple[int, int]]:
        """(client, m) of `round` in order of clients; m is how often the client was drawn."""
        if self.selections:
            drawn = list(self.selections[round % len(self.selections)])
        else:
            drawn = run.rng.integers(0, run.clients, self.n).tolist()
        return sorted(Counter(drawn).items())


@dataclass(frozen=True)
class FedAvgPolicy(Sampled):
    """Synchronous: the server sends its model to the clients drawn and waits for the slowest (DeFedAvg, eqs. 2-3)."""

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        now = 0.0
        for version in count():
            drawn = self.select(run, version)
            updates = [run.train(client, version, now + run.download, times / self.n) for client, times in drawn]
            now = max(update.arrival for update in updates)
            yield Aggregation(version, now, tuple(updates))


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

    @property
    def broadcasts(self) -> bool:
        return True

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if self.receive == "keep" and self.variant == "continue":
            check_repeats(steps * float(pace.step_seconds(0, clients).min()), pace)
        if self.empty == "skip" and pace.upload + pace.download == 0:
            raise ValueError("rounds that skip empty buffers take no time where transfers take none")

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        buffers = _SendBuffers(run, hold=self.variant == "hold", keep=self.receive == "keep")
        run.catch_up = buffers.catch_up
        for version in count():
            now = buffers.arrived[version]
            drawn = self.select(run, version)
            for client, _ in drawn:
                buffers.advance(client, now)
            if self.empty == "skip":
                drawn = [(client, times) for client, times in drawn if buffers.sent[client]]
            delivered = sum(times for _, times in drawn)
            updates = [buffers.take(client, now, times / delivered) for client, times in drawn]
            time = max((update.arrival for update in updates), default=now + run.upload)
            buffers.arrived.append(time + run.download)
            yield Aggregation(version, time, tuple(updates))


class _SendBuffers:
    """Clients do not influence each other, so each is brought up to date only when it is drawn.

    `arrived[t]` is when version t reached the clients and round t starts. Of a client are known: the moment it is free
    for its next job, the version and number of its last one, and the finished job in its send buffer.
    """

    def __init__(self, run: Simulation, hold: bool, keep: bool) -> None:
        self.run, self.hold, self.keep = run, hold, keep
        self.arrived = [run.download]
        self.free = [run.download] * run.clients
        self.fetched = [-1] * run.clients
        self.sent: list[tuple[int, int, float, float] | None] = [None] * run.clients  # job, version, start, end

    def take(self, client: int, now: float, weight: float) -> Update:
        """Empties the client's send buffer at virtual second `now`, or when its next job ends if the buffer is empty.
        Returns the `Update` of that job, with upload time and `weight`, its share. Only times are simulated; no model
        is trained."""
        run, taken = self.run, now
        if self.sent[client] is None:
            following = self._next(client)
            assert following is not None, "a client drawn with an empty send buffer has a model to train from"
            self._train(client, *following)
            taken = self.free[client]
        finished = self.sent[client]
        assert finished is not None
        self.sent[client] = None
        if self.hold:
            self.free[client] = taken
        job, version, start, end = finished
        run.note(client, job, version, start, end, taken + run.upload)
        return Update(client, job, version, run.steps, start, end, taken + run.upload, weight)

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

    def advance(self, client: int, now: float) -> None:
        """Complete the jobs that end by `now`. Later ones are not decided: a newer model may come in this instant."""
        while not (self.hold and self.sent[client]):
            following = self._next(client)
            # A job that starts now does so after the server has looked into the send buffers.
            if following is None or following[0] == now or following[0] + self.run.job_seconds[client] > now:
                return
            self._train(client, *following)

    def _train(self, client: int, start: float, version: int) -> None:
        job, end = self.run.started[client], start + self.run.job_seconds[client]
        self.run.note(client, job, version, start, end)
        self.sent[client] = (job, version, start, end)
        self.run.started[client] += 1
        self.fetched[client], self.free[client] = version, end

    def catch_up(self, horizon: float) -> None:
        """Note all jobs that end by the horizon, and the one that each client is at then."""
        for client in range(self.run.clients):
            self.advance(client, horizon)
            running = self._next(client)
            if running is not None and not (self.hold and self.sent[client]):
                start, version = running
                end = start + self.run.job_seconds[client]
                self.run.note(client, self.run.started[client], version, start, end)


@dataclass(frozen=True)
class FavanoPolicy(Policy):
    """The server interrupts n clients, averages their models with its own and sends them the result (FAVANO / QuAFL).

    The clients of a round are drawn without replacement from numpy.random.default_rng([seed, 12]). Each has completed
    q <= K steps since its last contact and starts anew. `contact`: "serial" - one after the other, a round lasts n
    round trips; "parallel" - one round trip. `wait`: pause between rounds, in round trips (FAVANO's own experiments:
    4/3). The weight of an update is 1 / (n + 1); the server's own model has the same.
    """

    n: Clients
    contact: Literal["serial", "parallel"] = "serial"
    wait: NonNegative = 0.0

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if not pace.upload + pace.download > 0:
            raise ValueError("favano needs transfers that take time: without them its rounds would take none")
        if self.n > clients:
            raise ValueError(f"favano cannot draw {self.n} of {clients} clients without replacement")

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        trip = run.upload + run.download
        begun, held = [run.download] * run.clients, [0] * run.clients  # moment and version of the last contact
        for client in range(run.clients):
            run.note(client, 0, 0, run.download, run.download + run.job_seconds[client])
        now = run.download
        for version in count():
            chosen = sorted(run.rng.choice(run.clients, self.n, replace=False).tolist())
            time = now + (self.n * trip if self.contact == "serial" else trip)
            updates = []
            for client in chosen:
                job, start, seconds = run.started[client], begun[client], run.step_seconds[client]
                # The small number keeps a step that ends in the instant of the contact.
                steps = min(run.steps, math.floor((now - start) / seconds + 1e-9)) if seconds else run.steps
                end = start + steps * seconds
                updates.append(Update(client, job, held[client], steps, start, end, time, 1 / (self.n + 1)))
                run.note(client, job, held[client], start, min(start + run.steps * seconds, now), time)
                run.started[client], held[client], begun[client] = job + 1, version + 1, time
                run.note(client, job + 1, version + 1, time, time + run.job_seconds[client])
            yield Aggregation(version, time, tuple(updates))
            now = time + self.wait * trip


# --- the first n updates to arrive -----------------------------------------------------------------------------------

# Order of the events of one instant; starts of jobs come after all of them.
COMPLETION, ARRIVAL, BROADCAST = 0, 1, 2

Concurrency = Literal["n", "N"]
"""The number of clients at work: "N" - all; "n" - as many as updates are aggregated. Then every arrival hands the
current model to a client drawn uniformly from those at rest, the one that just arrived included; the draws, and the
random permutation whose first clients begin, come from numpy.random.default_rng([seed, 12])."""


@dataclass(frozen=True)
class DeFedAvgIIDPolicy(Policy):
    """Clients train all the time and upload at once; the server takes the first n updates (DeFedAvg, Alg. 2).

    Every aggregated model is sent to all clients; a client that is free trains from the newest model received.
    `block_uplink`: it is free only when its upload is done. `download_on_path`: it fetches the model only when it is
    free, so that the download delays its job. `receive`: "consume" - trains from a model once, then waits for the next
    (hence n <= clients); "keep" - any number of times.
    """

    n: Clients
    block_uplink: bool = True
    download_on_path: bool = False
    receive: Receive = "consume"

    @property
    def broadcasts(self) -> bool:
        return not self.download_on_path

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if self.receive == "consume" and self.n > clients:
            raise ValueError(
                f"deadlock: the server would wait forever for {self.n} updates of a model that {clients} clients train "
                'from once; let n be at most their number, or receive="keep"'
            )
        fetch, blocked = pace.download * self.download_on_path, pace.upload * self.block_uplink
        if self.receive == "keep":
            check_repeats(steps * float(pace.step_seconds(0, clients).min()) + fetch + blocked, pace)

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        # A model is seen by the clients `spread` after the aggregation; a job starts `fetch` after they see it.
        spread, fetch = (0.0, run.download) if self.download_on_path else (run.download, 0.0)
        fetched = [-1] * run.clients  # the version that each client trained from last
        waiting, batch, version, newest = list(range(run.clients)), [], 0, -1
        heap: list[tuple[float, int, int, Update | None]] = [(spread, BROADCAST, 0, None)]  # time, kind, which, update
        while True:
            now = heap[0][0]
            free: list[int] = []
            while heap and heap[0][0] == now:
                _, kind, which, update = heappop(heap)
                if update is not None:
                    batch.append(update)
                    if self.block_uplink:
                        free.append(which)
                    if len(batch) == self.n:
                        version += 1
                        heappush(heap, (now + spread, BROADCAST, version, None))
                        yield Aggregation(version - 1, now, tuple(batch))
                        batch = []
                elif kind == COMPLETION:
                    free.append(which)
                else:
                    newest = which
                    free += waiting
                    waiting = []
            for client in free:
                if newest > fetched[client] or self.receive == "keep":
                    fetched[client] = newest
                    update = run.train(client, newest, now + fetch, 1 / self.n)
                    heappush(heap, (update.arrival, ARRIVAL, client, update))
                    if not self.block_uplink:
                        heappush(heap, (update.end, COMPLETION, client, None))
                else:
                    waiting.append(client)


@dataclass(frozen=True)
class FedBuffPolicy(Policy):
    """All clients pull the current model, train and push; the server aggregates every n updates (FedBuff, Alg. 1).

    A client is asked again in the instant its update arrives, from the model that includes it if it was the n-th.
    Unlike in DeFedAvg-IID the download delays the job, and nobody waits for a new model.
    """

    n: Clients
    concurrency: Concurrency = "N"

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if self.concurrency == "n" and self.n > clients:
            raise ValueError(f"{self.n} of {clients} clients cannot work at a time")

    def aggregations(self, run: Simulation) -> Iterator[Aggregation]:
        working = self.n if self.concurrency == "n" else run.clients
        order = run.rng.permutation(run.clients).tolist() if working < run.clients else list(range(run.clients))
        resting, batch, version = order[working:], [], 0
        heap: list[tuple[float, int, Update]] = []

        def dispatch(client: int, now: float) -> None:
            update = run.train(client, version, now + run.download, 1 / self.n)
            heappush(heap, (update.arrival, client, update))

        for client in order[:working]:
            dispatch(client, 0.0)
        while True:
            now, client, update = heappop(heap)
            batch.append(update)
            if len(batch) == self.n:
                yield Aggregation(version, now, tuple(batch))
                batch = []
                version += 1
            if resting:
                resting.append(client)
                place = int(run.rng.integers(len(resting)))
                resting[place], resting[-1] = resting[-1], resting[place]
                client = resting.pop()
            dispatch(client, now)


@dataclass(frozen=True)
class AsySGPolicy(FedBuffPolicy):
    """Asynchronous stochastic gradient (AsySG-con, Lian et al.): as FedBuff with one gradient per job."""

    concurrency: Concurrency = "n"

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if steps != 1:
            raise ValueError(f"asysg computes one gradient per job: its clock has steps=1, not {steps}")
        super().check(clients, steps, pace)


POLICIES: Mapping[str, type[Policy]] = {
    "defedavg_iid": DeFedAvgIIDPolicy, "defedavg_niid": DeFedAvgNIIDPolicy, "fedavg": FedAvgPolicy,
    "favano": FavanoPolicy, "asysg": AsySGPolicy, "fedbuff": FedBuffPolicy,
}  # fmt: skip
"""Of the algorithms of `algorithms.asynchronous`, by their names."""
