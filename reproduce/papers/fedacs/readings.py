"""The runs of readings of Tables 1 and 4 on MNIST, all with T_m in mini-batches, beside what is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from reproduce.algorithms.fedacs import Calibration
from reproduce.declare.experiment import Panel, changed
from reproduce.papers.fedacs import runs, settings
from reproduce.papers.fedacs.variants import DistinctDraws, FedACSByLinks, FedAUByDraws

TABLES = {"dynamic": "table1", "static": "table4"}
BATCHES, FEDACS = "T counts mini-batches", ("fedacs",)
APART = {
    "algorithm.participation": lambda draws: DistinctDraws(draws.k),
    "algorithm.calibration": Calibration(target="server"),
}
BY_LINKS = {"algorithm": lambda given: FedACSByLinks(**vars(given))}
BY_DRAWS = {"algorithm": lambda given: FedAUByDraws(**vars(given))}
READINGS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "batches": (BATCHES, {}, runs.ALGORITHMS),
    "links": (f"{BATCHES}, drawn by links alone, divided by the draws received", BY_LINKS, FEDACS),
    "distinct": (f"{BATCHES}, distinct clients, calibrated at the server", APART, FEDACS),
    "summed": (f"{BATCHES}, FedAU summed as CA-FedAvg", BY_DRAWS, ("fedau",)),
}
"""Beginning of a panel's name -> the reading, its changes beside T_m in mini-batches, its algorithms."""


def readings(scale: str) -> tuple[Panel, ...]:
    """A panel for each reading and system. None at reduced scale, of which the paper prints no numbers."""
    found, setting = list[Panel](), settings.SETTINGS[scale][0]
    for system, (name, (reading, changes, algorithms)) in product(TABLES, READINGS.items()):
        whole = runs.panel(setting, system, setting.alpha)
        chosen = (e for e in whole.experiments if e.labels["algorithm"] in algorithms)
        named = (replace(e, labels={**e.labels, "reading": reading}) for e in chosen)
        made = tuple(changed(e, {"system.work.unit": "steps", **changes}) for e in named)
        found.append(replace(whole, name=f"{name}-{whole.name}", experiments=made))
    return () if scale == "reduced" else tuple(found)
