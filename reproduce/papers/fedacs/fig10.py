"""Fig. 10: accuracy curves in the dynamic system at three levels of class imbalance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.experiment import Artifact, Panel
from reproduce.papers.fedacs import network_cells, network_figures, networks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.imbalance(scale)


def cells(histories: Histories) -> pd.DataFrame:
    return network_cells.figure(histories)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return network_figures.draw(histories, panels(histories.scale))


ARTIFACT = Artifact(
    "fedacs",
    "fig10",
    "Test accuracy at three levels of class imbalance",
    panels,
    cells,
    draw,
    options={"stamp": network_figures.STAMP},
)
