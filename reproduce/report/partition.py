"""Who holds what: samples of each class per client, how unequal that is, and the picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Labels
from reproduce.partitions.split import Split
from reproduce.report import figures, looks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Counts = NDArray[np.int64]

MOST = 500
"""Clients in the picture."""
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
    """Bars of the samples per client above a heat map of their classes, of counts [clients, classes]; of very many
    clients the first, which the title says."""
    from matplotlib.ticker import MaxNLocator

    title += f"; the first {MOST} of {len(counts):,} clients" if len(counts) > MOST else ""
    shown = counts[:MOST]
    with figures.style():
        fig, (bars, below) = figures.stack([1.0, 3.4])
        bars.bar(range(len(shown)), shown.sum(axis=1), width=1.0, color=looks.GREY)
        bars.set(ylabel="samples", ylim=(0, 1.05 * counts.sum(axis=1).max()))
        bars.yaxis.set_major_locator(MaxNLocator(2, **ROUND))
        bars.tick_params(labelbottom=False)
        bars.grid(visible=False, axis="x")
        below.yaxis.set_major_locator(MaxNLocator(10, **ROUND))
        _heat(below, shown, [bars, below])
        below.set(xlabel="client", ylabel="class")
        for ax in (bars, below):
            ax.set_xlim(-0.6, len(shown) - 0.4)
            ax.xaxis.set_major_locator(MaxNLocator(12, **ROUND))
        bars.set_title(title, loc="left")
    return fig


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
