"""Wrong input and damaged files with the real data, rendering and training code: one clear line, status 2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from reproduce.__main__ import main
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import Experiment, Panel
from reproduce.errors import unknown
from reproduce.runs import plan
from reproduce.store import reading
from tests.unplayed import Unplayed


@dataclass(frozen=True)
class Toy:
    requires: tuple[str, ...] = ()


@pytest.fixture
def _declared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One figure over a panel with embedded data and one that needs MNIST, in an empty working directory."""

    def panel(name: str, *requires: str) -> Panel:
        return Panel(name, (Experiment({"algorithm": "fedavg"}, Toy(requires), 1, 2, Unplayed()),), (0,))

    def draw(histories: object, cells: object) -> None:
        raise AssertionError("nothing to draw from")

    panels = (panel("toy"), panel("digits", "mnist"))
    figure = Artifact("fedacs", "fig1", "Title", lambda scale: panels, lambda histories: histories.frame, draw)
    monkeypatch.setattr(plan, "artifacts", lambda: (figure,))
    monkeypatch.setenv("REPRODUCE_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    plan._jobs.cache_clear()
    reading._say.cache_clear()
    yield
    plan._jobs.cache_clear()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr of a command that ends with status 2."""
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    return errors


@pytest.mark.usefixtures("_declared")
@pytest.mark.parametrize("damage", ["empty", "cut short", "not parquet"])
def test_a_damaged_results_file_is_named(damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    path = Path("results/smoke/fedacs/toy.parquet")
    path.parent.mkdir(parents=True)
    pd.DataFrame({"seed": range(1000), "value": 0.5}).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "cut short": whole[: len(whole) // 2], "not parquet": b"hello" * 100}[damage])
    assert main(("render", "smoke", "fedacs/fig1")) == 0
    out, err = capsys.readouterr()
    assert err == f"not used: {path}: not a complete results file\n"
    assert "panel toy not run: its results are not used: not a complete results file" in out


@pytest.mark.usefixtures("_declared")
def test_results_that_were_not_trained_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The artifact is drawn with what there is, and says what is not."""
    Path("results").mkdir()
    assert main(("render", "smoke", "fedacs/fig1")) == 0
    assert "fedacs/fig1 at scale smoke: panel toy not run: no results yet" in capsys.readouterr().out


@pytest.mark.usefixtures("_declared")
def test_a_missing_data_folder_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = refused(capsys, "train", "smoke", "fedacs", "digits")
    assert "data set mnist" in line
    assert f"the data folder {tmp_path / 'nowhere'} does not exist" in line


def test_an_unknown_data_set_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown data set 'mnits'; did you mean mnist" in refused(capsys, "data", "get", "mnits")
    assert "name the data set to fetch" in refused(capsys, "data", "get")


def test_a_panel_without_seeds_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="panel 'toy' has an empty list of seeds"):
        Panel("toy", (), ())


def test_an_unknown_name_lists_a_dozen_of_many() -> None:
    message = str(unknown("job", "zzz", (f"panel-{i:03d}" for i in range(100))))
    assert message.endswith("panel-011, ... and 88 more")
    assert str(unknown("scale", "zzz", ("a", "b"))).endswith("known: a, b")
