"""A server step in place gives the same as out of place, on every clock: what clocks remember is not written to."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from runs import run

from reproduce.clocks.sessions import Sessions
from reproduce.play.benchmarks import ALIASES, find
from reproduce.play.specs import parse

OWN = """
from dataclasses import dataclass

def outside(self, env, state, *rest):
    state["x"] = state["x"] + 0.9 * rest[-1].sums[0]

def added(self, env, state, *rest):
    state["x"] += 0.9 * rest[-1].sums[0]

def pieces(self, env, state, *rest):
    for i in range(0, len(state["x"]), 7):
        state["x"][i : i + 7] += 0.9 * rest[-1].sums[0][i : i + 7]

def written(self, env, state, *rest):
    state["x"][:] = state["x"] + 0.9 * rest[-1].sums[0]

def data(self, env, state, *rest):
    state["x"].data.copy_(state["x"] + 0.9 * rest[-1].sums[0])

def array(self, env, state, *rest):
    state["x"].numpy()[:] = (state["x"] + 0.9 * rest[-1].sums[0]).numpy()

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

def own(way):
    return dataclass(frozen=True)(type(way.__name__.title(), (BASE,), {HOOK: way, "__module__": __name__}))

Outside, Added, Pieces = own(outside), own(added), own(pieces)
Written, Data, Array, Arrivals = own(written), own(data), own(array), own(arrivals)
"""
HEADS = (
    'from reproduce.algorithms.base import FedAvg as BASE\nHOOK = "aggregate"\n',
    'from reproduce.algorithms.asynchronous import Asynchronous as BASE\nHOOK = "combine"\n',
)
"""Of clocks with rounds, and of virtual time."""
WAYS = ("Added", "Pieces", "Written", "Data", "Array", "Arrivals")


@pytest.mark.parametrize("alias", [a for a in ALIASES if a != "capacities"])  # whole models do not fit there
def test_in_place_is_out_of_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str) -> None:
    benchmark = find(alias, "smoke")
    (tmp_path / "places.py").write_text(HEADS[alias == "virtual-time"] + OWN)
    monkeypatch.chdir(tmp_path)
    asked = [benchmark.experiment(parse(f"places:{way}")) for way in ("Outside", *WAYS)]
    if isinstance(benchmark.template.clock, Sessions):  # the first round of a session, and the last
        asked = [replace(e, clock=replace(e.clock, rounds=2)) for e in asked]
    plain, *others = run(asked)
    history = pd.DataFrame(plain.state["history"])
    assert plain.state["status"] == "ok"
    for way, other in zip(WAYS, others, strict=True):
        assert pd.DataFrame(other.state["history"]).equals(history), way
        assert other.state["x"].equal(plain.state["x"]), way
