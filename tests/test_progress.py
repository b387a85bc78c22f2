"""The bar of a job: its rounds, and the time that passes while a round lasts."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.engine.progress import Progress


def run(length: int, done: bool = False, **state: Any) -> Any:
    clock = SimpleNamespace(length=lambda experiment: length)
    return SimpleNamespace(experiment=SimpleNamespace(clock=clock), state=state, done=done)


def test_the_bar_counts_the_rounds_of_all_runs_and_those_that_a_finished_one_did_not_need() -> None:
    runs = [run(10, round=3), run(10, round=4, done=True), run(5)]
    with Progress("job", runs) as progress:
        progress.update()
        assert (progress.bar.n, progress.bar.total) == (13, 25)
        runs[2].state["round"] = 2
    assert progress.bar.n == 15


def test_the_time_is_shown_while_a_round_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, shown = Progress("job", [run(10)]), Event()
    progress.beat = 0.001
    monkeypatch.setattr(progress.bar, "refresh", lambda *_, **__: shown.set())
    with progress:
        assert shown.wait(60)
    assert not progress.thread.is_alive()
