"""The event clock on random small systems: what must hold for every schedule, and an independent DeFedAvg-nIID.

Lengths of jobs and transfers are small whole numbers, so that many events fall into the same instant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heappop, heappush
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduce.experiment import canonical
from reproduce.systems.policies import AsySG, DeFedAvgIID, DeFedAvgNIID, Favano, FedAvg, FedBuff
from reproduce.systems.schedule import EventClock, Job
from reproduce.systems.speeds import FASHION_MNIST, Costs, Explicit, UniformSlowdown


@st.composite
def clocks(draw: st.DrawFn) -> EventClock:
    """Any policy with any of its options, 1 to 5 clients."""
    lengths = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=5)))
    clients, n = len(lengths), draw(st.integers(1, len(lengths)))
    kind = draw(st.sampled_from([FedAvg, DeFedAvgNIID, DeFedAvgIID, FedBuff, AsySG, Favano]))
    options = {
        DeFedAvgNIID: {"variant": ["continue", "hold"], "receive": ["consume", "keep"]},
        DeFedAvgIID: {"block_uplink": [True, False], "download_on_path": [True, False], "receive": ["consume", "keep"]},
        AsySG: {"concurrency": ["n", "N"]},
        Favano: {"contact": ["serial", "parallel"], "wait": [0.0, 0.5, 4.0]},
    }.get(kind, {})
    policy = kind(n, **{name: draw(st.sampled_from(values)) for name, values in options.items()})
    upload, download = draw(st.integers(0, 3)), draw(st.integers(1 if kind is Favano else 0, 3))
    steps = 1 if kind is AsySG else draw(st.integers(1, 3))
    return EventClock(policy, clients, steps, Costs(1.0, float(upload), float(download)), Explicit(lengths))


@given(timed=clocks(), seed=st.integers(0, 1000))
def test_every_schedule(timed: EventClock, seed: int) -> None:
    drawn = timed.simulate(seed, aggregations=25)
    seconds = [timed.steps * s for s in timed.speeds.slowdowns(seed, timed.clients).tolist()]
    server = 1 / (timed.policy.n + 1) if isinstance(timed.policy, Favano) else 0.0
    exists = [0.0, *(a.time for a in drawn)]
    # A round of favano includes sending the new model to its clients: they have it when it exists.
    download = 0.0 if isinstance(timed.policy, Favano) else timed.costs.download

    assert [a.index for a in drawn] == list(range(25))
    assert all(a.time <= b.time for a, b in pairwise(drawn))
    for aggregation in drawn:
        assert sum(u.weight for u in aggregation.updates) + server == pytest.approx(1.0)
        assert min(aggregation.staleness) >= 0
        if isinstance(timed.policy, FedAvg):
            assert max(aggregation.staleness) == 0
        for u in aggregation.updates:
            assert u.start >= exists[u.start_version] + download, "nobody trains from a model of the future"
            assert u.end <= u.arrival <= aggregation.time
            if isinstance(timed.policy, Favano):
                assert 0 <= u.steps <= timed.steps
            else:
                assert u.steps == timed.steps
                assert u.end == u.start + seconds[u.client]
                assert u.arrival >= u.end + timed.costs.upload
    used = Counter((u.client, u.job) for a in drawn for u in a.updates)
    assert max(used.values()) == 1, "a result enters one aggregation only"


@given(timed=clocks(), seed=st.integers(0, 1000), horizon=st.integers(1, 60))
def test_every_trace(timed: EventClock, seed: int, horizon: int) -> None:
    trace = timed.trace(seed, horizon=horizon)
    assert list(trace.aggregations) == timed.simulate(seed, horizon=horizon)
    assert all(a.time <= horizon for a in trace.aggregations)
    if trace.aggregations:
        assert list(trace.aggregations) == timed.simulate(seed, aggregations=len(trace.aggregations))
    assert -1e-12 <= trace.idle <= 1

    lanes: dict[int, list[Job]] = defaultdict(list)
    for job in trace.jobs:
        lanes[job.client].append(job)
    for lane in lanes.values():
        assert [job.job for job in lane] == list(range(len(lane)))
        assert all(a.end <= b.start for a, b in pairwise(lane)), "one job at a time"
        assert all(job.start < horizon for job in lane)
        assert not any(job.uploaded and job.overwritten for job in lane)
    uploaded = {(job.client, job.job): job.start_version for job in trace.jobs if job.uploaded}
    for u in (u for a in trace.aggregations for u in a.updates):
        if u.start < horizon:
            assert uploaded[u.client, u.job] == u.start_version


@given(timed=clocks(), seed=st.integers(0, 1000))
def test_schedules_are_repeatable_and_declarable(timed: EventClock, seed: int) -> None:
    assert timed.simulate(seed, 10) == timed.simulate(seed, 10)
    assert hash(timed) == hash(timed)
    assert canonical(timed)["policy"]["n"] == timed.policy.n


COMPLETION, ARRIVAL, BROADCAST, SELECTION, START = range(5)


def events_of_niid(
    lengths: list[int], upload: int, download: int, sets: list[tuple[int, ...]], hold: bool, aggregations: int
) -> list[tuple[float, list[tuple[int, int, int, float]]]]:
    """DeFedAvg-nIID event by event: (time, [(client, job, start version, start)]) of every aggregation."""
    clients = range(len(lengths))
    received: list[int | None] = [None for _ in clients]
    sending: list[tuple | None] = [None for _ in clients]
    running = [False for _ in clients]
    started = [0 for _ in clients]
    wanted: set[int] = set()
    heard: list[tuple] = []
    done: list[tuple] = []
    heap: list[tuple] = []
    count = 0

    def push(time: float, kind: int, client: int = 0, data: object = None) -> None:
        nonlocal count
        count += 1
        heappush(heap, (time, kind, client, count, data))

    push(download, BROADCAST, data=0)
    while len(done) < aggregations:
        now, kind, client, _, data = heappop(heap)
        chosen = sorted(set(sets[len(done) % len(sets)]))
        if kind == COMPLETION:
            running[client] = False
            sending[client] = data
            if client in wanted:
                wanted.remove(client)
                sending[client] = None
                push(now + upload, ARRIVAL, client, data)
            push(now, START, client)
        elif kind == ARRIVAL:
            heard.append(data)
            if len(heard) == len(chosen):
                done.append((now, sorted(heard)))
                heard = []
                push(now + download, BROADCAST, data=len(done))
        elif kind == BROADCAST:
            received = [data for _ in clients]
            push(now, SELECTION)
            for i in clients:
                push(now, START, i)
        elif kind == SELECTION:
            for i in chosen:
                if sending[i] is None:
                    wanted.add(i)
                else:
                    push(now + upload, ARRIVAL, i, sending[i])
                    sending[i] = None
                    push(now, START, i)
        elif not running[client] and received[client] is not None and not (hold and sending[client]):
            running[client] = True
            push(now + lengths[client], COMPLETION, client, (client, started[client], received[client], now))
            started[client] += 1
            received[client] = None
    return done


@given(data=st.data(), hold=st.booleans(), upload=st.integers(0, 2), download=st.integers(0, 2))
def test_niid_is_the_simulation_event_by_event(data: st.DataObject, hold: bool, upload: int, download: int) -> None:
    lengths = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    n = data.draw(st.integers(1, 3))
    client = st.integers(0, len(lengths) - 1)
    sets = data.draw(st.lists(st.tuples(*[client] * n), min_size=1, max_size=5))
    policy = DeFedAvgNIID(n, tuple(sets), variant="hold" if hold else "continue")
    timed = EventClock(policy, len(lengths), 1, Costs(1.0, upload, download), Explicit(tuple(lengths)))
    drawn = [
        (a.time, [(u.client, u.job, u.start_version, u.start) for u in a.updates])
        for a in timed.simulate(0, aggregations=30)
    ]
    assert drawn == events_of_niid(lengths, upload, download, sets, hold, aggregations=30)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EventClock(FedAvg(0), 3, 1),
        lambda: EventClock(FedAvg(1), 0, 1),
        lambda: EventClock(FedAvg(1), 3, 0),
        lambda: EventClock(FedAvg(2, ((0,),)), 3, 1),
        lambda: EventClock(FedAvg(1, ((3,),)), 3, 1),
        lambda: EventClock(DeFedAvgNIID(1, variant="wait"), 3, 1),  # type: ignore[arg-type]
        lambda: EventClock(DeFedAvgIID(4), 3, 1),
        lambda: EventClock(AsySG(1), 3, 2),
        lambda: EventClock(AsySG(4), 3, 1),
        lambda: EventClock(AsySG(1, "all"), 3, 1),  # type: ignore[arg-type]
        lambda: EventClock(Favano(4), 3, 1),
        lambda: EventClock(Favano(1), 3, 1, Costs(1.0, 0.0, 0.0)),
        lambda: EventClock(Favano(1, wait=-1), 3, 1),
        lambda: EventClock(FedAvg(1), 3, 1, speeds=Explicit((1.0, 2.0))),
        lambda: Costs(0.0, 1.0, 1.0),
        lambda: Costs(1.0, -1.0, 1.0),
        lambda: Explicit((1.0, 0.0)),
        lambda: UniformSlowdown(5, 1),
        lambda: UniformSlowdown(model="speed"),  # type: ignore[arg-type]
        lambda: EventClock(FedAvg(1), 3, 1, FASHION_MNIST).simulate(0),
        lambda: EventClock(FedAvg(1), 3, 1, FASHION_MNIST).simulate(0, aggregations=0),
        lambda: EventClock(FedAvg(1), 3, 1, FASHION_MNIST).trace(0, horizon=float("inf")),
    ],
)
def test_nonsense_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        make()
