"""Fig. 4: FedAvg with four local solvers against FedACS on quadratics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.fedacs import toy_cells, toys
from reproduce.papers.fedacs.looks import log_distance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

NAMES = {
    "fedacs_sgd": "FedACS, SGD", "fedavg_sgd": "FedAvg, SGD", "fedavg_prox_sgd": "FedAvg, proximal SGD",
    "fedavg_decay_sgd": "FedAvg, decaying SGD", "fedavg_momentum_sgd": "FedAvg, momentum SGD",
    "left": "Equal clients", "middle": "Unequal clients", "right": "Unequal, changing clients",
}  # fmt: skip
SERIES = ("fedacs_sgd", "fedavg_sgd", "fedavg_prox_sgd", "fedavg_decay_sgd", "fedavg_momentum_sgd")
LABELS = ["panel", "algorithm"]


def cells(histories: Histories) -> pd.DataFrame:
    """Plateau distances of every run, and how far the seed mean is from the closed form where the system is static."""
    import pandas as pd

    from reproduce.report import metrics

    frame = histories.frame
    end = int(frame["round"].max())
    plateau = metrics.plateau(frame, "distance", int(0.8 * end) + 1, end, name="distance_plateau")
    limits = {
        (e.labels["panel"], e.labels["algorithm"]): toy_cells.limit(
            str(e.labels["algorithm"]).split("_")[0],
            e.problem,
            e.system,
            e.algorithm.lr,
            rule=e.algorithm.rule(),
        )
        for panel in toys.fig4_panels(histories.scale)
        for e in panel.experiments
        if e.labels["panel"] != "right"
    }
    return pd.concat([plateau, toy_cells.mean_to_limit(frame, LABELS, limits)], ignore_index=True)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(1, 3, sharey=True)
    look_like = figures.lines(["fedacs", "fedavg", "ca_fedavg", "fednova", "fedvarp"])
    looks = dict(zip(SERIES, look_like.values(), strict=True))
    rows = histories.frame[(histories.frame["metric"] == "distance") & (histories.frame["round"] % 10 == 0)]
    for ax, panel in zip(axes[0], toys.FIG4_PANELS, strict=True):
        here = rows[rows["panel"] == panel]
        ax.set_title(NAMES[panel])
        if here.empty:
            figures.missing(ax, histories.reason(f"fig4-{panel}") or "no results")
            continue
        figures.curves(ax, here, order=SERIES, styles=looks, names=NAMES)
        ax.set_xlabel("round")
        low, high = here["value"].min(), here["value"].max()
        log_distance(ax, min(0.9 * low, 0.02), max(1.1 * high, 0.6))
    axes[0, 0].set_ylabel(r"$\|X_r - X^*\|$")
    figures.legend(fig)
    return fig


def stamp(histories: Histories) -> str:
    """The caption's settings, of the runs of this scale."""
    experiment = toys.fig4_panels(histories.scale)[0].experiments[0]
    return (
        f"Lines: mean over seeds; bands: least to greatest. One rate {experiment.algorithm.lr}, no calibration; "
        f"{experiment.clock.rounds:,} rounds from the origin (the paper gives neither length nor start)."
    )


ARTIFACT = Artifact(
    "fedacs",
    "fig4",
    "FedAvg with different local solvers, and FedACS, on quadratics",
    toys.fig4_panels,
    cells,
    draw,
    rows=("algorithm",),
    columns=("panel",),
    options={"names": NAMES, "stamp": stamp},
)
