"""A user's own algorithm gives the same bits whatever runs beside it, or an error that says why."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import own_habits
import pytest
from own_habits import OUTSIDE, REFUSED, UNREPEATED, WORKS
from runs import run

from reproduce.engine.checkpoint import put, unpack
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.errors import OwnCodeError
from reproduce.play import play, shown
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import parse
from reproduce.settings import settings

ON = "fedacs/fig7-static@3"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "habits.py").write_text(own_habits.OWN)
    (tmp_path / "habits_helper.py").write_text(own_habits.HELPER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.delitem(sys.modules, "habits_helper", raising=False)
    return tmp_path


def models(name: str, seeds: tuple[int, ...]) -> dict[int, list[float]]:
    """Seed -> the model at the end of its run, by a module that is loaded anew."""
    experiment = find(ON, "smoke").experiment(parse(f"habits:{name}"))
    return {played.seed: played.state["x"].tolist() for played in run([experiment], seeds)}


@pytest.mark.parametrize("name", WORKS)
def test_the_same_bits_alone_and_in_a_cohort(folder: Path, name: str) -> None:
    beside = models(name, (2, 1, 0))
    assert models(name, (0,))[0] == beside[0]
    assert models(name, (1, 0, 2)) == beside


@pytest.mark.parametrize("name", ["GlobalNumpy", "GlobalTorch", "GlobalRandom"])
def test_luck_differs_from_seed_to_seed(folder: Path, name: str) -> None:
    plain, lucky = models("Same", (0, 1)), models(name, (0, 1))
    moves = [[a - b for a, b in zip(lucky[seed], plain[seed], strict=True)] for seed in (0, 1)]
    assert moves[0] != moves[1]


@pytest.mark.parametrize("seeds", [(0,), (2, 1, 0)])
@pytest.mark.parametrize("name", [*OUTSIDE, *REFUSED])
def test_an_error_that_says_why(folder: Path, name: str, seeds: tuple[int, ...]) -> None:
    said = f"it changes {OUTSIDE[name]}, so that" if name in OUTSIDE else REFUSED[name]
    with pytest.raises((OwnCodeError, ValueError)) as error:
        models(name, seeds)
    assert said in str(error.value)


def test_what_no_trace_shows_is_seen_when_it_is_trained_once_more(folder: Path) -> None:
    frame = play([f"habits:{name}" for name in (*UNREPEATED, "Remembers")], on=ON, scale="smoke", seeds=(0, 1))
    status = frame.drop_duplicates("algorithm").set_index("algorithm")["status"]
    for name in UNREPEATED:
        assert status[f"habits:{name}"].startswith("failed: its first rounds give other numbers when they are trained")
    assert status["habits:Remembers"] == "ok"
    assert len(list(Path("results/smoke/play").iterdir())) == 2, "FedAvg's and that of the one that repeats itself"


def test_an_algorithm_that_is_another_to_the_last_digit_is_named(folder: Path) -> None:
    match = Match([parse("habits:Same"), parse("habits:Seeded")], [find(ON, "smoke")], (0, 1))
    match.train()
    assert [(own.text, other.text) for own, other in match.twins()] == [("habits:Same", "fedavg")]
    assert any("habits:Same gives the numbers of fedavg" in note for note in shown.notes(match))


@pytest.mark.parametrize("name", ["GlobalNumpy", "GlobalTorch", "GlobalRandom", "Remembers", "EntersState"])
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
    assert len(kept) == 4, "one at the beginning of every round, and one before the last evaluation"
    for state in kept:
        (resumed,) = prepare([experiment], (1,), Tasks(settings()))
        resumed.state.update(unpack(io.BytesIO(state)))
        Cohort([resumed], Trainer()).run()
        assert repr(resumed.state["history"]) == repr(whole.state["history"])
        assert resumed.state["x"].equal(whole.state["x"])
