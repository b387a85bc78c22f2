"""What is run: readings of Tables 1 and 4 on MNIST that their printed numbers suggest, beside what is declared.

T_m in mini-batches (Section 6: "local iterations"; appendix I.3.1, as declared: "epochs"). Under it, other ways to draw
and to sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reproduce.algorithms.fedacs import Calibration
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.fedacs import runs, settings
from reproduce.papers.fedacs.variants import DistinctDraws, FedACSByLinks, FedAUByDraws

TABLES = {"dynamic": "table1", "static": "table4"}
PASSES, BATCHES = "T counts passes", "T counts mini-batches"
DISTINCT = f"{BATCHES}, distinct clients, calibrated at the server"
LINKS = f"{BATCHES}, drawn by links alone, divided by the draws received"
SUMMED = f"{BATCHES}, FedAU summed as CA-FedAvg"
STEPS: Mapping[str, Any] = {"system.work.unit": "steps"}


def drawn_apart(algorithm: Any) -> Any:
    """Distinct clients; with the aggregate calibrated where something is."""
    apart = replace(algorithm, participation=DistinctDraws(algorithm.participation.k))
    return replace(apart, calibration=Calibration(target="server")) if hasattr(apart, "calibration") else apart


def other(kind: type) -> Any:
    """The same record of another class."""
    return lambda algorithm: kind(**vars(algorithm))


ASKED: tuple[tuple[str, str, Mapping[str, Any], tuple[str, ...]], ...] = (
    ("batches", BATCHES, {}, runs.ALGORITHMS),
    ("links", LINKS, {"algorithm": other(FedACSByLinks)}, ("fedacs",)),
    ("distinct", DISTINCT, {"algorithm": drawn_apart}, ("fedacs", "fedavg")),
    ("summed", SUMMED, {"algorithm": other(FedAUByDraws)}, ("fedau",)),
)
"""Name of the panels, reading, changes beside mini-batches, algorithms."""


def readings(scale: str) -> tuple[Panel, ...]:
    """What is declared for MNIST, and the readings beside it; at reduced scale none: nothing is printed of it."""
    if scale == "reduced":
        return ()
    setting = settings.SETTINGS[scale][0]
    systems = tuple(TABLES) if scale == "paper" else ("dynamic",)
    declared = [p for system in systems for p in runs.comparison(scale, system) if p.name.startswith(_slug(setting))]
    found = (replace(p, experiments=tuple(e for e in p.experiments if _printed(e))) for p in declared)
    return (*found, *(p for system in systems for p in _beside(setting, system)))


def _slug(setting: settings.NetworkSetting) -> str:
    return setting.name.replace("_", "-")


def _printed(e: Experiment) -> bool:
    return e.labels["algorithm"] in runs.ALGORITHMS


def _beside(setting: settings.NetworkSetting, system: str) -> Iterable[Panel]:
    """A panel for each reading in a system."""
    known = {e.labels["algorithm"]: e for e in runs.panel(setting, system, setting.alpha).experiments}

    def under(reading: str, changes: Mapping[str, Any], names: Iterable[str]) -> tuple[Experiment, ...]:
        labelled = (replace(known[n], labels={**known[n].labels, "reading": reading}) for n in names)
        return tuple(changed(e, {**STEPS, **changes}) for e in labelled)

    for name, reading, changes, names in ASKED:
        found = under(reading, changes, names)
        yield Panel(f"{name}-{_slug(setting)}-{system}", found, setting.seeds, setting.substitute)
