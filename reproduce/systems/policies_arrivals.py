"""Policies that take the first n updates to arrive: those of DeFedAvg-IID, FedBuff and AsySG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from reproduce.systems.schedule import Aggregation, Policy, Receive, Setup, Simulation, Update, check_repeats
from reproduce.systems.speeds import Pace

# Order of the events of one instant; starts of jobs come after all of them.
COMPLETION, ARRIVAL, BROADCAST = 0, 1, 2

Concurrency = Literal["n", "N"]
"""How many clients work at a time: "N" - all; "n" - as many as updates are aggregated. Then every arrival hands the
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

    n: int
    block_uplink: bool = True
    download_on_path: bool = False
    receive: Receive = "consume"

    def __post_init__(self) -> None:
        _check_n(self.n)
        if self.receive not in ("consume", "keep"):
            raise ValueError(f"unknown use of the receive buffer '{self.receive}'")

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if self.receive == "consume" and self.n > clients:
            raise ValueError(
                f"deadlock: the server would wait forever for {self.n} updates of a model that {clients} clients train "
                'from once; let n be at most their number, or receive="keep"'
            )
        fetch, blocked = pace.download * self.download_on_path, pace.upload * self.block_uplink
        if self.receive == "keep":
            check_repeats(steps * float(pace.step_seconds(0, clients).min()) + fetch + blocked, pace)

    def start(self, setup: Setup) -> Simulation:
        return _DeFedAvgIID(self, setup)


class _DeFedAvgIID(Simulation):
    def __init__(self, policy: DeFedAvgIIDPolicy, setup: Setup) -> None:
        super().__init__(setup)
        self.policy = policy

    def aggregations(self) -> Iterator[Aggregation]:
        policy, setup, seconds = self.policy, self.setup, self.setup.job_seconds
        # A model is seen by the clients `spread` after the aggregation; a job starts `fetch` after they see it.
        spread, fetch = (0.0, setup.download) if policy.download_on_path else (setup.download, 0.0)
        keep = policy.receive == "keep"
        fetched, started = [-1] * setup.clients, [0] * setup.clients
        waiting, batch, version, newest = list(range(setup.clients)), [], 0, -1
        heap: list[tuple[float, int, int, Update | None]] = [(spread, BROADCAST, 0, None)]
        while True:
            now = heap[0][0]
            free: list[int] = []
            while heap and heap[0][0] == now:
                _, kind, which, update = heappop(heap)
                if update is not None:
                    batch.append(update)
                    if policy.block_uplink:
                        free.append(which)
                    if len(batch) == policy.n:
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
                if newest > fetched[client] or keep:
                    start = now + fetch
                    end = start + seconds[client]
                    arrival = end + setup.upload
                    update = Update(client, started[client], newest, setup.steps, start, end, arrival, 1 / policy.n)
                    heappush(heap, (arrival, ARRIVAL, client, update))
                    if not policy.block_uplink:
                        heappush(heap, (end, COMPLETION, client, None))
                    self.note(client, started[client], newest, start, end, arrival)
                    fetched[client] = newest
                    started[client] += 1
                else:
                    waiting.append(client)


@dataclass(frozen=True)
class FedBuffPolicy(Policy):
    """All clients pull the current model, train and push; the server aggregates every n updates (FedBuff, Alg. 1).

    A client is asked again in the instant its update arrives, from the model that includes it if it was the n-th.
    Unlike in DeFedAvg-IID the download delays the job, and nobody waits for a new model.
    """

    n: int
    concurrency: Concurrency = "N"

    def __post_init__(self) -> None:
        _check_n(self.n)
        _check_concurrency(self.concurrency)

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        _check_enough(self.n, self.concurrency, clients)

    def start(self, setup: Setup) -> Simulation:
        return _Pull(setup, self.n, self.n if self.concurrency == "n" else setup.clients)


@dataclass(frozen=True)
class AsySGPolicy(Policy):
    """Asynchronous stochastic gradient (AsySG-con, Lian et al.): as FedBuff with one gradient per job."""

    n: int
    concurrency: Concurrency = "n"

    def __post_init__(self) -> None:
        _check_n(self.n)
        _check_concurrency(self.concurrency)

    def check(self, clients: int, steps: int, pace: Pace) -> None:
        if steps != 1:
            raise ValueError(f"asysg computes one gradient per job: its clock has steps=1, not {steps}")
        _check_enough(self.n, self.concurrency, clients)

    def start(self, setup: Setup) -> Simulation:
        return _Pull(setup, self.n, self.n if self.concurrency == "n" else setup.clients)


class _Pull(Simulation):
    """`concurrency` clients in a cycle of download, job and upload; aggregation of every n arrivals."""

    def __init__(self, setup: Setup, n: int, concurrency: int) -> None:
        super().__init__(setup)
        self.n = n
        self.concurrency = concurrency
        self.seconds = setup.job_seconds
        self.started = [0] * setup.clients
        self.heap: list[tuple[float, int, Update]] = []

    def aggregations(self) -> Iterator[Aggregation]:
        batch, version = [], 0
        if self.concurrency < self.setup.clients:
            order = self.setup.rng.permutation(self.setup.clients).tolist()
        else:
            order = list(range(self.setup.clients))
        resting = order[self.concurrency :]
        for client in order[: self.concurrency]:
            self._dispatch(client, 0.0, version)
        while True:
            now, client, update = heappop(self.heap)
            batch.append(update)
            if len(batch) == self.n:
                yield Aggregation(version, now, tuple(batch))
                batch = []
                version += 1
            if resting:
                resting.append(client)
                place = int(self.setup.rng.integers(len(resting)))
                resting[place], resting[-1] = resting[-1], resting[place]
                client = resting.pop()
            self._dispatch(client, now, version)

    def _dispatch(self, client: int, now: float, version: int) -> None:
        start = now + self.setup.download
        end = start + self.seconds[client]
        arrival = end + self.setup.upload
        job = self.started[client]
        update = Update(client, job, version, self.setup.steps, start, end, arrival, 1 / self.n)
        heappush(self.heap, (arrival, client, update))
        self.note(client, job, version, start, end, arrival)
        self.started[client] += 1


def _check_n(n: int) -> None:
    if n < 1:
        raise ValueError(f"an aggregation needs at least 1 update, not {n}")


def _check_concurrency(concurrency: str) -> None:
    if concurrency not in ("n", "N"):
        raise ValueError(f"the concurrency is 'n' or 'N', not '{concurrency}'")


def _check_enough(n: int, concurrency: Concurrency, clients: int) -> None:
    if concurrency == "n" and n > clients:
        raise ValueError(f"{n} of {clients} clients cannot work at a time")
