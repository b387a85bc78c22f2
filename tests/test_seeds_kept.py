"""Nothing that was trained is lost, joined unseen or read unasked, whatever happens to a results file meanwhile."""

from __future__ import annotations

import json
import os
import re
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reproduce.cli import render
from reproduce.declare.experiment import code
from reproduce.errors import UserError
from reproduce.runs import due, plan, results, training
from reproduce.runs import job as engine
from reproduce.runs.plan import Job
from reproduce.store import results as store

QUICK = next(j for j in plan.jobs("smoke") if j.name == "fig4-lr-async")
FILE = Path(QUICK.output)


def seeded(*seeds: int, job: Job = QUICK) -> Job:
    return replace(job, panel=replace(job.panel, seeds=seeds))


def edit(file: Path = FILE, **others: Any) -> None:
    """Say something else in the provenance of a results file."""
    store._write(file, pd.read_parquet(file), {**results.provenance(file), **others})


def held() -> list[int]:
    return list(results.provenance(FILE)["seeds"])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], bool], None]:
    """Lets something happen once during the next training, before it or after it."""

    def plan_it(happens: Callable[[], object], after: bool = True) -> None:
        real = engine.train_job

        def train_job(*arguments: Any) -> None:
            monkeypatch.setattr(engine, "train_job", real)
            if not after:
                happens()
            real(*arguments)
            if after:
                happens()

        monkeypatch.setattr(engine, "train_job", train_job)

    return plan_it


# --- what is asked for is less than what is there ---------------------------------------------------------------------


@pytest.mark.parametrize("source", ["older", "current"])
@pytest.mark.parametrize("asked", [(0,), (2, 3)])
def test_seeds_that_are_not_asked_for_are_not_thrown_away(
    source: str, asked: tuple[int, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    training.train(seeded(0, 1))
    if source == "older":
        edit(code="other")
    before, date = FILE.read_bytes(), results.provenance(FILE)["date"]
    training.train(seeded(*asked))
    if source == "current" and asked == (2, 3):
        assert held() == [2, 3, 0, 1], "they are put beside the others"
        assert not Path("store/replaced").exists()
        return
    assert held() == list(asked)
    (kept,) = Path("store/replaced").iterdir()
    assert kept.read_bytes() == before
    assert re.sub(r"\W", "", date) in kept.name
    assert f"is kept as {kept.absolute()}" in capfd.readouterr().err
    training.train(seeded(*dict.fromkeys((*asked, 1, 0))))
    assert len(list(Path("store/replaced").iterdir())) == 1


def test_seeds_that_nobody_asks_for_cost_nothing_in_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """In cells of what a run costs, which are read from the provenance, and of every file by its own order of seeds."""
    artifact = "dynamic_init/table15"
    for i, job in enumerate(plan.artifact_jobs("smoke", artifact)):
        training.train(seeded(*((0, 9, 1) if i % 2 else (1, 0)), job=job))
        seeds = results.provenance(job.output)["seeds"]
        edit(Path(job.output), cpu_seconds_of=[[seed + 1.0 for seed in seeds]] * len(job.experiments))
    monkeypatch.setenv("REPRODUCE_SEEDS", "0,1")
    render.run(Namespace(scale="smoke", artifact=artifact))
    cells = pd.read_csv(plan.cells_file("smoke", artifact))
    assert set(cells["seed"]) == {0, 1}
    spent = cells[cells["metric"] == "cpu_time_seconds"].groupby("seed")["value"].apply(list)
    assert [2 * seconds for seconds in spent[0]] == spent[1]


# --- a file that changes while seeds are trained for it ---------------------------------------------------------------


def damage() -> None:
    """Other numbers under the old checksum."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(FILE)
    frame = table.to_pandas()
    parquet.write_table(pa.Table.from_pandas(frame.assign(value=frame["value"] + 1)).cast(table.schema), FILE)


CHANGES: dict[str, Callable[[], object]] = {
    "damaged": damage,
    "other declaration": lambda: edit(experiments=results.provenance(FILE)["experiments"][::-1]),
    "other code": lambda: edit(code="other"),
    "other seeds": lambda: edit(seeds=[5]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_joined_with_what_changed_meanwhile(change: str, meanwhile: Callable[..., None]) -> None:
    training.train(seeded(0))
    meanwhile(CHANGES[change])
    with pytest.raises(UserError, match=r"has changed .* start again"):
        training.train(seeded(0, 1))
    assert 1 not in json.loads(store_note(FILE))["seeds"]


def store_note(file: Path) -> bytes:
    from pyarrow import parquet

    return bytes(parquet.read_schema(file).metadata[b"provenance"])


def test_a_damaged_file_is_not_joined() -> None:
    training.train(seeded(0))
    training.train(seeded(1), Path("new.parquet"))
    damage()
    with pytest.raises(UserError, match="holds other numbers than were written"):
        store.join(FILE, Path("new.parquet"), [dict(e.labels) for e in QUICK.experiments], (0, 1), "")


@pytest.mark.parametrize("after", [False, True], ids=["before the end", "after the end"])
@pytest.mark.parametrize("others", [(0, 1), (0, 2)], ids=["the same seeds", "other seeds"])
def test_two_processes_add_seeds_to_one_file(
    after: bool, others: tuple[int, ...], meanwhile: Callable[..., None]
) -> None:
    """The other one begins and ends while this one trains, or between its training and its join."""
    training.train(seeded(0))
    meanwhile(lambda: training.train(seeded(*others)), after)
    training.train(seeded(0, 1))
    assert sorted(held()) == sorted({0, 1, *others})
    assert results.standing(seeded(0, 1)).state == "current"
    assert not list(Path("store/checkpoints").iterdir())


# --- replays, records, markers ----------------------------------------------------------------------------------------


def test_a_replay_of_joined_seeds_counts_when_more_are_added() -> None:
    training.train(seeded(0))
    training.train(seeded(0, 1))
    earlier = [{**t, "code": "old", "date": "one"} for t in results.provenance(FILE)["earlier"]]
    edit(code="old", date="two", earlier=earlier)
    line = dict.fromkeys(results.REPLAY, "") | {"job": f"{QUICK.paper}/{QUICK.name}", "result": "two", "asked": "2"}
    results.record_replays("smoke", [line | {"code": code(QUICK.experiments), "agrees": "yes"}])
    assert results.standing(seeded(0, 1)).state == "confirmed"
    training.train(seeded(0, 1, 2))
    assert results.standing(seeded(0, 1, 2)).state == "confirmed"
    assert results.standing(seeded(0, 1, 2, 3)).more == (3,)


def test_a_result_of_tomorrow_is_older_than_what_has_it_trained_again() -> None:
    """A clock was set back, or a server's is ahead: Snakemake compares times as floats, whose step is some 240 ns."""
    training.train(seeded(0))
    edit(code="other")
    os.utime(FILE, (time.time() + 86400,) * 2)
    marker = due.train_marker("smoke", QUICK.paper, QUICK.name)
    assert os.path.getmtime(marker[0]) > os.path.getmtime(FILE)


def test_a_result_that_comes_while_a_figure_is_drawn_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.report import render as report

    for job in plan.artifact_jobs("smoke", "fedagrac/fig4"):
        training.train(job)
    real = report.render

    def slow(*arguments: Any) -> None:
        real(*arguments)
        edit(date="later")

    monkeypatch.setattr(report, "render", slow)
    record = Path(plan.outputs("smoke", "fedagrac/fig4")[-1])
    render.run(Namespace(scale="smoke", artifact="fedagrac/fig4"))
    assert json.loads(record.read_text()) != due.made_from("smoke", "fedagrac/fig4")
    monkeypatch.setattr(report, "render", real)
    render.run(Namespace(scale="smoke", artifact="fedagrac/fig4"))
    assert json.loads(record.read_text()) == due.made_from("smoke", "fedagrac/fig4")
