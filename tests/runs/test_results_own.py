"""Own code is trained again whenever it is asked for; with REPRODUCE_REUSE only if a file of it has changed."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.declare import closure
from reproduce.play import play
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.owndata import benchmarks
from reproduce.play.specs import parse
from reproduce.runs import results, training

ON = "fedacs/fig7-static@2"
OWN = """
from dataclasses import dataclass
from pathlib import Path
from reproduce.algorithms.base import FedAvg

@dataclass(frozen=True)
class Reads(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + {number} * trained.sums[0]
"""
NUMBERS = {
    "a file": ("number.txt", "float(Path('number.txt').read_text())", "{}"),
    "a helper by name": ("pack/helper.py", "__import__('importlib').import_module('pack.helper').N", "N = {}"),
    "a relative import": ("pack/inner.py", "__import__('pack.outer').outer.N", "N = {}"),
}
"""What it reads -> the file, how it reads it, what is in the file."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").touch()
    (tmp_path / "pack/outer.py").write_text("from .inner import N")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pack", "reading")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return tmp_path


def value() -> float:
    return float(play("reading:Reads", on=ON, scale="smoke", seeds=(0,))["value"].iloc[-1])


def standing() -> results.Standing:
    match = Match([parse("reading:Reads")], [find(ON, "smoke")], (0,))
    job = match.reported(match.entries[-1])
    assert job is not None
    return results.standing(job)


@pytest.mark.parametrize("what", NUMBERS)
def test_own_code_is_trained_again(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the variable only if a file of it is another, wherever its imports stand; what else it reads is not seen."""
    file, number, text = NUMBERS[what]
    (folder / file).write_text(text.format(2.0))
    (folder / "reading.py").write_text(OWN.format(number=number))
    was = value()
    assert standing().state == "own"
    (folder / file).write_text(text.format(3.0))
    other = value()
    assert other != was
    monkeypatch.setenv("REPRODUCE_REUSE", "1")
    assert standing().holds
    assert (file in capsys.readouterr().err) == (what != "a file")
    with monkeypatch.context() as patch:
        patch.setattr(training, "train", lambda job: pytest.fail("trained again"))
        assert value() == other
    (folder / file).write_text(text.format(4.0))
    assert standing().holds == (what == "a file")
    (folder / "reading.py").write_text(OWN.format(number=number) + "\n\n")
    assert not standing().holds


NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(144, 4)
    def forward(self, x):
        return self.fc(x.flatten(1){more})
"""


@pytest.mark.parametrize("more", ["", ".cos()"])
def test_a_network_likewise(folder: Path, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a graph takes its place or not."""
    (folder / "own_net.py").write_text(NET.format(more=more))
    sys.modules.pop("own_net", None)
    asked = {"on": "fedagrac/fig5-tiny-cnn-3@1", "model": "own_net:Net", "scale": "smoke"}
    play("fedavg", **asked, seeds=(0,))  # type: ignore[arg-type]
    match = Match([], benchmarks([str(asked["on"])], "smoke", model="own_net:Net"), (0,))
    job = match.reported(match.entries[0])
    assert job is not None
    assert results.standing(job).state == "own"
    monkeypatch.setenv("REPRODUCE_REUSE", "1")
    assert results.standing(job).state == "current"


SLOW = """
import time
from reproduce.algorithms.base import FedAvg
class Slow(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        print("round", now.round, flush=True)
        time.sleep(__import__("pack.outer").outer.N)
        super().aggregate(env, state, now, cohort, trained)
"""


@pytest.mark.parametrize("changed", [False, True])
def test_with_the_variable_a_stopped_run_goes_on(folder: Path, changed: bool) -> None:
    """Unless a file is another that its process had loaded, however it came by it."""
    (folder / "slow.py").write_text(SLOW)
    (folder / "pack/inner.py").write_text("N = 0.2")
    words = [sys.executable, "-m", "reproduce", "play", "slow:Slow", "--on", "fedacs/fig7-static@4", "--scale", "smoke"]
    there = {**os.environ, "PYTHONPATH": str(closure.PACKAGE.parent), "REPRODUCE_CHECKPOINT": "0"}
    process = subprocess.Popen([*words, "--seeds", "0", "--reuse"], env=there, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "round 2\n":
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM
    if changed:
        (folder / "pack/inner.py").write_text("N = 0.0")
    again = subprocess.run(
        [*words, "--seeds", "0", "--reuse"], env=there, stdout=subprocess.PIPE, text=True, check=True
    )
    assert again.stdout.startswith("round 0" if changed else ("round 1", "round 2", "round 3"))  # as kept
