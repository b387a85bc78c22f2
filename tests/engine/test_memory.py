"""Runs of a job, or clients of a stack, that do not fit into a GPU's memory train in parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import DIGITS, difference, experiment

from reproduce.engine import order
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.client_split import ClientSplit, ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.scheduler import Run, Scheduler
from reproduce.engine.stacking import Chunk
from reproduce.engine.strategies import Strategy
from reproduce.engine.trainer import Trainer
from reproduce.runs.job import begin, cohorts, finish, frame
from reproduce.runs.rates import held
from reproduce.settings import settings

EXPERIMENTS = (experiment(3), experiment(3, lr=0.2))


def started() -> Scheduler:
    return begin(EXPERIMENTS, (0, 1), settings())


def bits(runs: list[Run]) -> list[Any]:
    return [(run.state["x"], run.state["history"], run.state["work"]) for run in runs]


def test_a_cohort_holds_what_fits_and_one_run_at_least() -> None:
    assert cohorts([3, 3, 3, 7, 1], 6) == [[0, 1], [2], [3], [4]]


def test_a_job_in_cohorts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It ends in the same bits, also where it is stopped in its second cohort and goes on."""
    whole = finish(started())
    monkeypatch.setattr("reproduce.runs.job.free_memory", lambda device: 2.5 * held(EXPERIMENTS[0]))
    scheduler, ticks = started(), 0
    assert scheduler.cohorts == [[0, 1], [2, 3]]
    checkpoint = Checkpoint(tmp_path / "checkpoint", scheduler.runs)

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 5:
            checkpoint.save()

    split = finish(scheduler, tick)
    assert not difference(bits(whole), bits(split), "job")
    assert "steps_done" not in split[0].state
    again = started()
    assert Checkpoint(checkpoint.path, again.runs).restore()
    assert [run.done for run in again.runs] == [True, True, False, False]
    assert not difference(bits(whole), bits(finish(again)), "job")
    assert frame(again.runs).equals(frame(whole))


@pytest.mark.parametrize(("room", "sizes"), [(3, [5, 2, 3]), (1, [5, 2, 1, 1, 3, 1, 2, 1, 1])])
def test_a_stack_without_room_is_halved(monkeypatch: pytest.MonkeyPatch, room: int, sizes: list[int]) -> None:
    """Unequal steps and batches; smaller stacks round otherwise in last bits."""
    split = ClientSplits(settings()).get(DIGITS, 0)
    weights, rule = torch.rand(1, 5), Rule(momentum=0.5, mean_gradient=True, first_gradient="single")
    request = Train(
        np.arange(5), np.array([3, 1, 4, 2, 4]), split.initial(), 0.1, 0, rule, np.arange(5), weights=weights
    )
    monkeypatch.setattr("reproduce.engine.trainer.KEEP", 0)
    expected = Trainer(strategy="stacked").train([(split, request)])[0]
    whole, tried = Strategy.train, []

    def train(strategy: Strategy, chunk: Chunk, device_data: Any, **options: Any) -> Any:
        tried.append(len(chunk.slots))
        if len(chunk.slots) > room:
            raise torch.OutOfMemoryError("a GPU is full")
        return whole(strategy, chunk, device_data, **options)

    monkeypatch.setattr(Strategy, "train", train)
    actual = Trainer(strategy="stacked").train([(split, request)])[0]
    assert tried == sizes
    for name in ("rows", "mean_gradient", "first_gradient"):
        torch.testing.assert_close(getattr(actual, name), getattr(expected, name), rtol=0, atol=1e-7)


def test_a_gpu_tells_requests_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By sums that it computes itself: a bit, a sign, an exchange, and a shift by a part make another request."""
    monkeypatch.setattr(order, "PART", 4)
    order._factors.cache_clear()
    x = torch.arange(1.0, 11.0)
    others = [x.clone() for _ in range(5)]
    others[0][9] = torch.nextafter(x[9], x[0])
    others[1][0] = -1
    others[2][[0, 4]] = x[[4, 0]]
    others[3][[1, 2]] = x[[2, 1]]
    others[4] = x.roll(4)
    split: Any = type("Split", (), {"name": b""})
    jobs: list[tuple[ClientSplit, Any]] = [
        (split, Train(np.arange(2), np.ones(2, int), y, 0.1, 0, correction=x)) for y in (x, *others, x.clone())
    ]
    on_host = order.contents(jobs)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    keys = order.contents(jobs)
    order._factors.cache_clear()
    assert [keys.index(key) for key in keys] == [on_host.index(key) for key in on_host] == [0, 1, 2, 3, 4, 5, 0]
    assert not set(keys) & set(on_host)
