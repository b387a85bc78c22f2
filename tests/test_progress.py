"""The bar of a job: its rounds, and how near a target is."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.clocks.record import Target
from reproduce.engine.progress import Progress


def run(length: int, done: bool = False, until: Any = None, **state: Any) -> Any:
    clock = SimpleNamespace(length=lambda experiment: length, until=until)
    return SimpleNamespace(experiment=SimpleNamespace(clock=clock), state=state, done=done)


def test_the_bar_counts_the_rounds_of_all_runs_and_those_that_a_finished_one_did_not_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [run(10, round=3), run(10, round=4, done=True), run(5)]
    with Progress("job", runs) as progress:
        progress.update()
        assert (progress.bar.n, progress.bar.total) == (13, 25)
        runs[2].state["round"] = 2
    assert progress.bar.n == 15
    assert re.fullmatch(r"job: 15 of 25 rounds in \d s\n", capsys.readouterr().err), "a log gets one line"


def test_a_long_name_leaves_room_for_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "smoke/play/fedagrac-steps--my-module-fedslow-1eab858821"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert Progress(name, [run(9)]).bar.desc == f"…{name[-39:]}"
    assert Progress("job", [run(9)]).bar.desc == "job"


def test_how_near_a_target_is_that_ends_runs() -> None:
    def row(value: float, metric: str = "accuracy", key: str = "") -> tuple[int, float, str, str, float]:
        return 0, 0.0, metric, key, value

    aim = Target("accuracy", 90.0)
    runs = [
        run(9, until=aim, history=[row(10.0), row(71.25), row(99.0, "loss"), row(98.0, key="client")]),
        run(9, until=("accuracy", 90.0), history=[row(73.0)]),
        run(9, done=True, until=aim, history=[row(91.0)]),
        run(9, until=aim, history=[]),
    ]
    with Progress("job", runs) as progress:
        progress.update()
        assert progress.bar.postfix == "accuracy 71.2 to 73.0, ends at 90"
        runs[1].done = True
        progress.update()
        assert progress.bar.postfix == "accuracy 71.2, ends at 90"
        for r in runs:
            r.done = True
    assert not progress.bar.postfix
    assert not Progress("job", [run(9, history=[row(1.0)])])._near()
