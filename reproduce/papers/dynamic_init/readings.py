"""What is run: readings of Tables 8, 9 and 11 that their printed numbers suggest, beside what the paper says.

Eight sessions for six or seven; a rate that does not fall; shared labels whole; schemes that go on from the pilot
session. Other choices are crossed with these, with FedAvg, so that one cannot stand in for another unseen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from reproduce.algorithms.session_starts import Average, Previous, Proposed, Start
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.settings import SCALES, SessionData, SessionScale
from reproduce.papers.dynamic_init.suggested import CarriedAverage, CarriedPrevious, SharedWhole
from reproduce.systems.clients import Membership, Rotation

SCHEMES = ("proposed", "previous", "average")
THREE, FIVE, TEN, HUNDRED = (tuple(range(n)) for n in (3, 5, 10, 100))
SESSIONS = 8
TURNS = (2, 0, 1, 2, 0, 1, 2, 1)
"""Whose turn the sessions are where three groups take turns."""
CARRIED = {("proposed", "previous"): "Average alone restarts", (): "all restart", SCHEMES: "all go on from the pilot"}
"""Schemes whose first session after the pilot goes on from its model -> in words. The others start it at random."""


class Reading(NamedTuple):
    """One combination of choices. lr: at the start of a session. groups: sizes of the groups of clients, and the order
    of their turns, where they are not those of the tables."""

    lr: float
    decays: bool = False
    rounds: int = 50
    whole: bool = True
    carried: tuple[str, ...] = ("proposed", "previous")
    groups: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __str__(self) -> str:
        sizes, order = self.groups
        parts = (
            f"{self.rounds} rounds at a {'falling' if self.decays else 'constant'} rate {self.lr:.3g}",
            f"shared labels {'whole' if self.whole else 'halved'}",
            CARRIED[self.carried],
            *([f"{len(set(order))} groups of {sizes[0]}"] if sizes else []),
        )
        return ", ".join(parts)


RATES = {"mnist": (0.002, 0.001, 0.0015, 0.0025), "fashion_mnist": (0.003, 0.002, 0.004)}
"""Of all algorithms but SCAFFOLD; the first is the one that the print suggests."""
STEPS = (0.0072, 0.0102, 0.0144, 0.0204, 0.0288, 0.0408)
"""SCAFFOLD's rates, which are the server's steps as well: each is 1.41 times the one before."""
BLOCKS = ("partial_overlap", "half", "distinct")


def readings(scale: str) -> tuple[Panel, ...]:
    """Panels of a label distribution on a data set; at reduced scale none: nothing is printed of it."""
    here = SCALES[scale]
    if scale == "smoke":
        toy = Reading(0.02, rounds=10)
        rows = [("half", "10", toy), *(("partial_overlap", "10", toy._replace(whole=whole)) for whole in (True, False))]
        asked = [(*row, algorithm) for row in rows for algorithm in ("fedavg", "scaffold")]
        return (_panel("readings", here, "mnist", asked, (0,)),)
    return tuple(_paper(here)) if scale == "paper" else ()


def _paper(here: SessionScale) -> Iterable[Panel]:
    for data, (rate, *_) in RATES.items():
        first = Reading(rate)
        both = (first, first._replace(carried=()))
        for kind in BLOCKS:
            asked = [(kind, "10", r, a) for a in ("fedavg", "fedprox") for r in both[: 2 if a == "fedavg" else 1]]
            yield _panel(f"readings-{kind}", here, data, asked, TEN)
            yield _panel(f"fewer-{kind}", here, data, [(kind, "10", first, "moon")], FIVE)
            others = [r for r in crossed(data) if r not in both and (r.whole or kind == "partial_overlap")]
            yield _panel(f"crossed-{kind}", here, data, [(kind, "10", r, "fedavg") for r in others], THREE)
        for slug, seeds, algorithms in (("readings", FIVE, ("fedavg", "fedprox")), ("fewer", THREE, ("moon",))):
            asked = [("partial_overlap", "100", first, a) for a in algorithms]
            yield _panel(f"{slug}-n100", here, data, asked, seeds)
        for kind, n in (("half", "10"), ("partial_overlap", "10"), *([("partial_overlap", "50")] * (data == "mnist"))):
            yield _panel(f"steps-{kind}-n{n}", here, data, [(kind, n, Reading(lr), "scaffold") for lr in STEPS], FIVE)
    for size, groups in product((1, 2), (2, 3)):
        turns = (size,) * groups, tuple(range(groups))
        asked = [("two_shard", "10", Reading(RATES["mnist"][0], groups=turns), "fedavg")]
        yield _panel(f"shards-{groups}-groups-of-{size}", here, "mnist", asked, HUNDRED)


def crossed(data: str) -> tuple[Reading, ...]:
    """Every rate, course, length, share of labels and start with every other; all going on with the first alone."""
    starts = [carried for carried in CARRIED if carried != SCHEMES]
    every = product(RATES[data], (False, True), (50, 75), (True, False), starts)
    return (*(Reading(*choice) for choice in every), Reading(RATES[data][0], carried=SCHEMES))


def _panel(
    slug: str, here: SessionScale, data: str, asked: Iterable[tuple[str, str, Reading, str]], seeds: tuple[int, ...]
) -> Panel:
    """asked: label distribution, clients, reading, algorithm."""
    given = here.data[data]
    made = tuple(_experiment(*one, scheme, given, here) for one in asked for scheme in SCHEMES)
    return Panel(f"{slug}-{given.name}".replace("_", "-"), made, seeds, given.substitute)


def _experiment(
    kind: str, clients: str, reading: Reading, algorithm: str, scheme: str, data: SessionData, here: SessionScale
) -> Experiment:
    row = {"label_distribution": kind, "num_clients": clients, "algorithm": algorithm, "init_scheme": scheme}
    _, _, e = runs.older(row, data, here)
    changes: dict[str, Any] = {
        "algorithm.lr": reading.lr,
        **({"algorithm.momentum": 0.0} if algorithm == "scaffold" else {}),
        "clock.floor": data.rate_of(algorithm)[1] if reading.decays else 1.0,
        "clock.rounds": reading.rounds,
        "clock.sessions": SESSIONS,
        "clock.membership": _members(e.clock.membership, reading),
        "clock.start": _start(scheme, scheme in reading.carried, data.older_R),
    }
    if kind == "partial_overlap" and reading.whole:
        changes["problem.partition"] = SharedWhole()
    return changed(replace(e, labels={**e.labels, "reading": str(reading)}), changes)  # type: ignore[no-any-return]


def _members(given: Membership, reading: Reading) -> Membership:
    sizes, order = reading.groups
    if sizes:
        return Rotation((*sizes, given.clients - sum(sizes)), order)  # the others are never there
    return Rotation(given.sizes, TURNS) if len(given.sizes) == 3 else given


def _start(scheme: str, carried: bool, R: float) -> Start:
    starts: dict[tuple[str, bool], Start] = {
        ("proposed", True): Proposed(R, session_p_start="carry"), ("proposed", False): Proposed(R),
        ("previous", True): CarriedPrevious(), ("previous", False): Previous(),
        ("average", True): CarriedAverage(), ("average", False): Average(),
    }  # fmt: skip
    return starts[scheme, carried]
