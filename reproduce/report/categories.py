"""Dots and heat maps in the axes of a figure: one value per category, or per pair of them (`report.figures`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.report import looks
from reproduce.report.entries import PARTIAL
from reproduce.report.looks import Look
from reproduce.report.names import heading, pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def dots(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    row: str,
    rows: Sequence[Any],
    series: str = "algorithm",
    order: Sequence[object],
    styles: Mapping[str, Look] | None = None,
    names: Mapping[str, str] | None = None,
    texts: Mapping[Any, str] | None = None,
    groups: Mapping[Any, object] | None = None,
) -> None:
    """A line of the plot per value of the column `row`, from above, with a dot per series: the mean over seeds, and a
    bar from the least to the greatest.

    texts: what the lines are called. groups: the group of every line; a thin line parts groups, and the line that has
    its group's name is in bold. A dot with a lower bound among its seeds (column `censored`) is an arrow to the right;
    seeds without a value (diverged) are counted beside the dot.
    """
    styles, step = styles or looks.of(order), 0.66 / max(1, len(order))
    found: set[object] = set()
    for i, value in enumerate(rows):
        if i % 2 == 0:
            ax.axhspan(i - 0.5, i + 0.5, color="#f4f4f4", zorder=0, linewidth=0)
        here = frame[frame[row] == value]
        shown = [name for name in order if here.loc[here[series] == name, "value"].notna().any()]
        for k, name in enumerate(shown):
            at = i + (k - (len(shown) - 1) / 2) * step
            _dot(ax, here[here[series] == name], at, styles[str(name)])
        found.update(shown)
    for name in (name for name in order if name in found):  # the legend: a dot may be an arrow
        ax.plot([], [], label=pretty(name, names), **_mark(styles[str(name)]))
    ax.set_yticks(range(len(rows)), [(texts or {}).get(value, pretty(value, names)) for value in rows])
    _part(ax, [(groups or {}).get(value) for value in rows], rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def _part(ax: Axes, groups: Sequence[object], rows: Sequence[Any]) -> None:
    """Thin lines between groups, and those that head one in bold."""
    for i, (label, group) in enumerate(zip(ax.get_yticklabels(), groups, strict=True)):
        if i and group != groups[i - 1]:
            ax.axhline(i - 0.5, color="#b0b0b0", linewidth=0.6)
        if group is not None and group == rows[i]:
            label.set_fontweight("bold")


def _mark(look: Look) -> dict[str, Any]:
    """Keyword arguments for `Axes.plot` of a dot."""
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.3}
    return {"color": look.color, "marker": look.marker, "markersize": 4.2, "linestyle": "none", "zorder": 3, **edge}


def _dot(ax: Axes, mine: pd.DataFrame, at: float, look: Look) -> None:
    """One dot with its bar at the height `at`."""
    numbers = mine["value"].dropna()
    ax.plot([numbers.min(), numbers.max()], [at, at], color=look.color, linewidth=1.0, zorder=2)
    missed = "censored" in mine and bool(mine["censored"].eq(True).any())
    ax.plot(numbers.mean(), at, **_mark(replace(look, marker=">") if missed else look))
    if lost := len(mine) - len(numbers):
        text, right = f"{lost} of {len(mine)} diverged", (numbers.max(), at)
        ax.annotate(text, right, (4, 0), textcoords="offset points", va="center", fontsize=5.5)


def heatmap(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str = "value",
    digits: int = 1,
    limits: tuple[float, float] | None = None,
    label: str = "",
    names: Mapping[str, str] | None = None,
) -> None:
    """Mean of `value` (over seeds) per pair of `x` (ascending to the right) and `y` (ascending upwards), printed in its
    box, with a † where some of the seeds lack a value (diverged); a pair whose seeds all lack one is a hatched box, a
    pair that was not run stays empty."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    boxes = frame.groupby([y, x])[value]
    means = boxes.mean().unstack().sort_index().sort_index(axis=1)
    lost = (boxes.size() - boxes.count()).unstack().reindex(index=means.index, columns=means.columns).to_numpy(float)
    data = means.to_numpy(float)
    finite = data[np.isfinite(data)]
    low, high = limits or ((finite.min(), finite.max()) if len(finite) else (0.0, 1.0))
    norm = Normalize(low, high)
    image = ax.imshow(np.ma.masked_invalid(data), norm=norm, aspect="auto", origin="lower")
    for (i, j), number in np.ndenumerate(data):
        if np.isfinite(number):
            r, g, b, _ = image.cmap(norm(number))
            ink = "black" if 0.299 * r + 0.587 * g + 0.114 * b > 0.5 else "white"
            text = f"{number:.{digits}f}{PARTIAL if lost[i, j] else ''}"
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=6.5)
        elif lost[i, j] > 0:
            hatched: dict[str, Any] = {"fill": False, "hatch": "/////", "edgecolor": "#a0a0a0", "linewidth": 0}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **hatched))
            white = {"fc": "white", "ec": "none", "pad": 0.8}
            ax.text(j, i, "div.", ha="center", va="center", fontsize=6.5, bbox=white)
    ax.set_xticks(range(len(means.columns)), [pretty(v, names) for v in means.columns])
    ax.set_yticks(range(len(means.index)), [pretty(v, names) for v in means.index])
    ax.set(xlabel=heading(x, names), ylabel=heading(y, names))
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, pad=0.02, aspect=18, label=label or None)
    bar.outline.set_visible(False)
