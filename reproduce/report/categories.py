"""Dots and heat maps in the axes of a figure: one value per category, or per pair of them (`report.figures`)."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from reproduce.report import figures, styles
from reproduce.report.entries import PARTIAL
from reproduce.report.metrics import t_interval
from reproduce.report.names import heading, pretty

SHAPE: Mapping[str, Any] = {
    "markersize": 4.2, "markeredgecolor": "white", "markeredgewidth": 0.3, "linestyle": "none", "gid": "dots",
}  # fmt: skip


def dots(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    row: str,
    rows: Sequence[Any],
    series: str = "algorithm",
    order: Sequence[object],
    names: Mapping[str, str] | None = None,
    texts: Mapping[Any, str] | None = None,
    groups: Mapping[Any, object] | None = None,
) -> None:
    """A line of the plot per value of the column `row`, from above, with a dot per series: the mean over seeds, with
    its 95 % t-interval as a bar, which one seed has none of, and small dots for the seeds.

    texts: what the lines are called. groups: the group of every line; a thin line parts groups, and the line that has
    its group's name is in bold. A mean with a lower bound among its seeds (column `censored`) is an arrow to the right,
    without a bar; seeds without a value (diverged) are counted beside it.
    """
    import seaborn

    lines, ranks = ({name: i for i, name in enumerate(names)} for names in (rows, order))
    cells = frame.assign(at=frame[row].map(lines), rank=frame[series].map(ranks)).dropna(subset=["at", "rank"])
    cells = cells[cells.groupby(["at", "rank"])["value"].transform("count") > 0].sort_values(
        ["rank", "at"], ignore_index=True
    )
    beside = cells.groupby("at")["rank"]
    cells["at"] += (beside.rank("dense") - (beside.transform("nunique") + 1) / 2) * 0.66 / max(1, len(order))
    bounds = cells["censored"].eq(True) if "censored" in cells else cells["at"].isna()
    missed = bounds.groupby(cells["at"]).transform("any")
    shown = list(dict.fromkeys(cells[series]))
    marks = {
        name: {"color": style.color, "marker": style.marker, "zorder": 3, **SHAPE}
        for name, style in styles.of(order).items()
    }
    common: dict[str, Any] = {"x": "value", "y": "at", "orient": "h", "native_scale": True, "hue": series, "ax": ax}
    common |= {"hue_order": shown, "palette": [marks[str(name)]["color"] for name in shown], "legend": False}
    seaborn.stripplot(cells, **common, jitter=False, size=1.8, linewidth=0, zorder=2.6)
    seaborn.pointplot(
        cells[~missed], **common, **SHAPE, zorder=3, markers=[marks[str(name)]["marker"] for name in shown],
        errorbar=figures.interval(cells), err_kws={"linewidth": 1.0, "alpha": 0.5, "zorder": 2.0},
    )  # fmt: skip
    for _, seeds in cells.groupby(["at", series]):
        _beside(ax, seeds, marks[str(seeds[series].iloc[0])], bool(missed[seeds.index].any()))
    for name in shown:
        ax.plot([], [], label=pretty(name, names), **marks[str(name)])
    for i in range(0, len(rows), 2):
        ax.axhspan(i - 0.5, i + 0.5, color="#f4f4f4", zorder=0, linewidth=0)
    ax.set_yticks(range(len(rows)), [(texts or {}).get(value, pretty(value, names)) for value in rows])
    _separate(ax, [(groups or {}).get(value) for value in rows], rows)
    ax.set(ylim=(len(rows) - 0.5, -0.5), ylabel="")
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def differ(frame: pd.DataFrame, row: str, series: str, one: Any, other: Any) -> bool:
    """Tells whether two lines differ: their difference, by seed, has an interval without 0 for any series. A line is
    so from itself, and from one without its seeds."""
    values = (frame[frame[row] == name].pivot(index="seed", columns=series, values="value") for name in (one, other))
    differences = [d.dropna() for _, d in operator.sub(*values).items()]
    known = [t_interval(list(d)) for d in differences if len(d) > 1]
    return one == other or not known or any(low > 0 or high < 0 for low, high in known)


def _separate(ax: Axes, groups: Sequence[object], rows: Sequence[Any]) -> None:
    """Thin lines between groups, and those that head one in bold."""
    for i, (label, group) in enumerate(zip(ax.get_yticklabels(), groups, strict=True)):
        if i and group != groups[i - 1]:
            ax.axhline(i - 0.5, color="#b0b0b0", linewidth=0.6)
        if group is not None and group == rows[i]:
            label.set_fontweight("bold")


def _beside(ax: Axes, seeds: pd.DataFrame, mark: Mapping[str, Any], missed: bool) -> None:
    """The remarks on a dot: that its mean is a lower bound, and how many seeds diverged."""
    at, numbers = seeds["at"].iloc[0], seeds["value"].dropna()
    if missed:
        ax.plot(numbers.mean(), at, **{**mark, "marker": ">"})
    if len(numbers) < len(seeds):
        text = f"{len(seeds) - len(numbers)} of {len(seeds)} diverged"
        end = max(numbers.max(), figures.interval(seeds)(numbers)[1] if len(numbers) > 1 else 0.0)
        ax.annotate(text, (end, at), (4, 0), textcoords="offset points", va="center", fontsize=styles.SMALL)


def heatmap(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    limits: tuple[float, float] | None = None,
    label: str = "",
    names: Mapping[str, str] | None = None,
) -> None:
    """Mean over seeds per pair of `x` (ascending to the right) and `y` (ascending upwards), printed in its
    box, with a † where some of the seeds lack a value (diverged); a pair whose seeds all lack one is a hatched box, a
    pair that was not run stays empty."""
    boxes = frame.groupby([y, x])["value"]
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
            text = f"{number:.1f}{PARTIAL if lost[i, j] else ''}"
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
