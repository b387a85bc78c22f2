"""Fig. 10: accuracy curves in the dynamic system at three levels of class imbalance."""

from __future__ import annotations

from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_figures, networks


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.imbalance(scale)


ARTIFACT = network_figures.artifact("fig10", "Test accuracy at three levels of class imbalance", panels)
