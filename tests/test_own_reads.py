"""Results of a user's own code are used again unless that code names a way to read something besides its files."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from reproduce import store
from reproduce.declare import apart
from reproduce.play import play
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import parse
from reproduce.runs import results, training

ON = "fedacs/fig7-static@2"
OWN = """
import importlib, os
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from reproduce.algorithms.base import FedAvg

{before}

@dataclass(frozen=True)
class Reads(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + {number} * trained.sums[0]
"""
OPENED = 'float(Path("number.txt").read_text())'
READING = {
    "when it is loaded": (f"NUMBER = {OPENED}", "NUMBER"),
    "when it runs": ("", OPENED),
    "names of a folder": ("", 'float(len(list(Path("many").glob("*"))))'),
    "code by exec": ('exec(Path("by_name.py").read_text())', "NUMBER"),
    "variable": ("from os import environ as known", 'float(known.get("NUMBER", "1.0"))'),
    "program": ("import subprocess", 'float(subprocess.run(["echo", "2.0"], capture_output=True).stdout)'),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("NUMBER", "2.0")
    (tmp_path / "number.txt").write_text("2.0")
    (tmp_path / "by_name.py").write_text("NUMBER = 2.0")
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "1").touch()
    sys.modules.pop("by_name", None)
    importlib.invalidate_caches()
    return tmp_path


def value() -> float:
    return float(play("reading:Reads", on=ON, scale="smoke", seeds=(0,))["value"].iloc[-1])


def standing() -> results.Standing:
    match = Match([parse("reading:Reads")], [find(ON, "smoke")], (0,))
    job = match.reported(match.entries[-1])
    assert job is not None
    return results.standing(job)


@pytest.mark.parametrize("case", READING)
def test_what_reads_is_trained_again(folder: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, number = READING[case]
    (folder / "reading.py").write_text(OWN.format(before=before, number=number))
    was = value()
    assert " reads " in capsys.readouterr().err
    assert standing().state == "reading"
    assert not standing().holds
    if "number.txt" in before + number:
        (folder / "number.txt").write_text("3.0")
        assert value() != was


def test_what_reads_nothing_is_used_again_until_its_files_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside it that it imports is one of them; methods of networks and systems are no ways to read."""
    number = "float(env.random(1).sum()) + env.system.work.step * env.clients + reading_helper.NUMBER"
    (folder / "reading.py").write_text(
        OWN.format(before="import wave, reading_helper\nlayer.eval().load_state_dict({}) if 0 else 0", number=number)
    )
    (folder / "reading_helper.py").write_text("NUMBER = 1 # as much as it writes in count.txt")
    was = value()
    assert standing().holds
    with monkeypatch.context() as patch:
        patch.setattr(training, "train", lambda job: pytest.fail("trained again"))
        assert value() == was
    (folder / "reading_helper.py").write_text("NUMBER = 2")
    assert not standing().holds
    assert value() != was
    assert not apart.reads([folder / "reading.py", folder / "reading_helper.py"])


NET = """
import torch
from pathlib import Path
class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(144, 4)
        {init}
    def forward(self, x):
        return super().forward(x.flatten(1) * {factor})
"""


@pytest.mark.parametrize(
    ("init", "factor", "due"),
    [
        ("pass", "2.0", False),
        ("self.bias.data.fill_(float(Path('number.txt').read_text()))", "2.0", True),
        ("pass", "float(Path('number.txt').read_text())", True),
    ],
)
def test_a_network_that_reads_is_trained_again(folder: Path, init: str, factor: str, due: bool) -> None:
    (folder / "reading_net.py").write_text(NET.format(init=init, factor=factor))
    for _ in range(2):
        play("fednova", on="fedagrac/fig5-tiny-cnn-3@1", model="reading_net:Net", scale="smoke", seeds=(0,))
    (file,) = Path("results/smoke/play").iterdir()
    assert all(bool(run.training.get("read")) == due for run in store.found(file)[1])
