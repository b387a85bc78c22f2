"""The event clock against known schedules: golden times, the timeline of DeFedAvg's Fig. 1, limiting cases; and random
small systems, in which many events fall into the same instant."""

from collections import defaultdict
from itertools import pairwise

import event_loop
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from reproduce.clocks.events import Script
from reproduce.systems import schedule
from reproduce.systems.policies import (
    AsySGPolicy,
    DeFedAvgIIDPolicy,
    DeFedAvgNIIDPolicy,
    FavanoPolicy,
    FedAvgPolicy,
    FedBuffPolicy,
)
from reproduce.systems.schedule import Explicit, Pace, Policy, Schedule

F, C = schedule.FASHION_MNIST, schedule.CIFAR10


def clock(policy: Policy, pace: Pace = F) -> Schedule:
    return Schedule(policy, clients=100, steps=1 if isinstance(policy, AsySGPolicy) else 50, pace=pace)


def hold(n: int, selections: tuple[tuple[int, ...], ...] = ()) -> DeFedAvgNIIDPolicy:
    return DeFedAvgNIIDPolicy(n, selections, variant="hold")


# Times of the 1st and 100th aggregation, mean and largest staleness, trained updates; 100 clients, seed 0.
GOLDEN = [
    (F, FedAvgPolicy(10), 0.503645, 48.588310, 0, 0, 958),
    (F, DeFedAvgNIIDPolicy(10), 0.503645, 14.805771, 3.0146, 7, 958),
    (F, hold(10), 0.503645, 18.838258, 9.3319, 61, 958),
    (F, DeFedAvgIIDPolicy(10), 0.205964, 2.869407, 10.812, 20, 1000),
    (F, FedBuffPolicy(10), 0.205964, 3.319644, 9.306, 17, 1000),
    (F, AsySGPolicy(10, "N"), 0.090359, 0.964642, 9.36, 10, 1000),
    (F, FavanoPolicy(10), 0.924, 88.044, None, None, 1000),
    (F, FedAvgPolicy(80), 0.511211, 50.926528, 0, 0, 5579),
    (F, DeFedAvgNIIDPolicy(80), 0.511211, 33.332784, 1.3336, 4, 5579),
    (F, hold(80), 0.511211, 35.261779, 1.7396, 13, 5579),
    (F, DeFedAvgIIDPolicy(80), 0.455052, 24.756880, 1.1013, 3, 8000),
    (F, FedBuffPolicy(80), 0.411307, 25.535930, 1.2223, 3, 8000),
    (F, AsySGPolicy(80, "N"), 0.095341, 7.499017, 1.2228, 2, 8000),
    (F, FavanoPolicy(80), 7.084, 704.044, None, None, 8000),
]


@pytest.mark.parametrize(("pace", "policy", "first", "last", "mean", "largest", "uploads"), GOLDEN)
def test_golden_schedules(
    pace: Pace, policy: Policy, first: float, last: float, mean: float | None, largest: int | None, uploads: int
) -> None:
    drawn = clock(policy, pace).simulate(0, aggregations=100)
    staleness = [s for aggregation in drawn for s in aggregation.staleness]
    assert drawn[0].time == pytest.approx(first, abs=5.1e-7)
    assert drawn[-1].time == pytest.approx(last, abs=5.1e-7)
    assert len(staleness) == uploads
    if mean is not None:
        assert np.mean(staleness) == pytest.approx(mean, abs=5.1e-5 if mean < 5 or uploads == 958 else 5.1e-4)
        assert max(staleness) == largest


def test_golden_speeds_and_draws() -> None:
    s = schedule.UniformSlowdown().slowdowns(0, 100)
    assert s[:6] == pytest.approx([3.079592, 1.707823, 2.490612, 1.557105, 4.867331, 3.799711], abs=5.1e-7)
    assert [s.min(), s.max(), s.mean()] == pytest.approx([1.042327, 4.978954, 3.049957], abs=5.1e-7)
    rate = schedule.UniformSlowdown(model="rate").slowdowns(0, 100)
    assert rate == pytest.approx(5 / s)
    drawn = clock(FedAvgPolicy(10)).simulate(0, aggregations=1)[0]
    assert [u.client for u in drawn.updates] == sorted([92, 42, 18, 63, 96, 28, 99, 21, 7, 43])


def test_pace_of_the_paper() -> None:
    assert [F.step, F.upload, F.download] == pytest.approx([1.70e-3, 44.0e-3, 44.0e-3])
    assert [C.step, C.upload, C.download] == pytest.approx([3.14e-3, 70.6e-3, 70.6e-3])


# DeFedAvg, Fig. 1: three clients with jobs of 2.0, 3.3 and 5.1 units, no communication time, two updates at a time.
SETS = ((0, 2), (0, 1), (1, 2))


def figure1(policy: Policy, horizon: float = 20) -> schedule.Timeline:
    pace = Pace(1.0, 0.0, 0.0, Explicit((2.0, 3.3, 5.1)))
    return Schedule(policy, 3, 1, pace).timeline(0, horizon=horizon)


def members(aggregation: schedule.Aggregation) -> set[tuple[int, int]]:
    return {(update.client + 1, update.start_version) for update in aggregation.updates}


def times(trace: schedule.Timeline) -> list[float]:
    return [aggregation.time for aggregation in trace.aggregations]


def lane(trace: schedule.Timeline, client: int) -> list[tuple[float, float, int]]:
    return [(round(j.start, 9), round(j.end, 9), j.start_version) for j in trace.jobs if j.client == client - 1]


def test_figure1_fedavg() -> None:
    trace = figure1(FedAvgPolicy(2, SETS))
    assert times(trace) == pytest.approx([5.1, 8.4, 13.5, 18.6])
    assert times(figure1(FedAvgPolicy(2, SETS), horizon=22))[-1] == pytest.approx(21.9)
    assert trace.idle == pytest.approx(0.488, abs=5e-4)


NIID = [{(1, 0), (3, 0)}, {(1, 1), (2, 0)}, {(2, 1), (3, 1)}, {(1, 2), (3, 3)}]


def test_figure1_niid() -> None:
    trace = figure1(DeFedAvgNIIDPolicy(2, SETS))
    assert times(trace) == pytest.approx([5.1, 7.1, 10.2, 15.3, 15.3])
    assert [members(a) for a in trace.aggregations] == [*NIID, {(1, 3), (2, 3)}]
    assert lane(trace, 1) == [(0, 2, 0), (5.1, 7.1, 1), (7.1, 9.1, 2), (10.2, 12.2, 3), (15.3, 17.3, 5)]
    assert lane(trace, 2) == [(0, 3.3, 0), (5.1, 8.4, 1), (8.4, 11.7, 2), (11.7, 15.0, 3), (15.3, 18.6, 5)]
    assert lane(trace, 3) == [(0, 5.1, 0), (5.1, 10.2, 1), (10.2, 15.3, 3), (15.3, 20.4, 5)]
    # Client 1's last job waits in its send buffer, client 3's is running, and client 2 overwrote one.
    assert [(j.client + 1, j.start_version) for j in trace.jobs if not j.uploaded] == [(1, 5), (2, 2), (3, 5)]
    assert trace.idle == pytest.approx(0.225)


def test_figure1_niid_hold() -> None:
    trace = figure1(hold(2, SETS))
    assert times(trace) == pytest.approx([5.1, 7.1, 10.2, 15.3, 15.3])
    assert [members(a) for a in trace.aggregations] == [*NIID, {(1, 3), (2, 2)}]
    assert lane(trace, 2) == [(0, 3.3, 0), (5.1, 8.4, 1), (8.4, 11.7, 2), (15.3, 18.6, 5)]
    assert all(j.uploaded for j in trace.jobs if j.client == 1 and j.start < 15)
    assert trace.idle == pytest.approx(0.28)
    # Version 3 is there from 10.2, but until it is drawn at 15.3 client 2 holds.
    assert lane(figure1(hold(2, SETS), horizon=15), 2) == [(0, 3.3, 0), (5.1, 8.4, 1), (8.4, 11.7, 2)]


def test_figure1_iid() -> None:
    trace = figure1(DeFedAvgIIDPolicy(2))
    assert times(trace) == pytest.approx([3.3, 5.3, 7.3, 9.9, 11.9, 13.9, 15.9, 17.9, 19.9])
    assert [members(a) for a in trace.aggregations] == [
        {(1, 0), (2, 0)},
        {(3, 0), (1, 1)},
        {(2, 1), (1, 2)},
        {(1, 3), (2, 2)},
        {(3, 1), (1, 4)},
        {(2, 4), (1, 5)},
        {(3, 4), (1, 6)},
        {(2, 5), (1, 7)},
        {(2, 7), (1, 8)},
    ]
    assert trace.idle == pytest.approx(0.032, abs=5e-4)


def test_favano_counts_a_step_that_ends_in_the_instant_of_the_contact() -> None:
    timed = Schedule(FavanoPolicy(1, wait=1.0), 1, 10, Pace(0.1, 0.3, 0.0, Explicit((1.0,))))
    assert [a.updates[0].steps for a in timed.simulate(0, aggregations=3)] == [0, 3, 3]


def test_the_horizon_is_inclusive() -> None:
    drawn = clock(FedBuffPolicy(10)).simulate(0, aggregations=4)
    assert clock(FedBuffPolicy(10)).simulate(0, horizon=drawn[-1].time) == drawn
    assert clock(FedBuffPolicy(10)).simulate(0, aggregations=2, horizon=drawn[-1].time) == drawn[:2]
    assert clock(FedBuffPolicy(10)).simulate(0, aggregations=9, horizon=drawn[2].time) == drawn[:3]


OPTIONS: dict[type, dict[str, list]] = {
    FedAvgPolicy: {},
    DeFedAvgNIIDPolicy: {"variant": ["continue", "hold"], "receive": ["consume", "keep"], "empty": ["wait", "skip"]},
    DeFedAvgIIDPolicy: {f: [True, False] for f in ("block_uplink", "download_on_path")}
    | {"receive": ["consume", "keep"]},
    FedBuffPolicy: {"concurrency": ["n", "N"]},
    AsySGPolicy: {"concurrency": ["n", "N"]},
    FavanoPolicy: {"contact": ["serial", "parallel"], "wait": [0.0, 0.5, 4.0]},
}


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Any policy with any of its options, 1 to 5 clients; steps and transfers that take no time included."""
    lengths = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=5)))
    clients, n = len(lengths), draw(st.integers(1, len(lengths)))
    kind = draw(st.sampled_from(sorted(OPTIONS, key=str)))
    policy = kind(n, **{name: draw(st.sampled_from(values)) for name, values in OPTIONS[kind].items()})
    step, upload, download = (draw(st.sampled_from([0.0, 1.0, 2.0])) for _ in range(3))
    steps = 1 if kind is AsySGPolicy else draw(st.integers(1, 3))
    try:
        return Schedule(policy, clients, steps, Pace(step, upload, download, Explicit(lengths)))
    except ValueError:
        reject()


@given(timed=schedules(), seed=st.integers(0, 1000))
def test_schedules_are_those_of_an_independent_event_loop(timed: Schedule, seed: int) -> None:
    rows = [
        (a.time, sorted((u.client, u.job, u.start_version, u.steps, u.start, u.weight) for u in a.updates))
        for a in timed.simulate(seed, 30)
    ]
    assert rows == event_loop.simulate(timed, seed, 30)


@given(timed=schedules(), seed=st.integers(0, 1000))
def test_scripts_are_the_schedule(timed: Schedule, seed: int) -> None:
    """Also with rounds that nobody delivers to."""
    drawn, script = timed.simulate(seed, 30), Script.of(timed, seed, 30, None)
    assert script.time.tolist() == [a.time for a in drawn]
    assert np.diff(script.first).tolist() == [len(a.updates) for a in drawn]
    columns = (script.client, script.job, script.version, script.steps, script.weight)
    updates = [u for a in drawn for u in a.updates]
    assert [*zip(*(c.tolist() for c in columns), strict=True)] == [
        (u.client, u.job, u.start_version, u.steps, u.weight) for u in updates
    ]
    uses = [[a.index for a in drawn for u in a.updates if u.start_version == v] for v in range(31)]
    assert script.last_use.tolist() == [max(found, default=-1) for found in uses]


@given(timed=schedules(), seed=st.integers(0, 1000), horizon=st.integers(1, 60))
def test_every_trace(timed: Schedule, seed: int, horizon: int) -> None:
    trace = timed.timeline(seed, horizon=horizon)
    assert list(trace.aggregations) == timed.simulate(seed, horizon=horizon)
    assert all(a.time <= horizon for a in trace.aggregations)
    if trace.aggregations:
        assert list(trace.aggregations) == timed.simulate(seed, aggregations=len(trace.aggregations))
    assert -1e-12 <= trace.idle <= 1

    lanes: dict[int, list[schedule.ClientJob]] = defaultdict(list)
    for job in trace.jobs:
        lanes[job.client].append(job)
    for lane in lanes.values():
        assert [job.job for job in lane] == list(range(len(lane)))
        assert all(a.end <= b.start for a, b in pairwise(lane)), "one job at a time"
        assert all(job.start < horizon for job in lane)
    uploaded = {(job.client, job.job): job.start_version for job in trace.jobs if job.uploaded}
    for u in (u for a in trace.aggregations for u in a.updates):
        if u.start < horizon:
            assert uploaded[u.client, u.job] == u.start_version


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schedule(DeFedAvgIIDPolicy(4), 3, 1, schedule.FASHION_MNIST),
        lambda: Schedule(AsySGPolicy(1), 3, 2, schedule.FASHION_MNIST),
        lambda: Schedule(FavanoPolicy(1), 3, 1, Pace(1.0, 0.0, 0.0)),
        lambda: Schedule(FedAvgPolicy(1), 3, 1, Pace(1.0, 1.0, 1.0, Explicit((1.0, 2.0)))),
        lambda: Pace(0.0, 0.0, 0.0),
        lambda: Schedule(DeFedAvgNIIDPolicy(1, receive="keep"), 3, 1, Pace(0.0, 1.0, 1.0)),
        lambda: Schedule(DeFedAvgIIDPolicy(1, block_uplink=False, receive="keep"), 3, 1, Pace(0.0, 1.0, 1.0)),
        lambda: Schedule(DeFedAvgNIIDPolicy(1, receive="keep"), 3, 1, Pace(1e-7, 1.0, 1.0)),
        lambda: Schedule(DeFedAvgIIDPolicy(1, block_uplink=False, receive="keep"), 3, 1, Pace(1e-7, 1.0, 1.0)),
        lambda: Schedule(DeFedAvgNIIDPolicy(1, empty="skip"), 3, 1, Pace(1.0, 0.0, 0.0)),
    ],
)
def test_nonsense_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        make()


def test_as_many_updates_as_there_are_clients_make_sense() -> None:
    for policy in (DeFedAvgIIDPolicy(3), FedBuffPolicy(3, "n"), AsySGPolicy(3, "n"), FavanoPolicy(3)):
        assert Schedule(policy, 3, 1, schedule.FASHION_MNIST).simulate(0, aggregations=1)
