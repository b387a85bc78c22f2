"""The line that a workflow prints while it runs."""

from __future__ import annotations

import io
import logging
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import miniature
import pytest

from reproduce.cli.watch import Watch
from reproduce.runs import costs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, parallel: int = 2) -> Watch:
    jobs: Any = [SimpleNamespace(paper="fedacs", name=name) for name in ("a", "b", "c")]
    hours = {"a": 1, "b": 2, "c": 6}
    monkeypatch.setattr(costs, "due", lambda job: SimpleNamespace(seconds=3600 * hours[job.name]))
    return Watch(logging.StreamHandler(stream), jobs, parallel)


def say(handler: Watch, event: str | None, message: str | None = None, level: int = logging.INFO, **more: Any) -> None:
    record = logging.makeLogRecord({"msg": message, "levelno": level, **more} | ({"event": event} if event else {}))
    handler.emit(record)


def start(handler: Watch, number: int, rule: str, **wildcards: str) -> None:
    say(handler, "job_info", jobid=number, rule_name=rule, wildcards=wildcards)


def hands(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the watch's clock shows, to be turned."""
    shown = [1000.0]
    its = SimpleNamespace(monotonic=lambda: shown[0], time=time.time, strftime=time.strftime, localtime=time.localtime)
    monkeypatch.setattr("reproduce.cli.watch.time", its)
    return shown


def test_the_line_says_what_is_done_what_runs_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    handler, clock = watch(monkeypatch, io.StringIO()), hands(monkeypatch)
    say(handler, "run_info", "Job stats", stats={"train": 3, "total": 5})
    start(handler, 1, "train", paper="fedacs", job="a")
    start(handler, 2, "train", paper="fedacs", job="b")
    assert re.fullmatch(
        r"0 of 5 done, about 6 h 0 min left \(until \d\d:\d\d\): train fedacs/a, train fedacs/b", handler.line()
    ), "no shorter than the longest job"
    clock[0] += 2 * 3600
    say(handler, "job_finished", job_id=2)
    say(handler, "progress", done=1, total=5)
    assert handler.line().endswith(": train fedacs/a")
    handler.jobs = [j for j in handler.jobs if j.name != "c"]
    assert handler.left() == pytest.approx(3600)
    handler.jobs = [SimpleNamespace(paper="fedacs", name=str(n)) for n in range(30)]  # type: ignore[assignment]
    monkeypatch.setattr(costs, "due", lambda job: SimpleNamespace(seconds=60))
    assert handler.left() == pytest.approx(900), "thirty minutes on two cores"
    start(handler, 3, "figure", scale="paper", paper="fedacs", name="fig6")
    assert "make fedacs/fig6" in handler.line()


def test_what_has_finished_was_expected_to_take_what_it_was_when_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that adds seeds has all of them when it has finished, and would cost something else."""
    handler, clock = watch(monkeypatch, io.StringIO(), parallel=1), hands(monkeypatch)
    start(handler, 1, "train", paper="fedacs", job="a")
    monkeypatch.setattr(costs, "due", lambda job: SimpleNamespace(seconds=36000))
    clock[0] += 3600
    say(handler, "job_finished", job_id=1)
    assert handler.left() == pytest.approx(8 * 3600)


def test_the_time_left_follows_the_pace_of_what_has_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = watch(monkeypatch, io.StringIO())
    clock = hands(monkeypatch)
    start(handler, 1, "train", paper="fedacs", job="a")
    clock[0] += 3 * 3600 + 120  # three times what was estimated, and the weight of the estimates
    say(handler, "job_finished", job_id=1)
    assert handler.left() == pytest.approx(3 * 6 * 3600)
    start(handler, 2, "figure", scale="paper", paper="fedacs", name="fig6")
    clock[0] += 5000
    say(handler, "job_finished", job_id=2)
    assert handler.left() == pytest.approx(3 * 6 * 3600), "drawing says nothing of training"


def test_a_terminal_has_one_line_and_a_file_one_per_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), Terminal()):
        handler = watch(monkeypatch, stream)
        start(handler, 1, "train", paper="fedacs", job="a")
        say(handler, None, "Select jobs to execute...")
        say(handler, "job_finished", "Finished jobid: 1", job_id=1)
        say(handler, "progress", done=1, total=3)
        said = stream.getvalue()
        assert "Select jobs" not in said
        assert "Finished jobid" not in said
        assert said.count("\n") == (0 if stream.isatty() else 1)
        assert said.count("\r\033[K") == (2 if stream.isatty() else 0)


def test_errors_warnings_and_unknown_messages_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    handler = watch(monkeypatch, stream)
    start(handler, 1, "train", paper="fedacs", job="a")
    say(handler, "job_error", "it fell over", logging.ERROR, jobid=1)
    say(handler, None, "Select jobs that are wrong", logging.WARNING)
    say(handler, None, "Nothing to be done")
    assert stream.getvalue().splitlines() == ["it fell over", "Select jobs that are wrong", "Nothing to be done"]
    assert not handler.running


def test_a_workflow_prints_the_line_and_not_what_it_replaces(tmp_path: Path) -> None:
    project = miniature.build(tmp_path)
    run = miniature.snakemake(project, "figures/smoke/fedacs_fig2.png", "-c2")
    assert run.returncode == 0, run.stderr
    done = [line.split(" done")[0] for line in run.stderr.splitlines() if re.match(r"\d of 3 done", line)]
    assert done == ["1 of 3", "2 of 3", "3 of 3"]
    for gone in ("Select jobs", "Building DAG", "Job stats", "rule train", "Finished jobid", "Provided cores"):
        assert gone not in run.stderr
    dry = miniature.snakemake(project, "figures/smoke/fiarse_fig1.png", "-c2", "-n")
    assert "rule train" in dry.stdout + dry.stderr
