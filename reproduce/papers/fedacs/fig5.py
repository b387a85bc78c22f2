"""Fig. 5: FedACS cancels both biases, in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import plane, toys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SYSTEM = "toy2d"


def panels(scale: str) -> tuple[Panel, ...]:
    return (toys.plane_panel(scale, SYSTEM),)


def cells(histories: Histories) -> pd.DataFrame:
    return plane.distances(histories, SYSTEM, ("fedacs", "fedavg"))


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    paths = [("fedacs", "FedACS", "#CC79A7"), ("fedavg", "FedAvg", "#808080")]
    fig = plane.schematic(histories, SYSTEM, paths)
    probabilities = ", ".join(f"{p:.3f}" for p in plane.sampling())
    fig.axes[0].set_title(f"FedACS draws the clients with p = ({probabilities})")
    return fig


ARTIFACT = Artifact(
    "fedacs",
    "fig5",
    "FedACS cancels both biases",
    panels,
    cells,
    draw,
    options={"stamp": "Unequal links and unequal work together. " + plane.STAMP},
)
