"""A server step in place gives the same as out of place, on every clock: what clocks remember is not written to."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import run

from reproduce.play.benchmarks import ALIASES, find
from reproduce.play.specs import parse

OWN = """
from dataclasses import dataclass
from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.asynchronous import Asynchronous

def outside(self, env, state, *rest):
    state["x"] = state["x"] + 0.9 * rest[-1].sums[0]

def added(self, env, state, *rest):
    state["x"] += 0.9 * rest[-1].sums[0]

def method(self, env, state, *rest):
    state["x"].add_(rest[-1].sums[0].mul_(0.9))

def pieces(self, env, state, *rest):
    for i in range(0, len(state["x"]), 7):
        state["x"][i : i + 7] += 0.9 * rest[-1].sums[0][i : i + 7]

def written(self, env, state, *rest):
    state["x"][:] = state["x"] + 0.9 * rest[-1].sums[0]

def data(self, env, state, *rest):
    state["x"].data.copy_(state["x"] + 0.9 * rest[-1].sums[0])

def array(self, env, state, *rest):
    state["x"].numpy()[:] = (state["x"] + 0.9 * rest[-1].sums[0]).numpy()

def view(self, env, state, *rest):
    state["x"].view(-1)[:] = outside(self, env, state, *rest) or state["x"]

def arrivals(self, env, state, *rest):
    outside(self, env, state, *rest)
    if hasattr(rest[0], "start"):
        rest[0].start.zero_()
        rest[0].weight[:] = 0
    else:
        rest[0].offset[:] = 99
        rest[0].members[:] = 0
    env.weights[:] = 0
    env.samples[:] = 1

WAYS = (outside, added, method, pieces, written, data, array, view, arrivals)
for way in WAYS:
    for base, hook in ((FedAvg, "aggregate"), (Asynchronous, "combine")):
        name = base.__name__ + way.__name__.title()
        globals()[name] = dataclass(frozen=True)(type(name, (base,), {hook: way, "__module__": __name__}))
"""
WAYS = ("Added", "Method", "Pieces", "Written", "Data", "Array", "View", "Arrivals")


@pytest.mark.parametrize("alias", ALIASES)
def test_in_place_is_out_of_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str) -> None:
    (tmp_path / "places.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    benchmark = find(alias, "smoke")
    base = "Asynchronous" if alias == "virtual-time" else "FedAvg"
    plain, *others = run([benchmark.experiment(parse(f"places:{base}{way}")) for way in ("Outside", *WAYS)])
    assert plain.state["status"] == "ok"
    for way, other in zip(WAYS, others, strict=True):
        assert other.state["history"] == plain.state["history"], way
        assert other.state["x"].equal(plain.state["x"]), way
