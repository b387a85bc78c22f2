"""What the paper's figures share in looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def log_distance(ax: Axes, low: float, high: float) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set(yscale="log", ylim=(low, high))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:g}")
