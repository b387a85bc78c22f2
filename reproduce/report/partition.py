"""Who holds what: samples of each class per client, how unequal that is, and the picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Labels
from reproduce.partitions.split import Split
from reproduce.report import around, figures, looks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Counts = NDArray[np.int64]

LANE = 50
"""Clients beside each other, where they are bubbles."""
BUBBLES = (200, 20)
"""Clients and classes beyond which bubbles would be too small or too many: then a heat map."""
MOST = 500
"""Clients that a heat map shows."""
WIDTH = 6.2
"""Inches, about, that a lane is wide."""
ROUND: dict[str, Any] = {"steps": (1, 2, 5, 10), "integer": True}
"""Ticks at whole, round numbers."""


def counts(split: Split, which: int = 0) -> Counts:
    """Samples [clients, classes] of the training set (0), or of the test set (1)."""
    labels: Labels = split.labels[which]
    return np.array([np.bincount(labels[mine], minlength=split.data.n_classes) for mine in split.parts[which]])


def holdings(split: Split) -> pd.DataFrame:
    """What every client holds, a row each.

    classes: how many; largest: the class of most of its samples, None without samples; share: of the samples that are
    of that class; entropy: of the classes of its samples, in bits; test: test samples of its own, None if the test set
    is not split.
    """
    import pandas as pd
    from scipy.special import entr

    table = counts(split)  # [clients, classes]
    samples = table.sum(axis=1)
    shares = table / np.maximum(1, samples)[:, None]  # p_c, the share of class c
    largest = [int(row.argmax()) if row.any() else None for row in table]
    tests = [len(mine) for mine in split.parts[1]] if len(split.parts) > 1 else [None] * len(table)
    found = {
        "client": np.arange(len(table)),
        "samples": samples,
        "classes": (table > 0).sum(axis=1),
        "largest": pd.Series(largest, dtype=object),
        "share": shares.max(axis=1),
        "entropy": np.abs(entr(shares).sum(axis=1)) / np.log(2),  # - sum_c p_c log2 p_c, and no -0.0
        "test": pd.Series(tests, dtype=object),
    }
    return pd.DataFrame(found)


def draw(counts: Counts, title: str) -> Figure:
    """Bars of the samples per client above their classes, of counts [clients, classes].

    Bubbles whose area is the number of samples, a heat map where there are many clients or classes; of very many
    clients the first, which the title says.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    clients, classes = counts.shape
    if clients <= BUBBLES[0] and classes <= BUBBLES[1]:
        lanes, step = [counts[k : k + LANE] for k in range(0, clients, LANE)], min(LANE, clients)
        cell = min(0.22, max(0.12, WIDTH / step))
        height = max(0.5, classes * cell)
    else:
        lanes, step, cell, height = [counts[:MOST]], min(MOST, clients), 0.0, 3.4
        title += f"; the first {MOST} of {clients:,} clients" if clients > MOST else ""
    with figures.style():
        fig = Figure(figsize=(figures.FULL, 0.5 + len(lanes) * (height + 0.8)), layout="constrained")
        axes: Any = fig.subplots(2 * len(lanes), 1, squeeze=False, height_ratios=[0.4, height] * len(lanes))
        for k, (lane, (bars, below)) in enumerate(zip(lanes, axes.reshape(-1, 2), strict=True)):
            first = k * LANE
            bars.bar(first + np.arange(len(lane)), lane.sum(axis=1), width=0.8 if cell else 1.0, color=looks.GREY)
            bars.set(ylabel="samples", ylim=(0, 1.05 * counts.sum(axis=1).max()))
            bars.yaxis.set_major_locator(MaxNLocator(2, **ROUND))
            bars.tick_params(labelbottom=False)
            bars.grid(visible=False, axis="x")
            below.set(ylim=(classes - 0.4, -0.6))
            below.yaxis.set_major_locator(MaxNLocator(20 if cell else 10, **ROUND))
            _bubbles(below, lane, first, int(counts.max()), cell) if cell else _heat(below, lane, [bars, below])
            below.set(xlabel="client" if k == len(lanes) - 1 else "", ylabel="class")
            for ax in (bars, below):
                ax.set_xlim(first - 0.6, first + step - 0.4)
                ax.xaxis.set_major_locator(MaxNLocator(12, **ROUND))
        axes[0, 0].set_title(title, loc="left")
        around.legend(fig)
    return fig


def _bubbles(ax: Axes, counts: Counts, first: int, most: int, cell: float) -> None:
    """A bubble per client and class, that of `most` samples as wide as a cell of so many inches."""
    from matplotlib.ticker import MaxNLocator

    client, label = counts.nonzero()
    area = (0.95 * cell * 72) ** 2 / most  # of a sample, in square points
    edge: dict[str, Any] = {"color": looks.BLUE, "edgecolor": looks.BLUE, "linewidth": 0.4}  # a single sample is seen
    ax.scatter(first + client, label, s=area * counts[client, label], **edge)
    for value in MaxNLocator(3, **ROUND).tick_values(0, most):
        if 0 < value <= most:
            ax.scatter([], [], s=area * value, label=f"{value:,.0f} samples", **edge)


def _heat(ax: Axes, counts: Counts, beside: Sequence[Axes]) -> None:
    """A cell per client and class, white without samples."""
    from matplotlib.colors import LogNorm
    from seaborn import blend_palette

    cmap = blend_palette(["#d3e6f3", looks.BLUE, "#04202f"], as_cmap=True)
    norm = LogNorm(1, max(2, int(counts.max())))
    image = ax.imshow(np.ma.masked_equal(counts.T, 0), norm=norm, aspect="auto", interpolation="none", cmap=cmap)
    ax.grid(visible=False)
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=beside, pad=0.02, aspect=30, label="samples", format="{x:g}")
    bar.outline.set_visible(False)
