"""What carries over from one benchmark to another: rank correlations, and ranks at home and away, in one figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from reproduce.play.across import TRAINED, Matrix, diverging
from reproduce.report import figures
from reproduce.report.looks import BLUE, GREY
from reproduce.report.names import pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 5
"""Algorithms that two benchmarks must share for a correlation."""
CHANCE = 0.05


def correlations(matrix: Matrix) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Spearman's rank correlation of the algorithms for each pair of benchmarks [B, B], and how likely one as far from
    zero is if ranks were drawn at random; NaN where they share fewer than `LEAST` algorithms."""
    from scipy.stats import spearmanr

    cells = pd.DataFrame([c for c in matrix.cells.values() if c["state"] in TRAINED])
    places = cells.pivot(index="algorithm", columns="benchmark", values="place")[matrix.benchmarks_run]

    def by_chance(a: Any, b: Any) -> float:
        return float(spearmanr(a, b).pvalue) if a.std() and b.std() else math.nan

    function: Any = by_chance  # which the types of pandas do not know
    return places.corr("spearman", LEAST), places.corr(function, LEAST)


def ranks(matrix: Matrix, papers: Mapping[str, str]) -> pd.DataFrame:
    """Ranks of what a paper proposes whose benchmarks are among these: `algorithm`, `benchmark`, `share` (the rank,
    from 0, the best of all, to 1, the last), `where` ("at home" or "away"). papers: benchmark -> paper."""
    cells = [c for c in matrix.cells.values() if c["state"] in TRAINED]
    last = {b: max(c["place"] for c in cells if c["benchmark"] == b) for b in matrix.benchmarks_run}
    rows = [
        (pretty(c["algorithm"]), c["benchmark"], (c["place"] - 1) / max(last[c["benchmark"]] - 1, 1),
         "at home" if c["algorithm"].startswith(papers[c["benchmark"]]) else "away")
        for c in cells
        if any(c["algorithm"].startswith(paper) for paper in papers.values())
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["algorithm", "benchmark", "share", "where"])


def figure(found: pd.DataFrame, papers: Mapping[str, str]) -> Figure | None:
    """Correlations of a `summary`, and ranks at home and away; None where no two benchmarks share enough algorithms."""
    matrix = Matrix(found)
    rho, chance = correlations(matrix)
    rho, chance = (c.loc[some, some] for some in [rho.index[rho.count() > 1]] for c in (rho, chance))
    if rho.empty:
        return None
    proposed = ranks(matrix, papers)
    fig, axes = figures.sheet(columns=1 if proposed.empty else 2, height=0.3 * len(rho) + 1.3)
    _correlated(axes[0, 0], rho, chance)
    if len(proposed):
        _at_home(axes[0, 1], proposed)
    return fig


def _correlated(ax: Axes, rho: pd.DataFrame, chance: pd.DataFrame) -> None:
    import seaborn

    # Each pair once, below the diagonal.
    below = pd.DataFrame([[i > j for j in range(len(rho))] for i in range(len(rho))], rho.index, rho.columns)
    rho = rho.where(below).iloc[1:, :-1]
    words = rho.map("{:.2f}".format).replace("-", "−", regex=True)
    seaborn.heatmap(
        rho, ax=ax, annot=words, fmt="", vmin=-1, vmax=1, cmap=diverging(), linewidths=1, annot_kws={"fontsize": 7},
        cbar_kws={"label": "rank correlation"},
    )  # fmt: skip
    shown = chance.where(below).iloc[1:, :-1].to_numpy()[rho.notna()]
    for text, p in zip(ax.texts, shown, strict=True):
        text.set(weight="bold" if p < CHANCE else "normal", gid="rho")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.set_xticks(ax.get_xticks(), [b.replace("-", "-\n", 1) for b in rho.columns], rotation=0)
    ax.set(xlabel="", ylabel="", title="Do algorithms rank alike? (bold: p < 0.05)")


def _at_home(ax: Axes, found: pd.DataFrame) -> None:
    import seaborn

    seaborn.stripplot(
        found, x="share", y="algorithm", hue="where", hue_order=["at home", "away"],
        palette={"at home": BLUE, "away": GREY}, dodge=True, jitter=False,
        size=6, alpha=0.8, linewidth=0.5, edgecolor="white", ax=ax,
    )  # fmt: skip
    ax.set(xlabel="", ylabel="", xlim=(-0.05, 1.05), title="Rank of what a paper proposes")
    ax.set_xticks([0, 0.5, 1], ["best", "middle", "last"])
    ax.legend(title="", loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
