"""The first rounds once more: a fresh result to the bit, every kind of difference, the record, what is committed."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import written
from pyarrow import parquet
from runs import run

from reproduce.__main__ import main
from reproduce.cli.replay import together
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.runs import plan, results
from reproduce.runs.earlier import ROWS
from reproduce.runs.replay import Comparison, replay
from reproduce.store import seal
from reproduce.store.results import write_results

ROOT = Path(__file__).parent.parent
CLOCKS = {
    "rounds": ("fedacs", "table1", 2),
    "sessions": ("dynamic_init", "table3", 3),
    "events": ("defedavg", "fig3", 2),
    "quadratic": ("fedagrac", "fig1", 8),
}


def declared(clock: str) -> tuple[Experiment, ...]:
    """Some experiments of the smoke scale, on embedded data."""
    paper, name, count = CLOCKS[clock]
    return plan.artifact_jobs("smoke", f"{paper}/{name}")[0].experiments[:count]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pd.DataFrame]:
    """trained(clock): what a job of these experiments with the seeds 0 and 1 writes."""
    found: dict[str, pd.DataFrame] = {}

    def trained(clock: str) -> pd.DataFrame:
        if clock not in found:
            runs = run(declared(clock), [0, 1])
            path = tmp_path_factory.mktemp(clock) / "job.parquet"
            write_results(path, runs, {})
            found[clock] = pd.read_parquet(path)
        return found[clock]

    return trained


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_fresh_result_is_replayed_to_the_bit(trained: Callable[[str], pd.DataFrame], clock: str) -> None:
    stored = trained(clock)
    outcome = replay(declared(clock), [0, 1], 2, stored, "float32")
    assert (outcome.deviation, outcome.where, outcome.agrees) == (0.0, "", True)
    assert outcome.rounds >= 2 or outcome.rounds == stored["round"].max()
    assert 8 * len(declared(clock)) <= outcome.rows < len(stored)


def test_schemes_with_a_pilot_and_without_are_followed_to_the_same_round(
    trained: Callable[[str], pd.DataFrame],
) -> None:
    stored, clock = trained("sessions"), declared("sessions")[0].clock
    assert {e.clock.start.pilot for e in declared("sessions")} == {"", "trained"}
    outcome = replay(declared("sessions"), [0], clock.returns * clock.rounds + 2, stored, "float32")
    mine = stored[(stored["seed"] == 0) & (stored["round"] <= clock.returns * clock.rounds + 2)]
    assert (outcome.rounds, outcome.rows) == (clock.returns * clock.rounds + 2, len(mine))


@pytest.mark.parametrize("clock", CLOCKS)
def test_one_seed_of_two_agrees_to_rounding(trained: Callable[[str], pd.DataFrame], clock: str) -> None:
    outcome = replay(declared(clock), [1], 2, trained(clock), "float32")
    assert outcome.deviation < (1e-12 if clock == "quadratic" else 1e-5)


@pytest.mark.parametrize("clock", CLOCKS)
def test_another_learning_rate_is_noticed(trained: Callable[[str], pd.DataFrame], clock: str) -> None:
    """As a changed constant of the engine would be."""
    changed = tuple(replace(e, algorithm=replace(e.algorithm, lr=1.5 * e.algorithm.lr)) for e in declared(clock))
    outcome = replay(changed, [0], 2, trained(clock), "float32")
    assert outcome.deviation > outcome.tolerance
    assert not outcome.agrees
    assert " at round " in outcome.where


def spoil(stored: pd.DataFrame, how: str) -> pd.DataFrame:
    row = stored.index[(stored["seed"] == 0) & (stored["round"] > 0)][0]
    if how == "row missing":
        return stored.drop(index=row)
    if how == "row more":
        return pd.concat([stored, stored.loc[[row]].assign(round=1, metric="unheard")])
    spoilt = stored.copy()
    spoilt.loc[row, "value"] = {"nan": math.nan, "inf": math.inf, "value": stored["value"].abs().max() + 1}[how]
    return spoilt


@pytest.mark.parametrize("how", ["row missing", "row more", "nan", "inf", "value"])
def test_one_spoilt_row_is_noticed(trained: Callable[[str], pd.DataFrame], how: str) -> None:
    outcome = replay(declared("quadratic"), [0], 3, spoil(trained("quadratic"), how), "float32")
    assert not outcome.agrees
    assert math.isinf(outcome.deviation) == (how != "value")


def test_a_virtual_time_is_compared_too(trained: Callable[[str], pd.DataFrame]) -> None:
    stored = trained("events")
    outcome = replay(declared("events"), [0], 2, stored.assign(time=stored["time"] * (1 + 1e-6)), "float32")
    assert not outcome.agrees


def test_an_outcome_agrees_up_to_its_tolerance() -> None:
    assert Comparison(2, 10, 1e-9, "", 1e-9).agrees
    assert not Comparison(2, 10, 1.1e-9, "", 1e-9).agrees
    assert not Comparison(2, 0, math.inf, "", 1e-9).agrees


# --- the command ------------------------------------------------------------------------------------------------------


def edit(path: str, factor: float = 1.0, after: int = 0, **changes: Any) -> None:
    """Change a results file: its provenance, and the numbers after a round, as a training would have written them."""
    table = parquet.read_table(path)
    note = json.loads(table.schema.metadata[b"provenance"]) | changes
    frame = table.to_pandas()
    frame.loc[frame["round"] > after, "value"] *= factor
    table = table.from_pandas(frame, preserve_index=False)
    note["content"] = seal.of_table(table)
    parquet.write_table(table.replace_schema_metadata({"provenance": json.dumps(note)}), path)
    results._provenance.cache_clear()


def test_the_command_confirms_records_skips_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert main(["replay", "smoke"]) == 0
    assert "replayed 0; 0 results" in capsys.readouterr().out
    assert main(["train", "smoke", "fedagrac", "fig1"]) == 0
    job = plan.job("smoke", "fedagrac", "fig1")
    assert results.standing(job).state == "current"
    assert main(["replay", "smoke"]) == 0
    assert "replayed 0; 1 result: 1 current" in capsys.readouterr().out

    edit(job.output, code="0" * 16)
    assert results.standing(job).state == "older"
    assert main(["replay", "smoke", "--minutes", "1e-9"]) == 0
    assert "replayed 0, 1 left when the time was up; 1 result: 1 older" in capsys.readouterr().out
    assert main(["replay", "smoke", "fedagrac/fig1"]) == 0
    assert "replayed 1; 1 result: 1 confirmed" in capsys.readouterr().out
    line = results.replays("smoke")["fedagrac/fig1"]
    assert (line["agrees"], line["deviation"], line["tolerance"]) == ("yes", "0", "1e-09")
    assert 100 <= int(line["rounds"]) <= 101
    assert line["processor"]
    assert main(["replay", "smoke"]) == 0
    assert "replayed 0; 1 result: 1 confirmed" in capsys.readouterr().out

    edit(job.output, factor=1 + 1e-8, date="later")
    assert results.standing(job).state == "older", "the record is of another result"
    assert main(["replay", "smoke"]) == 2
    shown = capsys.readouterr()
    assert "error: today's code gives other numbers for fedagrac/fig1: train again" in shown.err
    assert "1 result: 1 differs" in shown.out
    assert main(["plan", "fedagrac/fig1", "--scale", "smoke"]) == 0
    assert "of older code, a replay with today's differs" in capsys.readouterr().out


def test_networks_are_replayed_with_all_seeds_where_one_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[int]] = []
    needed = [1]

    def fake(experiments: Any, seeds: list[int], rounds: int, *_: Any) -> Comparison:
        asked.append(seeds)
        return Comparison(rounds, 1, float(len(seeds) < needed[0]), "loss", 0.01)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduce.runs.replay.replay", fake)
    job = plan.artifact_jobs("smoke", "fedacs/table1")[0]
    seeds = list(job.panel.seeds)
    assert main(["train", "smoke", "fedacs", job.name]) == 0
    assert len(seeds) > 1
    for needed[0], expected in ((1, [seeds[:1]]), (len(seeds), [seeds[:1], seeds])):
        asked.clear()
        lines = together([job], 2, math.inf)
        assert lines is not None
        (line,) = lines
        assert asked == expected
        assert (line["agrees"], line["seeds"]) == ("yes", " ".join(map(str, expected[-1])))


def test_plays_are_replayed_in_one_cohort_and_one_by_one_where_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cohorts: list[int] = []

    def counted(experiments: Any, *others: Any) -> Comparison:
        cohorts.append(len(experiments))
        return replay(experiments, *others)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduce.runs.replay.replay", counted)
    asked = ["play", "fednova", "--on", "fedagrac-steps", "--scale", "smoke", "--seeds", "0,1"]
    assert main(asked) == 0
    assert main([*asked, "--replay"]) == 0
    assert "replayed 0; 2 results: 2 current" in capsys.readouterr().out
    files = sorted(map(str, Path("results/smoke/play").iterdir()))
    for file in files:
        edit(file, code="0" * 16)
    assert main([*asked, "--replay"]) == 0
    assert "replayed 2; 2 results: 2 confirmed" in capsys.readouterr().out
    assert cohorts == [2]

    edit(files[0], factor=1.5, date="later")
    edit(files[1], date="later")
    assert main([*asked, "--replay"]) == 2
    shown = capsys.readouterr()
    assert f"other numbers for play/{Path(files[0]).stem}: train again" in shown.err
    assert "2 results: 1 confirmed, 1 differs" in shown.out
    assert main([*asked, "--replay", "-o", "out"]) == 2
    assert "neither with --json nor with -o" in capsys.readouterr().err
    assert cohorts == [2, 2, 2, 1, 1, 1], "the first seed, then all; the same of what differs alone"


@pytest.mark.parametrize("name", ["unseen-gaussian-n10", "two-shard-gaussian-n10"])
def test_sessions_are_followed_until_their_clients_are_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two groups in turns, and of three. The first rounds are the pilot's: a change in how later models are made
    would be confirmed by them."""
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", "dynamic_init", name)
    assert main(["train", "smoke", job.paper, job.name]) == 0
    clock = job.experiments[0].clock
    assert isinstance(clock, Sessions)
    edit(job.output, code="0" * 16)
    assert main(["replay", "smoke"]) == 0
    back = clock.returns * clock.rounds
    assert clock.returns == {"unseen-gaussian-n10": 3, "two-shard-gaussian-n10": 4}[name]
    assert int(results.replays("smoke")[f"dynamic_init/{job.name}"]["rounds"]) == back + 2
    edit(job.output, factor=1.5, after=back, date="later")
    assert main(["replay", "smoke"]) == 2
    assert results.standing(job).code == "differs"


def test_a_damaged_result_is_named_and_the_others_are_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("fig1", "fig2-equal"):
        job = plan.job("smoke", "fedagrac", name)
        note = {
            "experiments": [e.record() for e in job.experiments],
            "seeds": [*job.panel.seeds],
            "git": "x",
            "date": "",
        }
        note |= {"scale": job.scale, "paper": job.paper, "job": job.name}
        written.write(Path(job.output), note, written.rows(note).drop_columns(["round"]) if name == "fig1" else None)
    assert main(["replay", "smoke"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert (
        "not used: results/smoke/fedagrac/fig1.parquet: its columns are not those of its provenance ('round')" in said
    )
    assert said[-1] == "error: today's code gives other numbers for fedagrac/fig2-equal: train again"


# --- what is committed ------------------------------------------------------------------------------------------------

COMMITTED = [
    ("paper", "fedacs", "toy2d--fedacs"),
    ("paper", "fedagrac", "fig1--fedagrac"),
    ("paper", "fedacs", "fig4-left--fedavg-decay-sgd"),
    pytest.param("paper", "fedagrac", "fig5-lr-100--fedavg", marks=pytest.mark.data),
    pytest.param("reduced", "dynamic_init", "mnist-n10-o00-a03", marks=pytest.mark.data),
    pytest.param("reduced", "defedavg", "fashion-mnist-iid-n10", marks=pytest.mark.data),
]


@pytest.mark.parametrize(("scale", "paper", "name"), COMMITTED)
def test_committed_results_are_what_the_code_computes(
    scale: str, paper: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three clocks; the whole record is that of `python -m reproduce replay`."""
    monkeypatch.chdir(ROOT)
    job = plan.job(scale, paper, name)
    assert results.standing(job).usable
    seeds = results.provenance(job.output)["seeds"][:1]
    outcome = replay(job.experiments, seeds, 2, pd.read_parquet(job.output), "float32")
    assert outcome.agrees, outcome


# --- against an earlier commit ----------------------------------------------------------------------------------------

CHANGED = {
    "rounds": "fedagrac/fig2-equal",
    "sessions": "dynamic_init/unseen-gaussian-n10",
    "events": "defedavg/gaussian-iid-n3",
}


@pytest.fixture
def changed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> plan.Job:
    """A result that a processor far from this one made of a code that is the last commit; today's code is another."""
    shutil.copytree(ROOT / "reproduce", tmp_path / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", *CHANGED[getattr(request, "param", "rounds")].split("/"))
    assert main(["train", "smoke", job.paper, job.name]) == 0
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "reproduce"], [*who, "commit", "-qm", "then"]):
        subprocess.run(["git", *command], check=True)
    edit(job.output, factor=1.1)
    for module in ("results", "experiment"):
        monkeypatch.setattr(f"reproduce.{module}.code", lambda experiments: "0" * 16)
    return job


@pytest.mark.parametrize("changed", CHANGED, indirect=True)
def test_where_last_bits_differ_an_earlier_commit_decides(
    changed: plan.Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "smoke"]) == 2
    assert results.standing(changed).code == "differs"
    assert main(["replay", "smoke"]) == 2
    assert "replayed 0; 1 result: 1 differs" in capsys.readouterr().out, "it is not asked again"
    assert main(["replay", "smoke", "--against", "HEAD"]) == 0
    assert results.standing(changed).code == "confirmed"
    line = results.replays("smoke")[f"{changed.paper}/{changed.name}"]
    assert (line["agrees"], float(line["deviation"]) > 0.01) == ("yes", True)
    assert re.search(r" at round \d+; the bits of [0-9a-f]{12} on this processor", line["where"])


@pytest.mark.parametrize("how", ["other bits", "of other code"])
def test_an_earlier_commit_decides_nothing(how: str, changed: plan.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that gives other bits than today's code, and one whose code does not hold for the result either."""
    if how == "other bits":
        spoilt = ROWS.replace('run.state["history"]]', '[(*r[:4], r[4] * (1 + 1e-7)) for r in run.state["history"]]]')
        assert spoilt != ROWS
        monkeypatch.setattr("reproduce.runs.earlier.ROWS", spoilt)
    else:
        edit(changed.output, code="1" * 16)
    assert main(["replay", "smoke", "--against", "HEAD"]) == 2
    assert results.standing(changed).code == "differs"
    where = results.replays("smoke")[f"{changed.paper}/{changed.name}"]["where"]
    assert bool(re.search(", and by .* from [0-9a-f]{12} here", where)) == (how == "other bits")


def test_a_commit_that_is_none_is_refused(changed: plan.Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "smoke", "--against", "nowhere"]) == 2
    assert "there is no such commit" in capsys.readouterr().err
