"""Accuracy curves of the network experiments (Figs. 6, 9 and 10), one panel per data set or level of imbalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_cells
from reproduce.papers.fedacs.networks import ONE_CLASS
from reproduce.papers.fedacs.toys import ALGORITHMS
from reproduce.report.names import pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.figures import Look
    from reproduce.report.histories import Histories

WINDOW, BARS = 10, 10
"""Rounds of the trailing mean; bars per curve."""


def artifact(name: str, heading: str, panels: Callable[[str], tuple[Panel, ...]]) -> Artifact:
    """Figure `name`: the curves of `panels(scale)`."""

    def picture(histories: Histories, cells: pd.DataFrame) -> Figure:
        return draw(histories, panels(histories.scale))

    return Artifact("fedacs", name, heading, panels, network_cells.figure, picture, options={"stamp": stamp})


def stamp(histories: Histories) -> str:
    """What lines and bars are; one seed has neither mean nor bar."""
    if histories.seeds_each[1] == 1:
        return f"Lines: test accuracy, trailing mean over {WINDOW} rounds."
    return (
        f"Lines: mean over seeds of test accuracy, trailing mean over {WINDOW} rounds; bars: sample standard deviation "
        "over seeds of the raw accuracy."
    )


def draw(histories: Histories, panels: tuple[Panel, ...]) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(1, len(panels), width=figures.FULL if len(panels) > 1 else 4.2, height=2.5)
    looks = figures.lines(ALGORITHMS)
    frame = histories.frame
    rows = frame[(frame["metric"] == "accuracy") & frame["algorithm"].isin(ALGORITHMS)]
    for ax, panel in zip(axes[0], panels, strict=True):
        labels = panel.experiments[0].labels
        here = rows
        for name in ("system", "dataset", "dirichlet_alpha"):
            here = here[here[name] == labels[name]] if len(here) else here
        ax.set_title(title(str(labels["dataset"]), str(labels["dirichlet_alpha"])))
        if here.empty:
            figures.missing(ax, histories.reason(panel.name) or "no results")
            continue
        _curves(ax, here, looks)
        ax.set_xlabel("round")
    axes[0, 0].set_ylabel("test accuracy (%)")
    figures.legend(fig)
    return fig


def title(dataset: str, alpha: str) -> str:
    return f"{pretty(dataset)}, " + ("one class per client" if alpha == ONE_CLASS else f"Dirichlet α = {alpha}")


def _curves(ax: Axes, rows: pd.DataFrame, looks: dict[str, Look]) -> None:
    from reproduce.report import figures, metrics

    figures.curves(ax, metrics.smooth(rows, WINDOW), order=ALGORITHMS, styles=looks, band=None)
    end = int(rows["round"].max())
    step = max(1, end // BARS)
    for i, name in enumerate(ALGORITHMS):
        raw = rows[rows["algorithm"] == name].pivot_table(index="round", columns="seed", values="value", dropna=False)
        if raw.shape[1] < 2:
            continue
        at = raw[(raw.index % step == i * step // len(ALGORITHMS)) & (raw.index > 0)]
        look: dict[str, Any] = {
            "color": looks[name].color,
            "linewidth": 0.7,
            "capsize": 1.4,
            "alpha": 0.7,
            "linestyle": "none",
        }
        ax.errorbar(at.index, at.mean(axis=1), yerr=at.std(axis=1), zorder=2, **look)
