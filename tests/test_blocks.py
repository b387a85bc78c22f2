"""Schedules as blocks of arrays: equal to the simulation in Python to the bit, compiled or not, whatever their size."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduce.clocks import blocks as module
from reproduce.clocks.blocks import KERNELS, Block, blocks
from reproduce.engine.kernels import library
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Aggregation, Policy, Schedule, Update
from reproduce.systems.speeds import FASHION_MNIST, Explicit, Pace
from tests import event_loop
from tests.test_schedule_properties import schedules

module._library()  # built before hypothesis looks at the clock
needs_compiler = pytest.mark.skipif(library.compiler() is None, reason="no C compiler")


def objects(found: list[Block]) -> list[Aggregation]:
    """What the blocks say, as `Schedule.simulate` gives it."""
    drawn = []
    for b in found:
        columns = (b.client, b.job, b.version, b.steps, b.start, b.end, b.arrival, b.weight)
        rows = [Update(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]
        for t, time in enumerate(b.time.tolist()):
            drawn.append(Aggregation(b.index + t, time, tuple(rows[b.first[t] : b.first[t + 1]])))
    return drawn


@given(timed=schedules(), seed=st.integers(0, 1000), updates=st.integers(1, 40))
def test_blocks_are_the_schedule(timed: Schedule, seed: int, updates: int) -> None:
    """To the bit; also with so small blocks that many end within one instant."""
    drawn = timed.simulate(seed, 30)
    for compiled in (True, False):
        assert objects(list(blocks(timed, seed, 30, updates=updates, compiled=compiled))) == drawn
        horizon = drawn[20].time
        early = [a for a in timed.simulate(seed, 200) if a.time <= horizon]
        if len(early) < 200:
            assert objects(list(blocks(timed, seed, None, horizon, updates, compiled))) == early


@given(timed=schedules(), seed=st.integers(0, 1000))
def test_schedules_are_those_of_an_independent_event_loop(timed: Schedule, seed: int) -> None:
    expected = event_loop.simulate(timed, seed, 30)
    for found in (timed.simulate(seed, 30), objects(list(blocks(timed, seed, 30)))):
        rows = [
            (a.time, sorted((u.client, u.job, u.start_version, u.steps, u.start, u.weight) for u in a.updates))
            for a in found
        ]
        assert rows == expected


LARGE: list[tuple[Policy, int]] = [
    (FedAvgPolicy(10), 50), (DeFedAvgNIIDPolicy(10), 50), (DeFedAvgNIIDPolicy(10, variant="hold"), 50),
    (DeFedAvgNIIDPolicy(10, empty="skip"), 50), (DeFedAvgIIDPolicy(10), 50),
    (DeFedAvgIIDPolicy(10, block_uplink=False), 50), (FedBuffPolicy(80), 50), (AsySGPolicy(10), 1),
    (FedBuffPolicy(10, "n"), 50), (AsySGPolicy(80, "N"), 1), (FavanoPolicy(10), 50),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "steps"), LARGE)
def test_the_papers_schedules(policy: Policy, steps: int) -> None:
    timed = Schedule(policy, 100, steps, FASHION_MNIST)
    found = list(blocks(timed, 1, horizon=40.0, updates=500))
    assert objects(found) == timed.simulate(1, horizon=40.0)
    assert len(found) > 1 or isinstance(policy, FavanoPolicy)
    for b in found:
        assert {len(getattr(b, f.name)) for f in fields(b) if f.name not in ("index", "time", "first")} == {b.first[-1]}
        assert (b.staleness == [s for a in objects([b]) for s in a.staleness]).all()


def test_every_policy_has_a_compiled_loop() -> None:
    assert {type(policy) for policy, _ in LARGE} == set(KERNELS)


def test_versions_that_nobody_can_start_from_are_forgotten() -> None:
    """Far more rounds than the kernel has room for; clients that are rarely drawn need old versions longest."""
    speeds = Explicit((1.0, 40.0, 1.5, 3.0))
    for policy in (DeFedAvgNIIDPolicy(1), DeFedAvgNIIDPolicy(1, variant="hold"), DeFedAvgNIIDPolicy(2, receive="keep")):
        timed = Schedule(policy, 4, 1, Pace(0.01, 0.002, 0.001, speeds))
        assert objects(list(blocks(timed, 0, 6000))) == timed.simulate(0, 6000)


@needs_compiler
@pytest.mark.parametrize("policy", [p for p, _ in LARGE])
def test_memory_does_not_grow_with_the_horizon(policy: Policy) -> None:
    """Of Python's objects; what C holds is bounded by clients and versions in use (schedule.c)."""

    def peak(aggregations: int) -> int:
        timed = Schedule(policy, 100, 1 if isinstance(policy, AsySGPolicy) else 50, FASHION_MNIST)
        tracemalloc.start()
        for _ in blocks(timed, 0, aggregations, updates=1000):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(20000) < 1.2 * peak(2000)


def test_without_a_compiler_python_takes_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    timed = Schedule(FedBuffPolicy(10), 100, 50, FASHION_MNIST)
    compiled = objects(list(blocks(timed, 0, 50)))
    monkeypatch.setenv("CC", "none")
    assert module._library() is None
    assert objects(list(blocks(timed, 0, 50))) == compiled


@needs_compiler
def test_a_compiler_that_fails_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'x.c:1: error: no' >&2; exit 1\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setattr(library, "_folder", lambda: tmp_path)
    assert module._library() is None
    assert "x.c:1: error: no; Python takes over" in capsys.readouterr().err


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="say how many"):
        list(blocks(Schedule(FedAvgPolicy(1), 2, 1, FASHION_MNIST), 0))
