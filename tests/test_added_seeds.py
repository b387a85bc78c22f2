"""Seeds added to results that are there: the others keep their bits, the file is the one of a training of all. Those
that nobody asks for stay, and are not read."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.cli import render
from reproduce.declare.experiment import Panel, trainings
from reproduce.errors import UserError
from reproduce.runs import costs, due, plan, results, training
from reproduce.runs.plan import Job
from reproduce.store import results as store
from tests.runs import close

JOBS = plan.jobs("smoke")
QUICK = next(j for j in JOBS if j.name == "fig4-lr-async")


def seeded(job: Job, *seeds: int) -> Job:
    return replace(job, panel=replace(job.panel, seeds=seeds))


def train(job: Job, *seeds: int, output: Path | None = None) -> pd.DataFrame:
    """The rows of the results file after training the job with these seeds."""
    training.train(seeded(job, *seeds), output)
    return pd.read_parquet(output or job.output)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))


@pytest.mark.parametrize("job", JOBS, ids=lambda j: f"{j.paper}-{j.name}")
def test_the_file_is_that_of_a_training_of_all_seeds(job: Job) -> None:
    together = train(job, 0, 1, output=Path("together.parquet"))
    before = train(job, 1)
    after = train(job, 0, 1)
    pd.testing.assert_frame_equal(after[after["seed"] == 1].reset_index(drop=True), before, check_exact=True)
    rest = [c for c in together.columns if c != "value"]
    pd.testing.assert_frame_equal(after[rest], together[rest], check_exact=True)
    close(after, together)
    whole, note = results.provenance("together.parquet"), results.provenance(job.output)
    assert whole.keys() == note.keys() - {"earlier"}
    assert [note[k] for k in ("seeds", "experiments", "data")] == [whole[k] for k in ("seeds", "experiments", "data")]
    assert np.shape(note["cpu_seconds_of"]) == np.shape(whole["cpu_seconds_of"])
    assert (note["samples"], note["flops"]) == pytest.approx((whole["samples"], whole["flops"]))
    assert results.standing(seeded(job, 0, 1)).holds
    assert not list(Path("store/checkpoints").iterdir())


def test_every_training_keeps_its_own_seeds_and_says_what_it_cost() -> None:
    train(QUICK, 5)
    first = results.provenance(QUICK.output)
    train(QUICK, 5, 4)
    second = results.provenance(QUICK.output)
    spent = [[i + 0.5, i + 0.25] for i in range(len(QUICK.experiments))]
    store._write(Path(QUICK.output), pd.read_parquet(QUICK.output), {**second, "cpu_seconds_of": spent})
    train(QUICK, 4, 6, 5)
    note = results.provenance(QUICK.output)
    assert note["seeds"] == [4, 6, 5]
    assert [t["seeds"] for t in trainings(note)] == [[6], [4], [5]]
    assert [t["date"] for t in trainings(note)][1:] == [second["date"], first["date"]]
    assert {t["code"] for t in trainings(note)} == {note["code"]}
    assert [[row[2], row[0]] for row in note["cpu_seconds_of"]] == spent
    assert note["samples"] == pytest.approx(3 * first["samples"])
    assert note["cpu_seconds"] > second["cpu_seconds"] > first["cpu_seconds"]


def test_seeds_that_were_trained_are_not_trained_again_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    before = train(QUICK, 1)
    with monkeypatch.context() as context:
        context.setattr(store, "join", killed)
        with pytest.raises(KeyboardInterrupt):
            train(QUICK, 0, 1, 2)
    pd.testing.assert_frame_equal(pd.read_parquet(QUICK.output), before, check_exact=True)
    with monkeypatch.context() as context:
        context.setattr("reproduce.runs.job.train_job", killed)
        after = train(QUICK, 0, 1, 2)
    together = train(QUICK, 0, 1, 2, output=Path("together.parquet"))
    pd.testing.assert_frame_equal(after, together, rtol=1e-2)


def test_elsewhere_all_seeds_are_trained() -> None:
    train(QUICK, 1)
    train(QUICK, 0, 1, output=Path("elsewhere.parquet"))
    assert results.provenance("elsewhere.parquet")["seeds"] == [0, 1]
    assert results.provenance(QUICK.output)["seeds"] == [1]


def test_what_a_training_costs_are_the_seeds_that_it_adds() -> None:
    three = seeded(QUICK, 0, 1, 2)
    train(QUICK, 1)
    assert results.standing(three).more == (0, 2)
    assert costs.due(three) == costs.cost(seeded(QUICK, 0, 2))
    assert costs.due(three).samples == pytest.approx(costs.cost(three).samples * 2 / 3)
    assert costs.due(seeded(QUICK, 1)) == costs.cost(seeded(QUICK, 1))
    assert costs.due(seeded(QUICK, 0, 2)) == costs.cost(seeded(QUICK, 0, 2)), "none of them is there"


def test_seeds_that_nobody_asks_for_stay_in_the_file_and_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = train(QUICK, 7)
    assert not results.standing(seeded(QUICK, 0, 1)).usable
    after = train(QUICK, 0, 1)
    assert results.provenance(QUICK.output)["seeds"] == [0, 1, 7]
    pd.testing.assert_frame_equal(after[after["seed"] == 7].reset_index(drop=True), before, check_exact=True)
    assert results.standing(seeded(QUICK, 1)).holds
    artifact = plan.artifact("fedagrac/fig4")
    monkeypatch.setenv("REPRODUCE_SEEDS", "1")
    render.run(Namespace(scale="smoke", artifact=artifact.id))
    cells = pd.read_csv(plan.cells_file("smoke", artifact.id))
    assert set(cells["seed"]) == {1}
    one = due.made_from("smoke", artifact.id)
    monkeypatch.setenv("REPRODUCE_SEEDS", "0,1")
    assert one != due.made_from("smoke", artifact.id), "what was drawn from one seed is drawn again for two"


@pytest.mark.parametrize("change", ["code", "precision", "old entries", "early"])
def test_nothing_is_added_to_what_training_would_not_make_today(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = next(j for j in JOBS if any(e.to_target is not e for e in j.experiments)) if change == "early" else QUICK
    if change == "early":
        monkeypatch.setenv("REPRODUCE_TO_TARGET", "1")
    train(job, 1)
    monkeypatch.delenv("REPRODUCE_TO_TARGET", raising=False)
    if change != "early":
        edit(Path(job.output), change)
    standing = results.standing(seeded(job, 0, 1))
    assert (standing.state, standing.more) == ("incomplete", ())
    train(job, 0, 1)
    assert "earlier" not in results.provenance(job.output)


def edit(path: Path, change: str) -> None:
    """Make the results file one of other code, of another precision, or of when a provenance said less."""
    note = results.provenance(path)
    match change:
        case "code":
            note |= {"code": "0123", "date": "then"}
        case "precision":
            note["configured_precision"] = "bfloat16"
        case "old entries":
            del note["cpu_seconds_of"]
    store._write(path, pd.read_parquet(path), note)


def test_a_replay_confirms_the_trainings_that_it_was_made_of() -> None:
    train(QUICK, 1)
    edit(Path(QUICK.output), "code")
    assert results.standing(seeded(QUICK, 1)).code == "older"
    confirm(QUICK, results.provenance(QUICK.output)["date"])
    assert results.standing(seeded(QUICK, 1)).code == "confirmed"
    assert results.standing(seeded(QUICK, 0, 1)).more == (0,)
    train(QUICK, 0, 1)
    whole = seeded(QUICK, 0, 1)
    assert results.standing(whole).state == "confirmed", "one training is of older code"
    note = results.provenance(QUICK.output)
    other = [{**training, "date": "another"} for training in note["earlier"]]
    store._write(Path(QUICK.output), pd.read_parquet(QUICK.output), {**note, "date": "later", "earlier": other})
    assert results.standing(whole).state == "older"
    confirm(QUICK, "later")
    assert results.standing(whole).state == "confirmed", "the replay was of all of it"


def confirm(job: Job, date: str) -> None:
    """Record that a replay with today's code gave the numbers of the result with this date."""
    from reproduce.declare.experiment import code

    line = dict.fromkeys(results.REPLAY, "") | {"job": f"{job.paper}/{job.name}", "result": date, "asked": "2"}
    results.record_replays(job.scale, [line | {"code": code(job.experiments), "agrees": "yes"}])


@pytest.mark.parametrize("other", ["seeds", "data"])
def test_files_that_do_not_go_together_are_an_error(other: str) -> None:
    train(QUICK, 1)
    train(QUICK, 0, output=Path("new.parquet"))
    if other == "data":
        for file, digest in ((QUICK.output, "one"), ("new.parquet", "another")):
            note = results.provenance(file)
            store._write(Path(file), pd.read_parquet(file), {**note, "data": {"mnist": digest}})
    seeds = (0, 1) if other == "data" else (0, 1, 2)
    with pytest.raises(UserError, match={"data": "trained on other data", "seeds": "seeds 0, 1, 2"}[other]):
        store.join(Path(QUICK.output), Path("new.parquet"), [dict(e.labels) for e in QUICK.experiments], seeds, "")
    assert results.provenance(QUICK.output)["seeds"] == [1]


def test_experiments_with_other_labels_are_told_apart() -> None:
    """A label that an experiment lacks tells it from one that has it."""
    two = tuple(replace(QUICK.experiments[0], labels=labels) for labels in ({"a": 1}, {"a": 1, "b": 2}))
    two = (two[0], replace(two[1], algorithm=QUICK.experiments[-1].algorithm))
    job = Job("smoke", "tests", "two", Panel("two", two, (0,)), two, ())
    together = train(job, 0, 1, output=Path("together.parquet"))
    train(job, 1)
    pd.testing.assert_frame_equal(train(job, 0, 1), together, rtol=1e-2)
