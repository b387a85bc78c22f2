"""The bar of a job: its rounds."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.engine.progress import Progress


def run(length: int, done: bool = False, **state: Any) -> Any:
    clock = SimpleNamespace(length=lambda experiment: length)
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
