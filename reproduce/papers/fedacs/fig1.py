"""Fig. 1: clients with unequal computation and links, drawn from the systems that the experiments use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduce.declare import Artifact, no_panels
from reproduce.papers.fedacs import toy_cells, toys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

CLIENTS = 20


def cells(histories: Histories) -> pd.DataFrame:
    """The extremes of the static system."""
    import pandas as pd

    steps, success = (values[0] for values in toy_cells.draws(toys.fig7_systems()["static"], CLIENTS))
    values = {
        "T_min": steps.min(), "T_max": steps.max(), "success_min": success.min(), "success_max": success.max(),
        "clients": len(steps),
    }  # fmt: skip
    rows = [("static", "none", -1, metric, round(float(value), 12)) for metric, value in values.items()]
    return pd.DataFrame(rows, columns=["system", "algorithm", "seed", "metric", "value"])


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(2, 2, height=1.5, sharex=True, sharey="row")
    at = np.arange(CLIENTS)
    for column, (name, system) in enumerate(toys.fig7_systems().items()):
        axes[0, column].set_title(f"{name} system")
        draws = toy_cells.draws(system, CLIENTS)
        for ax, values, color in zip(axes[:, column], draws, ("#0072B2", "#009E73"), strict=True):
            low, high = values.min(0), values.max(0)
            if len(values) > 1:
                ax.bar(at, high - low, bottom=low, color=color, alpha=0.35, width=0.8)
                ax.plot(at, values[0], "o", color=color, markersize=3)
            else:
                ax.bar(at, high, color=color, width=0.8)
            ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("local work $T_m$")
    axes[1, 0].set_ylabel("success $1 - q_m$")
    axes[1, 0].set_ylim(0, 1.02)
    for ax in axes[1]:
        ax.set(xlabel="client", xticks=range(0, CLIENTS, 5))
    return fig


ARTIFACT = Artifact(
    "fedacs",
    "fig1",
    "Clients with unequal computation and links",
    no_panels,
    cells,
    draw,
    options={
        "stamp": "The paper's figure is a drawing without numbers; this one shows the systems of appendix I.3.1. "
        "Dynamic system: ranges over 1,000 rounds, dots the first round of seed 0. The paper does not say which client "
        "has which link."
    },
)
