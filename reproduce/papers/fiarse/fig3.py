"""Fig. 3: global accuracy of each submodel size over the rounds, four sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.algorithms.submodels import size_key
from reproduce.declare import Artifact
from reproduce.papers.fiarse import cells, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def draw(histories: Histories, found: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    datasets = list(panels.settings(histories.scale))
    fig, axes = figures.sheet(len(datasets), 4, sharex=True, sharey="row", height=1.75)
    rows = cells.shown(histories).query("metric == 'accuracy'")
    for line, dataset in zip(axes, datasets, strict=True):
        here = rows[rows["dataset"] == dataset]
        for ax, size in zip(line, sorted(panels.FOUR), strict=True):
            ax.set_title(f"size {cells.size_label(size)}")
            if here.empty:
                figures.missing(ax, histories.reason(f"four-{dataset.replace('_', '-')}") or "no results")
                continue
            figures.curves(ax, here.loc[here["key"] == size_key(size)], order=panels.SHOWN, band="sd")
        line[0].set_ylabel(f"{pretty(dataset)}\naccuracy (%)")
    for ax in axes[-1]:
        ax.set_xlabel("round")
    figures.legend(fig)
    return fig


ARTIFACT = Artifact(
    "fiarse",
    "fig3",
    "Global test accuracy of the submodels over the rounds",
    panels.compared,
    cells.curves,
    draw,
    rows=("algorithm",),
    columns=("dataset", "model_size", "metric"),
    options={
        "stamp": "Lines: mean over seeds; bands: one sample standard deviation. Batch statistics in evaluation, as in "
        "training. FedRolex is evaluated in the window of its last round; ScaleFL is not part of this package yet."
    },
)
