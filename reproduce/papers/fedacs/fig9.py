"""Fig. 9: accuracy curves in the static system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.experiment import Artifact, Panel
from reproduce.papers.fedacs import network_cells, network_figures, networks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.comparison(scale, "static")


def cells(histories: Histories) -> pd.DataFrame:
    return network_cells.figure(histories)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return network_figures.draw(histories, panels(histories.scale))


ARTIFACT = Artifact(
    "fedacs",
    "fig9",
    "Test accuracy of the benchmarks in the static system",
    panels,
    cells,
    draw,
    options={"stamp": network_figures.STAMP},
)
