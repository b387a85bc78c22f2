"""A file of a user's own with algorithms that work, raise, diverge or are none, and one that it imports."""

import sys
from pathlib import Path

import pytest

OWN = """
from dataclasses import dataclass
from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fednova import FedNova
from helper import FACTOR

@dataclass(frozen=True)
class Slow(FedAvg):
    share: float = 0.5
    steps: int = 2
    word: str = "a"

    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + FACTOR * self.share * trained.sums[0]

@dataclass(frozen=True)
class Raises(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        if now.round == 2:
            return 1 / 0
        super().aggregate(env, state, now, cohort, trained)

@dataclass(frozen=True)
class Diverges(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] * (float("inf") if env.seed else 1.0)

@dataclass(frozen=True)
class Picky(FedAvg):
    def check(self, problem, system):
        raise ValueError("I like no problem")

class Plain:
    pass

class Forgotten(FedAvg):
    share: float = 0.5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with them, and a store of its own."""
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "helper.py").write_text("FACTOR = 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    return tmp_path
