"""Some settings of a job are declared otherwise than they were: these are trained, the others keep their bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.declare.experiment import Experiment, code, training_of, trainings
from reproduce.runs import costs, plan, results, training
from reproduce.runs import job as engine
from reproduce.runs.plan import Job
from reproduce.store import results as store
from tests.runs import close

JOBS = [j for j in plan.jobs("smoke") if len(j.experiments) > 1]
QUICK = next(j for j in JOBS if j.name == "fig4-lr-async")
FILE = Path(QUICK.output)
LAST = len(QUICK.experiments) - 1


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[int, ...]]]:
    """How many settings every training had, and which seeds."""
    found: list[tuple[int, tuple[int, ...]]] = []

    def train_job(panel: Any, experiments: Any, *rest: Any) -> None:
        found.append((len(experiments), tuple(panel.seeds)))
        real(panel, experiments, *rest)

    real = engine.train_job
    monkeypatch.setattr(engine, "train_job", train_job)
    return found


def seeded(job: Job, *seeds: int) -> Job:
    return replace(job, panel=replace(job.panel, seeds=seeds))


def otherwise(job: Job, i: int, rate: float = 0.015625) -> Job:
    """The job as it would be if experiment i had another learning rate."""
    e: Any = job.experiments[i]
    changed: Experiment = replace(e, algorithm=replace(e.algorithm, lr=rate))
    return replace(job, experiments=(*job.experiments[:i], changed, *job.experiments[i + 1 :]))


def rows(frame: pd.DataFrame, labels: Mapping[str, Any]) -> pd.DataFrame:
    mine = frame
    for name, value in labels.items():
        mine = mine[mine[name] == value]
    return mine.reset_index(drop=True)


@pytest.mark.parametrize("job", JOBS, ids=lambda j: f"{j.paper}-{j.name}")
def test_only_what_changed_is_trained_and_the_file_is_that_of_a_training_of_all(
    job: Job, trained: list[tuple[int, tuple[int, ...]]]
) -> None:
    job = seeded(job, 0, 1)
    training.train(job, Path("together.parquet"))
    training.train(otherwise(job, 0))
    before, together = pd.read_parquet(job.output), pd.read_parquet("together.parquet")
    standing = results.standing(job)
    assert standing.words == f"of another declaration in 1 of {len(job.experiments)} settings"
    assert not standing.usable
    training.train(job)
    assert trained[-1] == (1, (0, 1))
    after = pd.read_parquet(job.output)
    for e in job.experiments[1:]:
        pd.testing.assert_frame_equal(rows(after, e.labels), rows(before, e.labels), check_exact=True)
    rest = [c for c in together.columns if c != "value"]
    pd.testing.assert_frame_equal(after[rest], together[rest], check_exact=True)
    close(after, together)
    whole, note = results.provenance("together.parquet"), results.provenance(job.output)
    assert whole.keys() == note.keys() - {"earlier", "only"}
    same = ("seeds", "experiments", "data", "code")
    assert [note[k] for k in same] == [whole[k] for k in same]
    assert np.shape(note["cpu_seconds_of"]) == np.shape(whole["cpu_seconds_of"])
    assert results.standing(job).state == "current"
    assert not list(Path("store/checkpoints").iterdir())


def test_every_training_says_which_runs_are_its_own(trained: list[tuple[int, tuple[int, ...]]]) -> None:
    job, once, twice = QUICK, otherwise(QUICK, 0), otherwise(otherwise(QUICK, 0), LAST)
    dates = []
    for step in (seeded(twice, 0, 1), seeded(once, 0, 1), seeded(once, 0, 1, 2), seeded(job, 0, 1, 2)):
        training.train(step)
        dates.append(f"at {len(dates)}")
        spent = [[len(dates) + 0.5] * len(step.panel.seeds) for _ in step.experiments]
        mine = {"date": dates[-1], "peak_memory": len(dates)} | ({} if len(dates) > 1 else {"cpu_seconds_of": spent})
        edit(**mine)
    settings = len(job.experiments)
    assert trained == [(settings, (0, 1)), (1, (0, 1)), (settings, (2,)), (1, (0, 1, 2))]
    note = results.provenance(FILE)
    made = trainings(note)
    assert [t["date"] for t in made] == dates[::-1]
    assert [t["peak_memory"] for t in made] == [4, 3, 2, 1]
    assert [t["seeds"] for t in made] == [[0, 1, 2], [2], [0, 1], [0, 1]]
    first, middle, last = (dict(job.experiments[i].labels) for i in (0, 1, LAST))
    assert [t.get("only") for t in made] == [[first], None, [last], None]
    for labels, days in ((first, "333"), (middle, "002"), (last, "112")):
        assert [training_of(made, labels, seed)["date"] for seed in (0, 1, 2)] == [f"at {day}" for day in days]
    assert note["cpu_seconds_of"][1][:2] == [1.5, 1.5], "what was kept took what it took"


def test_trainings_whose_runs_were_all_replaced_are_forgotten() -> None:
    for rate in (0.5, 0.25, 0.125):
        training.train(otherwise(seeded(QUICK, 0, 1), 0, rate))
    note = results.provenance(FILE)
    assert len(trainings(note)) == 2
    assert note["earlier"][0]["seeds"] == [0, 1]


def test_what_a_training_costs_are_the_settings_that_changed() -> None:
    job = seeded(QUICK, 0, 1)
    training.train(otherwise(job, 0))
    one = replace(job, experiments=job.experiments[:1])
    assert costs.due(job).samples == pytest.approx(costs.cost(one).samples)
    assert costs.due(job).samples < costs.cost(job).samples / 2


def test_seeds_that_nobody_asks_for_have_the_new_setting_too(trained: list[tuple[int, tuple[int, ...]]]) -> None:
    training.train(otherwise(seeded(QUICK, 0, 1, 7), 0))
    training.train(seeded(QUICK, 1))
    assert trained[-1] == (1, (0, 1, 7))
    assert results.provenance(FILE)["seeds"] == [1, 0, 7]
    assert results.standing(seeded(QUICK, 0, 1, 7)).holds


def test_a_setting_that_is_new_is_trained_alone(trained: list[tuple[int, tuple[int, ...]]]) -> None:
    """Such as another rate of an algorithm that the job has; another algorithm is other code."""
    job = seeded(QUICK, 0)
    more = replace(otherwise(job, 0).experiments[0], labels={**job.experiments[0].labels, "algorithm": "slower"})
    training.train(job)
    training.train(replace(job, experiments=(*job.experiments, more)))
    assert trained[-1] == (1, (0,))
    assert results.provenance(FILE)["only"] == [more.labels]


CHANGES: dict[str, Callable[[Job], Job]] = {
    "all settings": lambda job: replace(
        job, experiments=tuple(otherwise(job, i).experiments[i] for i in range(LAST + 1))
    ),
    "seeds too": lambda job: seeded(otherwise(job, 0), 0, 1, 2),
    "older code": lambda job: (edit(code="other"), otherwise(job, 0))[1],
    "precision": lambda job: (edit(configured_precision="bfloat16"), otherwise(job, 0))[1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_is_trained_anew_where_the_rest_is_not_what_training_would_make(
    change: str, trained: list[tuple[int, tuple[int, ...]]]
) -> None:
    training.train(seeded(QUICK, 0, 1))
    job = CHANGES[change](seeded(QUICK, 0, 1))
    training.train(job)
    assert trained[-1] == (len(QUICK.experiments), job.panel.seeds)
    assert "earlier" not in results.provenance(FILE)


def test_a_replay_of_what_was_kept_still_counts() -> None:
    training.train(otherwise(seeded(QUICK, 0, 1), 0))
    edit(code="old", date="then")
    line = dict.fromkeys(results.REPLAY, "") | {"job": f"{QUICK.paper}/{QUICK.name}", "result": "then", "asked": "2"}
    results.record_replays("smoke", [line | {"code": code(QUICK.experiments), "agrees": "yes"}])
    training.train(seeded(QUICK, 0, 1))
    assert [t["code"] for t in trainings(results.provenance(FILE))] == [code(QUICK.experiments), "old"]
    assert results.standing(seeded(QUICK, 0, 1)).state == "confirmed"


def test_what_was_trained_is_not_trained_again_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    training.train(otherwise(seeded(QUICK, 0, 1), 0))
    before = FILE.read_bytes()
    with monkeypatch.context() as context:
        context.setattr(store, "join", killed)
        with pytest.raises(KeyboardInterrupt):
            training.train(seeded(QUICK, 0, 1))
    assert FILE.read_bytes() == before
    with monkeypatch.context() as context:
        context.setattr(engine, "train_job", killed)
        training.train(seeded(QUICK, 0, 1))
    assert results.standing(seeded(QUICK, 0, 1)).holds


def edit(**others: Any) -> None:
    """Change what the provenance of the results file says."""
    store._write(FILE, pd.read_parquet(FILE), {**results.provenance(FILE), **others})
