"""Fig. 4: submodels of sizes that no client trained, extracted from the final models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.fiarse import cells, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

TICKS = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1)


def draw(histories: Histories, found: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(width=figures.FULL * 0.7, height=2.7)
    ax = axes[0, 0]
    sizes = {cells.size_label(size): size for size in panels.SWEEP}
    rows = found.assign(size=found["model_size"].map(sizes))
    figures.curves(ax, rows, x="size", order=panels.SHOWN, band="sd")
    marked = [i for i, size in enumerate(sorted(panels.SWEEP)) if size in panels.FOUR]
    for line in ax.get_lines():
        line.set_markevery(marked)
    ax.set_xscale("log")
    ax.set_xticks(TICKS, [cells.size_label(size) for size in TICKS])
    ax.minorticks_off()
    ax.set(xlabel="size of the submodel (share of the weights)", ylabel="accuracy (%)")
    ax.set_title(", ".join(map(pretty, rows["dataset"].unique())))
    figures.legend(fig)
    return fig


ARTIFACT = Artifact(
    "fiarse",
    "fig4",
    "Submodels of trained and of unseen sizes",
    panels.swept,
    cells.sweep,
    draw,
    rows=("algorithm",),
    columns=("model_size",),
    options={
        "stamp": "19 sizes; markers: the four that were trained. Lines: mean over seeds; bands: one sample standard "
        "deviation. Slices keep ceil(sqrt(size) c) of c channels. ScaleFL is not part of this package yet."
    },
)
