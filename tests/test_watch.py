"""The line that a workflow prints below Snakemake's own: how long it still takes."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import miniature
import pytest

from reproduce.cli import watch


@pytest.mark.parametrize(("done", "hours"), [((), 6.0), (("c",), 1.5), (("a", "b", "c"), 0.0)])
def test_the_time_left_is_that_of_what_is_not_trained(
    done: tuple[str, ...], hours: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two cores, and no shorter than the longest job."""
    each = {"a": 1, "b": 2, "c": 6}
    jobs: Any = [SimpleNamespace(name=name) for name in each]
    monkeypatch.setattr(watch.costs, "due", lambda job: SimpleNamespace(seconds=3600 * each[job.name]))
    monkeypatch.setattr(watch.results, "standing", lambda job: SimpleNamespace(holds=job.name in done))
    handler = watch.Watch(jobs, 2)
    expected = max(hours, 2.0) if done == ("c",) else hours
    assert handler.left() == pytest.approx(3600 * expected)
    for event in ("job_info", "progress"):
        handler.emit(logging.makeLogRecord({"event": event, "done": 3, "total": 5}))
    said = capsys.readouterr().err
    assert bool(re.fullmatch(r"3 of 5 done, about [\w ]+ left\n", said)) == bool(expected)
    assert said.count("\n") == bool(expected)


def test_a_workflow_prints_it(tmp_path: Path) -> None:
    project = miniature.build(tmp_path)
    run = miniature.snakemake(project, "figures/smoke/fedacs_fig2.png", "-c1")
    assert run.returncode == 0, run.stderr
    assert re.findall(r"^\d of 3 done, about .*", run.stderr, re.M) == ["1 of 3 done, about 1 min left"]
    assert "3 of 3 steps (100%) done" in run.stderr
