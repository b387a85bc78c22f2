"""Random small systems: what must hold for every schedule, and what is refused.

Lengths of jobs and transfers are small whole numbers, so that many events fall into the same instant.
"""

from collections import Counter, defaultdict
from itertools import pairwise

import event_loop
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from reproduce.clocks.events import Script
from reproduce.systems.policies import (
    AsySGPolicy,
    DeFedAvgIIDPolicy,
    DeFedAvgNIIDPolicy,
    FavanoPolicy,
    FedAvgPolicy,
    FedBuffPolicy,
)
from reproduce.systems.schedule import FASHION_MNIST, ClientJob, Explicit, Pace, Schedule

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
def test_every_schedule(timed: Schedule, seed: int) -> None:
    drawn = timed.simulate(seed, aggregations=25)
    seconds = [timed.steps * s for s in timed.pace.step_seconds(seed, timed.clients).tolist()]
    server = 1 / (timed.policy.n + 1) if isinstance(timed.policy, FavanoPolicy) else 0.0
    exists = [0.0, *(a.time for a in drawn)]
    # A round of favano includes sending the new model to its clients: they have it when it exists.
    download = 0.0 if isinstance(timed.policy, FavanoPolicy) else timed.pace.download

    assert [a.index for a in drawn] == list(range(25))
    assert all(a.time <= b.time for a, b in pairwise(drawn))
    for aggregation in drawn:
        if not aggregation.updates:
            assert getattr(timed.policy, "empty", "") == "skip", "only who skips can come away with nothing"
            continue
        assert sum(u.weight for u in aggregation.updates) + server == pytest.approx(1.0)
        assert min(aggregation.staleness) >= 0
        if isinstance(timed.policy, FedAvgPolicy):
            assert max(aggregation.staleness) == 0
        for u in aggregation.updates:
            assert u.start >= exists[u.start_version] + download, "nobody trains from a model of the future"
            assert u.end <= u.arrival <= aggregation.time
            if isinstance(timed.policy, FavanoPolicy):
                assert 0 <= u.steps <= timed.steps
            else:
                assert u.steps == timed.steps
                assert u.end == u.start + seconds[u.client]
                assert u.arrival >= u.end + timed.pace.upload
    used = Counter((u.client, u.job) for a in drawn for u in a.updates)
    assert max(used.values(), default=1) == 1, "a result enters one aggregation only"


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

    lanes: dict[int, list[ClientJob]] = defaultdict(list)
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
        lambda: Schedule(DeFedAvgIIDPolicy(4), 3, 1, FASHION_MNIST),
        lambda: Schedule(AsySGPolicy(1), 3, 2, FASHION_MNIST),
        lambda: Schedule(AsySGPolicy(4), 3, 1, FASHION_MNIST),
        lambda: Schedule(FedBuffPolicy(4, "n"), 3, 1, FASHION_MNIST),
        lambda: Schedule(FavanoPolicy(4), 3, 1, FASHION_MNIST),
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
        assert Schedule(policy, 3, 1, FASHION_MNIST).simulate(0, aggregations=1)
