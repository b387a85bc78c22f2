"""What a user's own code reads counts as code: where it has changed, results are trained again; else they are not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce.declare import inputs
from reproduce.play import play
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import parse
from reproduce.runs import results, training

ON = "fedacs/fig7-static@2"
OWN = """
import importlib, os, subprocess
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from reproduce.algorithms.base import FedAvg

def opened(path):
    with open(path) as file:
        return file.read()

{before}

@dataclass(frozen=True)
class Reads(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + {number} * trained.sums[0]
"""
HERE = Path(__file__).parent


def first(folder: Path) -> None:
    (folder / "number.txt").write_text("2.0")
    (folder / "by_name.py").write_text("NUMBER = 2.0")
    (folder / "many").mkdir()
    (folder / "many" / "1").touch()


def text(folder: Path) -> None:
    (folder / "number.txt").write_text("3.0")


def name(folder: Path) -> None:
    (folder / "by_name.py").write_text("NUMBER = 3.0")


def file(folder: Path) -> None:
    (folder / "many" / "2").touch()


def gone(folder: Path) -> None:
    (folder / "number.txt").unlink()


def variable(folder: Path) -> None:
    import os

    os.environ["NUMBER"] = "3.0"


OPENED = 'float(opened("number.txt"))'
GUARDED = """
def number():
    try:
        return float(opened("maybe.txt"))
    except OSError:
        return 1.0
"""


def appears(folder: Path) -> None:
    (folder / "maybe.txt").write_text("3.0")


CASES: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "when it is loaded": (f"NUMBER = {OPENED}", "NUMBER", text),
    "when it runs": ("", OPENED, text),
    "by pathlib": ("", 'float(Path("number.txt").read_text())', text),
    "by NumPy": ("", 'float(np.loadtxt("number.txt"))', text),
    "by descriptor": ("", 'float(os.read(os.open("number.txt", os.O_RDONLY), 9))', text),
    "in another folder": ("", 'float(opened("many/../number.txt"))', text),
    "deleted": (GUARDED.replace("maybe", "number"), "number()", gone),
    "that was not there": (GUARDED, "number()", appears),
    "names of a folder": ("", 'float(len(os.listdir("many")))', file),
    "names by glob": ("", 'float(len(list(Path("many").glob("*"))))', file),
    "module by name": ("", 'importlib.import_module("by_name").NUMBER', name),
    "module by __import__": ('NUMBER = __import__("by" + "_name").NUMBER', "NUMBER", name),
    "code by exec": ('exec(opened("by_name.py"))', "NUMBER", name),
    "variable": ("", 'float(os.environ["NUMBER"])', variable),
    "variable by getenv": ("", 'float(os.getenv("NUMBER", "1.0"))', variable),
    "variable by get": ('NUMBER = float(os.environ.get("NUMBER"))', "NUMBER", variable),
    "all variables": ("", 'float(dict(os.environ)["NUMBER"])', variable),
    "a copy of them": ("", 'float(os.environ.copy()["NUMBER"])', variable),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("NUMBER", "2.0")
    first(tmp_path)
    forget()
    return tmp_path


def forget() -> None:
    """As in a new process."""
    sys.modules.pop("by_name", None)
    importlib.invalidate_caches()
    inputs._noted.clear()


def value() -> float:
    return float(play("reading:Reads", on=ON, scale="smoke", seeds=(0,))["value"].iloc[-1])


def due() -> bool:
    (entry,) = Match([], [find(ON, "smoke")], (0,), against=parse("reading:Reads")).entries
    job = Match([], [find(ON, "smoke")], (0,), against=parse("reading:Reads")).reported(entry)
    assert job is not None
    return not results.standing(job).holds


@pytest.mark.parametrize("case", CASES)
def test_it_is_trained_again_where_what_it_read_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    before, number, change = CASES[case]
    (folder / "reading.py").write_text(OWN.format(before=before, number=number))
    was = value()
    forget()
    assert not due()
    with monkeypatch.context() as patch:
        patch.setattr(training, "train", lambda job: pytest.fail("trained again"))
        assert value() == was
    forget()
    change(folder)
    assert due()
    assert value() != was
    forget()
    assert not due()


def test_another_program_is_never_taken_for_the_same(folder: Path) -> None:
    number = 'float(subprocess.run(["echo", "2.0"], capture_output=True).stdout)'
    (folder / "reading.py").write_text(OWN.format(before="", number=number))
    value()
    assert due()


def test_what_libraries_and_this_package_read_does_not_count(folder: Path) -> None:
    """Nor what others read while no own code runs, nor its own files, which are in the digest of the code."""
    number = "float(np.median([2.0, env.clients, 2.0])) + float(env.random(1).sum())"
    (folder / "reading.py").write_text(OWN.format(before="import wave, reading_helper", number=number))
    (folder / "reading_helper.py").write_text("NUMBER = 1")
    value()
    (file,) = Path("results/smoke/play").iterdir()
    assert {str(run.training.get("read")) for run in results.stored(file)} == {"None", "{}"}
