"""Fig. 6: accuracy curves in the dynamic system."""

from __future__ import annotations

from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_figures, networks


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.comparison(scale, "dynamic")


ARTIFACT = network_figures.artifact("fig6", "Test accuracy of the benchmarks in the dynamic system", panels)
