"""The first rounds once more: a fresh result to the bit, every kind of difference, the record, what is committed."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import written
from runs import run

from reproduce import store
from reproduce.__main__ import main
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.runs import plan, results
from reproduce.runs import replay as replays
from reproduce.runs.job import frame
from reproduce.runs.replay import Comparison, moved, replay

ROOT = Path(__file__).parents[2]
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
def trained() -> Callable[[str], pd.DataFrame]:
    """trained(clock): what a job of these experiments with the seeds 0 and 1 writes."""
    found: dict[str, pd.DataFrame] = {}

    def trained(clock: str) -> pd.DataFrame:
        if clock not in found:
            found[clock] = frame(run(declared(clock), [0, 1]))
        return found[clock]

    return trained


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_fresh_result_is_replayed_to_the_bit(trained: Callable[[str], pd.DataFrame], clock: str) -> None:
    stored = trained(clock)
    outcome = replay(declared(clock), [0, 1], 2, stored, "float32")
    assert (outcome.deviation, outcome.where, outcome.agrees) == (0.0, "", True)
    assert outcome.rounds >= 2 or outcome.rounds == stored["round"].max()
    assert 8 * len(declared(clock)) <= outcome.rows < len(stored)


def test_the_evaluation_before_training_is_not_enough() -> None:
    seldom = [replace(declared("rounds")[0], clock=Rounds(8, every=4))]
    rows = frame(run(seldom, [0]))
    assert replay(seldom, [0], 2, rows, "float32").rows == (rows["round"] <= 4).sum() < len(rows)


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
    if how == "value":
        stored, spoilt = trained("quadratic"), spoil(trained("quadratic"), how)
        apart = (spoilt["value"] - stored["value"]).abs().max() / spoilt["value"].abs().max()
        assert outcome.deviation == pytest.approx(apart)


def test_a_virtual_time_is_compared_too(trained: Callable[[str], pd.DataFrame]) -> None:
    stored = trained("events")
    outcome = replay(declared("events"), [0], 2, stored.assign(time=stored["time"] * (1 + 1e-6)), "float32")
    assert not outcome.agrees


def test_what_a_moved_start_does_is_rounding(
    trained: Callable[[str], pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the round on where it shows, ten times as much: before, the tolerance."""
    stored = trained("rounds")
    row = stored.index[(stored["seed"] == 0) & (stored["metric"] == "accuracy") & (stored["round"] == 2)][0]
    largest = stored.loc[:row].query("metric == 'accuracy' and seed == 0")["value"].max()

    def off(deviation: float) -> pd.DataFrame:
        lower = stored.loc[row, "value"] - deviation * largest
        return stored.assign(value=stored["value"].mask(stored.index == row, lower))

    def replayed(deviation: float) -> Comparison:
        return replay(declared("rounds"), [0], 2, off(deviation), "float32")

    assert math.isnan(replayed(0.009).noise)
    assert replayed(0.009).agrees
    assert replayed(0.02).noise < 0.001
    assert not replayed(0.02).agrees
    monkeypatch.setattr(replays, "moved", partial(moved, 0.05))
    noise = replayed(0.02).noise
    assert 0.002 < noise < 0.05, "of a start that is moved by a twentieth"
    assert replayed(9.9 * noise).agrees
    assert not replayed(10.1 * noise).agrees
    rows = pd.DataFrame({"round": [0, 1, 1, 2, 3, 4], "deviation": [0, 1e-4, 5e-4, 0.002, 0.5, math.inf]})
    assert replays._noise(rows, 0.01).to_dict() == {0: 0, 1: 0, 2: 0.5, 3: 0.5, 4: 0.5}


def edit(path: str, factor: float = 1.0, after: int = 0, **changes: Any) -> None:
    """Change a results file: what its runs say, and the numbers after a round, as written."""

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(value=rows["value"].where(rows["round"] <= after, rows["value"] * factor))

    written.edit(path, values=values, **changes)


def test_the_command_rechecks_records_skips_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert main(["replay", "--scale", "smoke", "fedagrac"]) == 0
    assert "replayed 0; 0 runs" in capsys.readouterr().out
    assert main(["train", "--scale", "smoke", "fedagrac", "fig1"]) == 0
    job = plan.job("smoke", "fedagrac", "fig1")
    runs = job.runs
    assert results.standing(job).state == "current"
    assert main(["replay", "--scale", "smoke", "fedagrac"]) == 0
    assert f"replayed 0; {runs} runs: {runs} current" in capsys.readouterr().out
    assert main(["replay", "--scale", "smoke", "--again", "fedagrac"]) == 0
    assert f"replayed 1, all agree; {runs} runs: {runs} current" in capsys.readouterr().out
    before = Path(job.output).read_bytes()
    edit(job.output, factor=1 + 1e-8)
    assert main(["replay", "--scale", "smoke", "--again", "fedagrac"]) == 2
    shown = capsys.readouterr()
    assert f"replayed 1, 0 agree; {runs} runs: {runs} current" in shown.out
    assert "error: today's code gives other numbers for fedagrac/fig1: train again" in shown.err
    Path(job.output).write_bytes(before)
    results.replay_file("smoke").unlink()

    edit(job.output, code="0" * 16)
    assert results.standing(job).state == "stale"
    assert main(["replay", "--scale", "smoke", "fedagrac/fig1"]) == 0
    assert f"replayed 1, all agree; {runs} runs: {runs} re-checked" in capsys.readouterr().out
    line = results.replay_lines("smoke")["fedagrac/fig1"]
    assert (line["agrees"], line["deviation"], line["tolerance"]) == ("yes", "0", "1e-09")
    assert int(line["rounds"]) == job.experiments[0].clock.rounds < 100, "all of them"
    assert line["processor"]
    assert main(["replay", "--scale", "smoke", "fedagrac"]) == 0
    assert f"replayed 0; {runs} runs: {runs} re-checked" in capsys.readouterr().out

    edit(job.output, factor=1 + 1e-8, date="later")
    assert results.standing(job).state == "stale", "the record is of another result"
    assert main(["replay", "--scale", "smoke", "fedagrac"]) == 2
    shown = capsys.readouterr()
    assert "error: today's code gives other numbers for fedagrac/fig1: train again" in shown.err
    assert f"{runs} runs: {runs} not reproduced" in shown.out
    assert main(["plan", "fedagrac/fig1", "--scale", "smoke"]) == 0
    assert "not reproduced by today's code" in capsys.readouterr().out


def test_an_own_training_is_set_beside_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", "fedagrac", "fig1")
    train = ["train", "--scale", "smoke", "fedagrac", "fig1"]

    def said() -> str:
        assert main([*train, "-o", "mine.parquet"]) == 0
        return capsys.readouterr().out.splitlines()[-1].removeprefix(f"mine.parquet beside {job.output}: ")

    assert said() == f"mine.parquet: {job.output} has nothing to compare it with"
    assert main(train) == 0
    numbers = f"{len(pd.read_parquet(job.output)):,} numbers of {job.runs} runs"
    assert said() == f"{numbers}, 0 apart (tolerance 1e-09): agrees"
    edit(job.output, factor=1 + 1e-8, after=3)
    later = rf"{numbers}, 1e-08 apart \(tolerance 1e-09\): agrees to round 3, then differs, most in \w+ at round \d+"
    assert re.fullmatch(later, said())
    edit(job.output, factor=2, after=-1)
    assert ": differs from the beginning, most in " in said()


@pytest.mark.parametrize("name", ["unseen-gaussian-n10", "two-shard-gaussian-n10"])
def test_sessions_are_followed_until_their_clients_are_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two groups in turns, and of three. The first rounds are the pilot's: a change in how later models are made
    would be re-checked by them."""
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", "dynamic_init", name)
    assert main(["train", "--scale", "smoke", job.paper, job.name]) == 0
    clock = job.experiments[0].clock
    assert isinstance(clock, Sessions)
    edit(job.output, code="0" * 16)
    assert main(["replay", "--scale", "smoke", "dynamic_init"]) == 0
    back = clock.returns * clock.rounds
    assert clock.returns == {"unseen-gaussian-n10": 3, "two-shard-gaussian-n10": 4}[name]
    assert int(results.replay_lines("smoke")[f"dynamic_init/{job.name}"]["rounds"]) == back + 2
    edit(job.output, factor=1.5, after=back, date="later")
    assert main(["replay", "--scale", "smoke", "dynamic_init"]) == 2
    assert results.standing(job).state == "not reproduced"


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
    """All three clocks; the whole record is that of `reproduce replay`."""
    monkeypatch.chdir(ROOT)
    job = plan.job(scale, paper, name)
    assert results.standing(job).usable
    seeds = [store.usable(Path(job.output))[1][0].seed]
    outcome = replay(job.experiments, seeds, 2, pd.read_parquet(job.output), "float32")
    assert outcome.agrees, outcome
