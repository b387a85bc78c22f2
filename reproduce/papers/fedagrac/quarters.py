"""The layout of Figs. 3 and 4: two models side by side, equal numbers of local steps above unequal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reproduce.experiment import Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def draw(
    histories: Histories,
    panels: tuple[Panel, ...],
    rows: pd.DataFrame,
    fill: Callable[[Axes, pd.DataFrame], None],
    height: float,
) -> Figure:
    """Axes (a) to (d), each filled from the `rows` of its model and kind of step counts."""
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(2, 2, height=height)
    for i, (ax, panel) in enumerate(zip(axes.flat, panels, strict=True)):
        labels = panel.experiments[0].labels
        kind = "unequal" if labels["step_async"] else "equal"
        ax.set_title(f"({'abcd'[i]}) {pretty(labels['model'])}, {kind} numbers of local steps", loc="left")
        here = rows[(rows["model"] == labels["model"]) & (rows["step_async"] == labels["step_async"])]
        if here.empty:
            figures.missing(ax, histories.reason(panel.name) or "no results")
            continue
        fill(ax, here)
    return fig
