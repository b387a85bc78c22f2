"""A user's own algorithm gives the same bits whatever runs beside it, or an error that says why."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import own_habits
import pytest
import torch
from own_habits_ends import OUTSIDE, REFUSED, UNREPEATED, WORKS
from runs import run

from reproduce.engine.checkpoint import put, unpack
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.errors import OwnCodeError, UserError
from reproduce.play import play, shown
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import parse
from reproduce.runs.results import stored
from reproduce.settings import settings

ON = "fedacs/fig7-static@4"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    name = getattr(request.node, "callspec", SimpleNamespace(params={})).params.get("name")
    names = (name,) if name else ("Seeded", "Remembers", *UNREPEATED)
    (tmp_path / "habits.py").write_text(own_habits.only("Same", *names))
    (tmp_path / "habits_helper.py").write_text(own_habits.HELPER)
    (tmp_path / "habits_lazy.py").write_text(own_habits.LAZY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    for name in ("habits_helper", "habits_lazy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def models(name: str, seeds: tuple[int, ...]) -> dict[int, list[float]]:
    """Seed -> the model at the end of its run, by a module that is loaded anew."""
    experiment = find(ON, "smoke").experiment(parse(f"habits:{name}"))
    return {played.seed: played.state["x"].tolist() for played in run([experiment], seeds)}


@pytest.mark.parametrize("name", WORKS)
def test_the_same_bits_alone_and_in_a_cohort(folder: Path, name: str) -> None:
    beside = models(name, (1, 0))
    assert models(name, (0,))[0] == beside[0]
    assert models(name, (0, 1)) == beside


@pytest.mark.parametrize("name", ["GlobalNumpy", "GlobalTorch", "GlobalRandom"])
def test_luck_differs_from_seed_to_seed(folder: Path, name: str) -> None:
    plain, lucky = models("Same", (0, 1)), models(name, (0, 1))
    moves = [[a - b for a, b in zip(lucky[seed], plain[seed], strict=True)] for seed in (0, 1)]
    assert moves[0] != moves[1]


@pytest.mark.parametrize("name", [*OUTSIDE, *REFUSED])
def test_an_error_that_says_why(folder: Path, name: str) -> None:
    seeds = (2, 1, 0) if name in OUTSIDE else (0,)
    said = f"it changes {OUTSIDE[name]}, so that" if name in OUTSIDE else REFUSED[name]
    with pytest.raises((OwnCodeError, ValueError)) as error:
        models(name, seeds)
    assert said in str(error.value)


@pytest.mark.parametrize("name", ["Sets64", "SharedData"])
def test_what_is_trained_next_is_as_ever(folder: Path, name: str) -> None:
    before = models("Same", (0,))
    with contextlib.suppress(OwnCodeError):
        models(name, (0,))
    assert models("Same", (0,)) == before
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("FedAvg.aggregate = lambda *rest: None", "FedAvg.aggregate"),
        ("import reproduce.streams\nreproduce.streams.WORD = 7", "reproduce.streams.WORD"),
        ("from reproduce.engine import trainer\ntrainer.Trainer = None", "reproduce.engine.trainer.Trainer"),
        ("import torch\ntorch.set_default_dtype(torch.float64)", ""),
    ],
)
def test_a_module_that_changes_the_package_is_refused_and_settings_are_put_back(
    folder: Path, code: str, said: str
) -> None:
    before = models("Same", (0,))
    (folder / "patching.py").write_text(
        f"from reproduce.algorithms.base import FedAvg\n{code}\nclass A(FedAvg): pass\n"
    )
    if said:
        with pytest.raises(UserError, match=f"patching.py cannot be used: it exchanges {said} of this package"):
            parse("patching:A")
    else:
        parse("patching:A")
    assert models("Same", (0,)) == before
    assert torch.get_default_dtype() == torch.float32


LATE = """
from reproduce.algorithms.base import FedAvg
class A(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        if now.round == 3:
            FedAvg.aggregate = lambda *rest: None
        super().aggregate(env, state, now, cohort, trained)
"""


def test_one_that_exchanges_parts_of_the_package_while_it_runs_fails_alone(folder: Path) -> None:
    (folder / "patching.py").write_text(LATE)
    before = play("fednova", on=ON, scale="smoke", seeds=(0,))
    for file in Path("results/smoke/play").iterdir():
        file.unlink()
    frame = play(["patching:A", "fednova"], on=ON, scale="smoke", seeds=(0,)).set_index("algorithm")
    assert frame.loc["patching:A", "status"].startswith("failed: it exchanges FedAvg.aggregate")
    assert frame.loc["fednova", "value"] == before.set_index("algorithm").loc["fednova", "value"]
    (file,) = Path("results/smoke/play").iterdir()
    assert {run.labels["algorithm"] for run in stored(file)} == {"fednova", "fedavg"}


def test_what_no_trace_shows_is_seen_when_it_is_trained_once_more(folder: Path) -> None:
    frame = play([f"habits:{name}" for name in (*UNREPEATED, "Remembers")], on=ON, scale="smoke", seeds=(0, 1))
    status = frame.drop_duplicates("algorithm").set_index("algorithm")["status"]
    for name in UNREPEATED:
        assert status[f"habits:{name}"].startswith("failed: its first rounds give other numbers when they are trained")
    assert status["habits:Remembers"] == "ok"
    (file,) = Path("results/smoke/play").iterdir()
    assert {run.labels["algorithm"] for run in stored(file)} == {"fedavg", "habits:Remembers"}


def test_an_algorithm_that_is_another_to_the_last_digit_is_named(folder: Path) -> None:
    match = Match([parse("habits:Same"), parse("habits:Seeded")], [find(ON, "smoke")], (0, 1))
    match.train()
    assert [(own.text, other.text) for own, other in match.twins()] == [("habits:Same", "fedavg")]
    assert any("habits:Same gives the numbers of fedavg" in note for note in shown.notes(match))


@pytest.mark.parametrize("name", WORKS)
def test_a_resumed_run_ends_in_the_same_bits(folder: Path, name: str) -> None:
    """From every checkpoint that there could be, through the file that would be written."""
    experiment = find(ON, "smoke").experiment(parse(f"habits:{name}"))
    (whole,) = prepare([experiment], (1,), Tasks(settings()))
    kept: list[bytes] = []

    def tick() -> None:
        file = io.BytesIO()
        put(whole.state, file)
        kept.append(file.getvalue())

    Cohort([whole], Trainer(), tick).run()
    assert len(kept) == 5, "one at the beginning of every round, and one before the last evaluation"
    for state in kept:
        (resumed,) = prepare([experiment], (1,), Tasks(settings()))
        resumed.state.update(unpack(io.BytesIO(state)))
        Cohort([resumed], Trainer()).run()
        assert repr(resumed.state["history"]) == repr(whole.state["history"])
        assert resumed.state["x"].equal(whole.state["x"])
