"""Fig. 9: accuracy curves in the static system."""

from __future__ import annotations

from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_figures, networks


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.comparison(scale, "static")


ARTIFACT = network_figures.artifact("fig9", "Test accuracy of the benchmarks in the static system", panels)
