"""The policies once more, event by event: one heap of events in the order of (time, priority, client), as the paper has
them. Written from the paper alone, slow, and without anything of `reproduce.systems` but the numbers of the records."""

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any

import numpy as np

COMPLETION, ARRIVAL, BROADCAST, SELECTION, START = range(5)
Found = tuple[float, list[tuple[int, int, int, int, float, float]]]
"""Time of an aggregation; (client, job, start version, steps, start, weight) of its updates, by client and job."""


class Loop:
    """The heap; a subclass's methods are what happens."""

    def __init__(self, timed: Any, seed: int) -> None:
        self.policy, self.clients, self.steps = timed.policy, range(timed.clients), timed.steps
        self.step = [s * timed.pace.step for s in timed.pace.speeds.slowdowns(seed, timed.clients).tolist()]
        self.seconds = [timed.steps * s for s in self.step]
        self.up, self.down = timed.pace.upload, timed.pace.download
        self.rng = np.random.default_rng([seed, 12])
        self.heap: list[tuple[float, int, int, int, Callable[[], None]]] = []
        self.number = count()
        self.now = 0.0
        self.version = 0
        self.started = [0 for _ in self.clients]
        self.done: list[Found] = []

    def at(self, time: float, priority: int, client: int, act: Callable[..., None], *given: Any) -> None:
        heappush(self.heap, (time, priority, client, next(self.number), lambda: act(*given)))

    def aggregations(self) -> Iterator[Found]:
        while True:
            self.now, _, _, _, act = heappop(self.heap)
            act()
            yield from self.done
            self.done.clear()

    def job(self, client: int, version: int, start: float) -> tuple[int, int, int, int, float]:
        self.started[client] += 1
        return client, self.started[client] - 1, version, self.steps, start

    def aggregate(self, jobs: list[tuple[Any, float]]) -> None:
        self.done.append((self.now, sorted((*job, weight) for job, weight in jobs)))
        self.version += 1

    def draw(self) -> Counter[int]:
        if self.policy.selections:
            return Counter(self.policy.selections[self.version % len(self.policy.selections)])
        return Counter(self.rng.integers(0, len(self.clients), self.policy.n).tolist())


class FedAvg(Loop):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.at(0.0, SELECTION, -1, self.round)

    def round(self) -> None:
        drawn = self.draw()
        self.heard: list[tuple[Any, float]] = []
        for i, times in drawn.items():
            start = self.now + self.down
            job = self.job(i, self.version, start)
            self.at(start + self.seconds[i] + self.up, ARRIVAL, i, self.hear, job, times / self.policy.n, len(drawn))

    def hear(self, job: Any, weight: float, expected: int) -> None:
        self.heard.append((job, weight))
        if len(self.heard) == expected:
            self.aggregate(self.heard)
            self.at(self.now, SELECTION, -1, self.round)


class SendBuffers(Loop):
    """DeFedAvg-nIID."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.received: list[int | None] = [None for _ in self.clients]
        self.sending: list[Any] = [None for _ in self.clients]
        self.running = [False for _ in self.clients]
        self.drawn: Counter[int] = Counter()
        self.wanted: set[int] = set()
        self.heard: list[Any] = []
        self.at(self.down, BROADCAST, -1, self.broadcast, 0)

    def broadcast(self, version: int) -> None:
        self.received = [version for _ in self.clients]
        self.at(self.now, SELECTION, -1, self.select)
        for i in self.clients:
            self.at(self.now, START, i, self.start, i)

    def select(self) -> None:
        self.drawn, self.heard = self.draw(), []
        if self.policy.empty == "skip":
            self.drawn = Counter({i: m for i, m in self.drawn.items() if self.sending[i] is not None})
            if not self.drawn:
                self.at(self.now + self.up, ARRIVAL, -1, self.deliver, None)
        for i in self.drawn:
            if self.sending[i] is None:
                self.wanted.add(i)
            else:
                self.send(i)

    def send(self, i: int) -> None:
        self.at(self.now + self.up, ARRIVAL, i, self.deliver, self.sending[i])
        self.sending[i] = None
        self.at(self.now, START, i, self.start, i)

    def start(self, i: int) -> None:
        holds = self.policy.variant == "hold" and self.sending[i] is not None
        if not self.running[i] and self.received[i] is not None and not holds:
            self.running[i] = True
            self.at(
                self.now + self.seconds[i], COMPLETION, i, self.complete, i, self.job(i, self.received[i], self.now)
            )
            if self.policy.receive == "consume":
                self.received[i] = None

    def complete(self, i: int, job: Any) -> None:
        self.running[i] = False
        self.sending[i] = job
        if i in self.wanted:
            self.wanted.remove(i)
            self.send(i)
        self.at(self.now, START, i, self.start, i)

    def deliver(self, job: Any) -> None:
        if job is not None:
            self.heard.append(job)
        if len(self.heard) == len(self.drawn):
            total = sum(self.drawn.values())
            self.aggregate([(job, self.drawn[job[0]] / total) for job in self.heard])
            self.at(self.now + self.down, BROADCAST, -1, self.broadcast, self.version)


class FirstArrivals(Loop):
    """DeFedAvg-IID."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.received: list[int | None] = [None for _ in self.clients]
        self.busy = [False for _ in self.clients]
        self.heard: list[tuple[Any, float]] = []
        self.broadcast_at(0)

    def broadcast_at(self, version: int) -> None:
        delay = 0.0 if self.policy.download_on_path else self.down
        self.at(self.now + delay, BROADCAST, -1, self.broadcast, version)

    def broadcast(self, version: int) -> None:
        for i in self.clients:
            self.received[i] = version
            self.at(self.now, START, i, self.start, i)

    def start(self, i: int) -> None:
        if self.busy[i] or self.received[i] is None:
            return
        self.busy[i] = True
        begin = self.now + (self.down if self.policy.download_on_path else 0.0)
        self.at(begin + self.seconds[i], COMPLETION, i, self.complete, i, self.job(i, self.received[i], begin))
        if self.policy.receive == "consume":
            self.received[i] = None

    def complete(self, i: int, job: Any) -> None:
        self.at(self.now + self.up, ARRIVAL, i, self.hear, i, job)
        if not self.policy.block_uplink:
            self.free(i)

    def hear(self, i: int, job: Any) -> None:
        self.heard.append((job, 1 / self.policy.n))
        if self.policy.block_uplink:
            self.free(i)
        if len(self.heard) == self.policy.n:
            self.aggregate(self.heard)
            self.heard = []
            self.broadcast_at(self.version)

    def free(self, i: int) -> None:
        self.busy[i] = False
        self.at(self.now, START, i, self.start, i)


class Pull(Loop):
    """FedBuff and AsySG; as few clients as updates may work at a time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.resting: list[int] = []
        order = list(self.clients)
        if getattr(self.policy, "concurrency", "N") == "n" and self.policy.n < len(order):
            order = self.rng.permutation(len(order)).tolist()
            order, self.resting = order[: self.policy.n], order[self.policy.n :]
        self.heard: list[tuple[Any, float]] = []
        for i in order:
            self.dispatch(i)

    def dispatch(self, i: int) -> None:
        start = self.now + self.down
        job = self.job(i, self.version, start)
        self.at(start + self.seconds[i] + self.up, ARRIVAL, i, self.hear, i, job)

    def hear(self, i: int, job: Any) -> None:
        self.heard.append((job, 1 / self.policy.n))
        if len(self.heard) == self.policy.n:
            self.aggregate(self.heard)
            self.heard = []
        if self.resting:
            place = int(self.rng.integers(len(self.resting) + 1))
            if place < len(self.resting):
                i, self.resting[place] = self.resting[place], i
        self.dispatch(i)


class Contacts(Loop):
    """FAVANO."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.last = [(self.down, 0) for _ in self.clients]
        self.at(self.down, SELECTION, -1, self.contact)

    def contact(self) -> None:
        n, trip = self.policy.n, self.up + self.down
        chosen = self.rng.choice(len(self.clients), n, replace=False).tolist()
        jobs = []
        for i in chosen:
            begun, version = self.last[i]
            done = sum(begun + (k + 1) * self.step[i] <= self.now + 1e-9 for k in range(self.steps))
            client, job, *_ = self.job(i, version, begun)
            jobs.append(((client, job, version, done, begun), 1 / (n + 1)))
        last = self.now + (n * trip if self.policy.contact == "serial" else trip)
        self.at(last, ARRIVAL, -1, self.renew, chosen, jobs)

    def renew(self, chosen: list[int], jobs: list[tuple[Any, float]]) -> None:
        self.aggregate(jobs)
        for i in chosen:
            self.last[i] = (self.now, self.version)
        self.at(self.now + self.policy.wait * (self.up + self.down), SELECTION, -1, self.contact)


LOOPS = {
    "FedAvgPolicy": FedAvg, "DeFedAvgNIIDPolicy": SendBuffers, "DeFedAvgIIDPolicy": FirstArrivals,
    "FedBuffPolicy": Pull, "AsySGPolicy": Pull, "FavanoPolicy": Contacts,
}  # fmt: skip


def simulate(timed: Any, seed: int, aggregations: int) -> list[Found]:
    """The first aggregations of a schedule."""
    loop = LOOPS[type(timed.policy).__name__](timed, seed)
    return list(islice(loop.aggregations(), aggregations))
