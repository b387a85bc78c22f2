"""The runs of readings of Tables 8, 9 and 11 that their printed numbers suggest, beside what the paper says.

Eight sessions, a rate that does not fall, shared labels whole, schemes that go on from the pilot session; with FedAvg
other choices are crossed with these, so that one cannot stand in for another unseen.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from reproduce.algorithms.session_starts import Average, Previous, Proposed
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.settings import SCALES, SessionData, SessionScale
from reproduce.papers.dynamic_init.suggested import CarriedAverage, CarriedPrevious, SharedWhole
from reproduce.systems.clients import Rotation

SCHEMES = ("proposed", "previous", "average")
THREE, FIVE, TEN, TWENTY, HUNDRED = (tuple(range(n)) for n in (3, 5, 10, 20, 100))
SESSIONS, TURNS = 8, (2, 0, 1, 2, 0, 1, 2, 1)
"""How many there are, and whose turn each is where three groups take turns."""
CARRIED = {("proposed", "previous"): "Average alone restarts", (): "all restart", SCHEMES: "all go on from the pilot"}
"""Schemes whose first session after the pilot goes on from its model -> in words. The others start it at random."""
RATES = {"mnist": (0.002, 0.001, 0.0015, 0.0025), "fashion_mnist": (0.003, 0.002, 0.004)}
"""Of all algorithms but SCAFFOLD; the first is the one that the print suggests."""
STEPS = (0.0072, 0.0102, 0.0144, 0.0204, 0.0288, 0.0408)
"""SCAFFOLD's rates, which are the server's steps as well: each is 1.41 times the one before."""


class Reading(NamedTuple):
    """A combination of choices by which printed tables may have been made. lr: at the start of a session. groups: how
    many take turns, and how many clients each has, where they differ from the tables'."""

    lr: float
    decays: bool = False
    rounds: int = 50
    whole: bool = True
    carried: tuple[str, ...] = ("proposed", "previous")
    groups: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        rate = f"{self.rounds} rounds at a {'falling' if self.decays else 'constant'} rate {self.lr:.3g}"
        groups = ", {} groups of {}".format(*self.groups) if any(self.groups) else ""
        return f"{rate}, shared labels {'whole' if self.whole else 'halved'}, {CARRIED[self.carried]}{groups}"


Setting = tuple[str, str, Reading, str]
"""Label distribution, clients, reading, algorithm."""


def readings(scale: str) -> tuple[Panel, ...]:
    """The panels of all readings, for each label distribution and data set. None at reduced scale, of which the paper
    prints no numbers."""
    setup, toy = SCALES[scale], Reading(0.02, rounds=10)
    if scale == "smoke":
        other = toy._replace(whole=False, carried=SCHEMES)
        rows = [("half", "10", toy), *(("partial_overlap", "10", r) for r in (toy, other))]
        settings = [(*row, algorithm) for row in rows for algorithm in ("fedavg", "scaffold")]
        return (_panel("readings", setup, "mnist", settings, (0,)),)
    return tuple(_paper(setup)) if scale == "paper" else ()


def _paper(setup: SessionScale) -> Iterable[Panel]:
    for data, (rate, *_) in RATES.items():
        first = Reading(rate)
        both = (first, first._replace(carried=()))
        for kind in ("partial_overlap", "half", "distinct"):
            settings = [(kind, "10", r, a) for a in ("fedavg", "fedprox") for r in both[: 2 if a == "fedavg" else 1]]
            yield _panel(f"readings-{kind}", setup, data, settings, TEN)
            yield _panel(f"fewer-{kind}", setup, data, [(kind, "10", first, "moon")], FIVE)
            rest = [r for r in crossed(data) if r not in both and (r.whole or kind == "partial_overlap")]
            yield _panel(f"crossed-{kind}", setup, data, [(kind, "10", r, "fedavg") for r in rest], THREE)
        for slug, seeds, algorithms in (("readings", FIVE, ("fedavg", "fedprox")), ("fewer", THREE, ("moon",))):
            settings = [("partial_overlap", "100", first, a) for a in algorithms]
            yield _panel(f"{slug}-n100", setup, data, settings, seeds)
        for kind, n in (("half", "10"), ("partial_overlap", "10"), *([("partial_overlap", "50")] * (data == "mnist"))):
            yield _panel(f"steps-{kind}-n{n}", setup, data, [(kind, n, Reading(lr), "scaffold") for lr in STEPS], FIVE)
    for size, groups in product((1, 2), (2, 3)):
        slug = f"shards-{groups}-groups-of-{size}"
        each = {data: Reading(rate, groups=(groups, size)) for data, (rate, *_) in RATES.items()}
        yield _panel(slug, setup, "mnist", [("two_shard", "10", each["mnist"], "fedavg")], HUNDRED)
        for data, reading in each.items():
            yield _panel(f"fewer-{slug}", setup, data, [("two_shard", "10", reading, "moon")], TWENTY)


def crossed(data: str) -> tuple[Reading, ...]:
    """Every rate, course, length, share of labels and start with every other; all going on with the first alone."""
    every = product(RATES[data], (False, True), (50, 75), (True, False), (c for c in CARRIED if c != SCHEMES))
    return (*(Reading(*choice) for choice in every), Reading(RATES[data][0], carried=SCHEMES))


def _panel(slug: str, setup: SessionScale, name: str, settings: Iterable[Setting], seeds: tuple[int, ...]) -> Panel:
    data = setup.data[name]
    experiments = tuple(_experiment(*one, scheme, data, setup) for one in settings for scheme in SCHEMES)
    return Panel(f"{slug}-{data.name}".replace("_", "-"), experiments, seeds, data.substitute)


def _experiment(
    kind: str, clients: str, reading: Reading, algorithm: str, scheme: str, data: SessionData, setup: SessionScale
) -> Experiment:
    row = {"label_distribution": kind, "num_clients": clients, "algorithm": algorithm, "init_scheme": scheme}
    _, _, e = runs.older(row, data, setup)
    carried, members, (groups, size) = scheme in reading.carried, e.clock.membership, reading.groups
    if groups:  # the clients of a last group are never there
        members = Rotation((*[size] * groups, members.clients - groups * size), tuple(range(groups)))
    elif len(members.sizes) == 3:
        members = Rotation(members.sizes, TURNS)
    changes: dict[str, Any] = {
        "algorithm.lr": reading.lr,
        "clock.floor": data.rate_of(algorithm)[1] if reading.decays else 1.0,
        "clock.rounds": reading.rounds,
        "clock.sessions": SESSIONS,
        "clock.membership": members,
        "clock.start": {
            "proposed": Proposed(data.older_R, session_p_start="carry" if carried else "random"),
            "previous": CarriedPrevious() if carried else Previous(),
            "average": CarriedAverage() if carried else Average(),
        }[scheme],
    }
    if algorithm == "scaffold":
        changes["algorithm.momentum"] = 0.0
    if kind == "partial_overlap" and reading.whole:
        changes["problem.partition"] = SharedWhole()
    return changed(replace(e, labels={**e.labels, "reading": str(reading)}), changes)  # type: ignore[no-any-return]
