"""Policies that take the first n updates to arrive: those of DeFedAvg-IID, FedBuff and AsySG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from reproduce.systems.schedule import Aggregation, Clients, Policy, Receive, Simulation, Update, check_repeats
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

    n: Clients
    block_uplink: bool = True
    download_on_path: bool = False
    receive: Receive = "consume"

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
