"""Runs are trained where they are lacking, and put beside those of their file, which keep their bits: other seeds,
other settings. What nobody asks for stays and is not read. What a user's own module makes of a saved model is what the
run measured."""

import json
import os
import re
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import written
from runs import DIGITS, close, experiment, run
from safetensors import safe_open
from safetensors.torch import load_file

from reproduce import store
from reproduce.cli import render
from reproduce.declare.experiment import Experiment
from reproduce.errors import UserError
from reproduce.models.declared import MLP
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.partitions.heldout import judged
from reproduce.runs import job as engine
from reproduce.runs import outdated, plan, results, saved, training
from reproduce.runs.catalogue import known
from reproduce.runs.plan import Job

JOBS = plan.jobs("smoke")
QUICK = next(j for j in JOBS if j.name == "fig4-lr-async")
FILE = Path(QUICK.output)
ALL = len(QUICK.experiments)


def seeded(job: Job, *seeds: int) -> Job:
    return replace(job, panel=replace(job.panel, seeds=seeds))


def otherwise(job: Job, i: int = 0, rate: float = 0.015625) -> Job:
    """The job as it would be if experiment i had another learning rate."""
    e: Any = job.experiments[i]
    changed: Experiment = replace(e, algorithm=replace(e.algorithm, lr=rate))
    return replace(job, experiments=(*job.experiments[:i], changed, *job.experiments[i + 1 :]))


def train(job: Job, output: Path | None = None) -> pd.DataFrame:
    """The rows of the results file after training the job."""
    training.train(job, output)
    return store.read(output or Path(job.output))[0]


def of(frame: pd.DataFrame, labels: Any, *seeds: int) -> pd.DataFrame:
    mine = frame[frame["seed"].isin(seeds)] if seeds else frame
    for name, value in labels.items():
        mine = mine[mine[name] == value]
    return mine.reset_index(drop=True)


def draw(artifact: str) -> None:
    render.run(Namespace(scale="smoke", target=[artifact], width=0.0, debug=True))


def held() -> list[int]:
    return sorted({run.seed for run in store.usable(FILE)[1]})


def equal(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    for of_a_workflow in (outdated.jobs, outdated.training):  # kept by this process, in whatever folder it was
        of_a_workflow.cache_clear()


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[int, ...]]]:
    """How many settings every training had, and which seeds."""
    found: list[tuple[int, tuple[int, ...]]] = []

    def train_job(job: Job, *rest: Any) -> None:
        found.append((len(job.experiments), tuple(job.panel.seeds)))
        real(job, *rest)

    real = engine.train_job
    monkeypatch.setattr(engine, "train_job", train_job)
    return found


EACH = {(j.paper, type(j.experiments[0].clock), j.experiments[0].problem.model is None): j for j in JOBS}
"""A job of every paper and every clock."""


@pytest.mark.parametrize("job", EACH.values(), ids=lambda j: f"{j.paper}-{j.name}")
def test_the_file_is_that_of_a_training_of_all(job: Job, trained: list[tuple[int, tuple[int, ...]]]) -> None:
    """After a setting was declared otherwise, and after a seed was added."""
    whole = seeded(job, 0, 1)
    together = train(whole, Path("together.parquet"))
    first, rest = job.experiments[0].labels, [e.labels for e in job.experiments[1:]]
    before = train(otherwise(seeded(job, 1)) if hasattr(job.experiments[0].algorithm, "lr") else seeded(job, 1))
    after = train(whole)
    for labels in rest:
        equal(of(after, labels, 1), of(before, labels, 1))
    ends = [c for c in together.columns if c != "value"]
    equal(after[ends], together[ends])
    close(after, together)
    assert trained[-2:] == [(1, (0, 1)), (len(rest), (0,))] if rest else [(1, (0, 1))]
    assert len(of(after, first, 0, 1))
    assert results.standing(whole).words in ("current", f"all {whole.runs} runs of uncommitted code")
    assert not list(Path("store/checkpoints").iterdir())


def test_what_is_no_longer_declared_goes(capsys: pytest.CaptureFixture[str]) -> None:
    """Who reads the file without this package would take it for what it was not: here another rate under the same
    labels, and a setting that is gone; the seed of the others stays. A play knows only its own part of a file."""
    first, last = QUICK.experiments[0], QUICK.experiments[-1]
    train(seeded(otherwise(QUICK), 7))
    now = seeded(replace(QUICK, experiments=QUICK.experiments[:-1]), 0)
    after = train(now)
    assert f"{FILE}: 2 runs of what is no longer declared will go" in capsys.readouterr().err
    assert set(of(after, first.labels)["seed"]) == {0}
    assert of(after, last.labels).empty
    assert set(of(after, QUICK.experiments[1].labels)["seed"]) == {0, 7}
    train(replace(now, experiments=(last,), file=QUICK.name))
    assert len({run.name[:-1] for run in store.usable(FILE)[1]}) == ALL


@pytest.mark.parametrize("source", ["older", "current"])
def test_what_nobody_asks_for_stays_and_is_not_read(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = train(seeded(QUICK, 7))
    if source == "older":
        written.edit(FILE, code="other")
    assert not results.standing(seeded(QUICK, 0, 1)).usable
    after = train(seeded(QUICK, 0, 1))
    assert held() == [0, 1, 7]
    equal(after[after["seed"] == 7].reset_index(drop=True), before)
    monkeypatch.setenv("REPRODUCE_SEEDS", "1")
    draw("fedagrac/fig4")
    assert set(pd.read_csv(plan.cells_file("smoke", "fedagrac/fig4"))["seed"]) == {1}
    one = plan.made_from("smoke", "fedagrac/fig4")
    monkeypatch.setenv("REPRODUCE_SEEDS", "0,1")
    assert one != plan.made_from("smoke", "fedagrac/fig4"), "what was drawn from one seed is drawn again for two"


def test_a_setting_that_is_new_is_trained_alone(trained: list[tuple[int, tuple[int, ...]]]) -> None:
    """Such as another algorithm, though all settings together then have more code than those that are there."""
    mine = {type(e.algorithm) for e in QUICK.experiments}
    others: list[Any] = [e.algorithm for j in JOBS for e in j.experiments if j.paper == "fedacs"]
    algorithm = next(a for a in others if type(a) not in mine)
    more = replace(
        QUICK.experiments[0], algorithm=algorithm, labels={**QUICK.experiments[0].labels, "algorithm": "another"}
    )
    training.train(seeded(QUICK, 0))
    training.train(seeded(replace(QUICK, experiments=(*QUICK.experiments, more)), 0))
    assert trained[-1] == (1, (0,))


def test_a_kill_leaves_the_file_as_it_was_and_the_next_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("REPRODUCE_CHECKPOINT", "0")
    training.train(seeded(QUICK, 1))
    before = FILE.read_bytes()
    with monkeypatch.context() as context:
        context.setattr(store, "merge", killed)
        with pytest.raises(KeyboardInterrupt):
            training.train(seeded(QUICK, 0, 1, 2))
    assert FILE.read_bytes() == before
    assert list(Path("store/checkpoints").iterdir())
    after = train(seeded(QUICK, 0, 1, 2))
    assert any(run.training["resumed"] for run in store.usable(FILE)[1])
    together = train(seeded(QUICK, 0, 1, 2), Path("together.parquet"))
    pd.testing.assert_frame_equal(after, together, rtol=1e-2)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
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


@pytest.mark.parametrize(
    ("others", "after"),
    [((0, 2), False), ((0, 2), True), ((0, 1), True)],
    ids=["other seeds, before the end", "other seeds, after it", "the same seeds, after it"],
)
def test_two_processes_add_seeds_to_one_file(
    others: tuple[int, ...], after: bool, meanwhile: Callable[..., None]
) -> None:
    """Who asks for the same seeds before the end is refused (test_sole.py)."""
    training.train(seeded(QUICK, 0))
    meanwhile(lambda: training.train(seeded(QUICK, *others)), after)
    training.train(seeded(QUICK, 0, 1))
    assert held() == sorted({0, 1, *others})
    assert results.standing(seeded(QUICK, 0, 1)).state == "current"
    assert not list(Path("store/checkpoints").iterdir())


def test_a_file_that_is_damaged_is_replaced_and_nothing_of_it_is_kept(meanwhile: Callable[..., None]) -> None:
    training.train(seeded(QUICK, 0))
    meanwhile(lambda: FILE.write_bytes(FILE.read_bytes()[:-9]), False)
    training.train(seeded(QUICK, 0, 1))
    assert held() == [1]


def test_runs_of_other_data_are_not_put_together() -> None:
    training.train(seeded(QUICK, 1))
    name, _ = min(store.usable(FILE)[1][0].training["data"].items())
    written.edit(FILE, data={name: "another"})
    with pytest.raises(UserError, match=re.escape(f"trained on other data ({name})")):
        training.train(seeded(QUICK, 0, 1))
    assert held() == [1]
    training.train(seeded(QUICK, 0), Path("alone.parquet"))
    written.edit(FILE, code="old")
    training.train(seeded(QUICK, 1))
    assert held() == [1], "what is replaced may be of other data"


def test_seeds_that_nobody_asks_for_cost_nothing_in_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """In cells of what a run costs, which are read from the provenance."""
    artifact = "dynamic_init/table15"
    for i, job in enumerate(plan.artifact_jobs("smoke", artifact)):
        training.train(seeded(job, *((0, 9, 1) if i % 2 else (1, 0))))
        written.edit(job.output, lambda run: replace(run, seconds=run.seed + 1.0))
    monkeypatch.setenv("REPRODUCE_SEEDS", "0,1")
    draw(artifact)
    cells = pd.read_csv(plan.cells_file("smoke", artifact))
    assert set(cells["seed"]) == {0, 1}
    spent = cells[cells["metric"] == "cpu_time_seconds"].groupby("seed")["value"].apply(list)
    assert [2 * seconds for seconds in spent[0]] == spent[1]


def test_a_result_of_tomorrow_is_older_than_what_has_it_trained_again() -> None:
    """A clock was set back, or a server's is ahead: Snakemake compares times as floats, whose step is some 240 ns."""
    training.train(seeded(QUICK, 0))
    written.edit(FILE, code="other")
    os.utime(FILE, (time.time() + 86400,) * 2)
    marker = outdated.train_marker(known(QUICK))
    assert os.path.getmtime(marker[0]) > os.path.getmtime(FILE)


def test_a_result_that_comes_while_a_figure_is_drawn_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.report import render as report

    for job in plan.artifact_jobs("smoke", "fedagrac/fig4"):
        training.train(job)
    real = report.make
    fresh = partial(outdated.fresh, "smoke", "fedagrac/fig4")

    def slow(*arguments: Any) -> list[Path]:
        made = real(*arguments)
        written.edit(FILE, date="later")
        return made

    monkeypatch.setattr(report, "make", slow)
    draw("fedagrac/fig4")
    assert not fresh(outdated.Budget())
    monkeypatch.setattr(report, "make", real)
    draw("fedagrac/fig4")
    assert fresh(outdated.Budget())


@pytest.mark.parametrize("model", [MLP(64, 12, 10), Network("own_modules:make", (("name", "BN(4)"),))])
def test_a_module_loads_the_file_and_has_the_accuracy_of_the_run(tmp_path: Path, model: Model) -> None:
    e = replace(experiment(2), problem=replace(DIGITS, model=model))
    done = run([e, judged(e)])
    saved.write(done, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file == saved.path(tmp_path, e, 0)
    module = model.module()
    module.load_state_dict(load_file(file))
    data = done[0].env.split.device_data  # type: ignore[union-attr]
    with torch.inference_mode():
        out = module.eval()(data.test_x)
    logits = out[1][-1] if isinstance(out, tuple) else out
    accuracy = 100 * (logits.argmax(1) == data.test_y).float().mean().item()
    with safe_open(file, "pt") as stored:
        told = {name: json.loads(text) for name, text in stored.metadata().items()}
    assert told["metrics"]["accuracy"] == pytest.approx(accuracy)
    assert (told["seed"], told["status"], told["mean"]) == (0, "ok", [])
    assert told["experiment"] == json.loads(json.dumps(e.record()))
