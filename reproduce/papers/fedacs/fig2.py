"""Fig. 2: what unequal links alone do to FedAvg, in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import plane, toys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SYSTEM = "toy2d_comm_only"


def panels(scale: str) -> tuple[Panel, ...]:
    return (toys.plane_panel(scale, SYSTEM),)


def cells(histories: Histories) -> pd.DataFrame:
    return plane.distances(histories, SYSTEM, ("fedavg",))


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return plane.schematic(histories, SYSTEM, [("fedavg", "FedAvg, unequal links", "#009E73")])


ARTIFACT = Artifact(
    "fedacs",
    "fig2",
    "Unequal links move FedAvg away from the optimum",
    panels,
    cells,
    draw,
    options={
        "stamp": "All clients do 5 steps, their updates arrive with different probability: the end point is drawn "
        "towards client 1, whose link is good. " + plane.STAMP,
    },
)
