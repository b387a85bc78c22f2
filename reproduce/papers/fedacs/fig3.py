"""Fig. 3: what unequal local work alone does to FedAvg, in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import plane, toys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SYSTEM = "toy2d_comp_only"


def panels(scale: str) -> tuple[Panel, ...]:
    return (toys.plane_panel(scale, SYSTEM),)


def cells(histories: Histories) -> pd.DataFrame:
    return plane.distances(histories, SYSTEM, ("fedavg",))


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return plane.schematic(histories, SYSTEM, [("fedavg", "FedAvg, unequal work", "#0072B2")])


ARTIFACT = Artifact(
    "fedacs",
    "fig3",
    "Unequal local work moves FedAvg away from the optimum",
    panels,
    cells,
    draw,
    options={
        "stamp": "All updates arrive, but clients do different numbers of steps: the end point is drawn towards "
        "client 3, which does most. " + plane.STAMP,
    },
)
