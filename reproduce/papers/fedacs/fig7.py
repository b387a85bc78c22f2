"""Fig. 7: where the seven algorithms end on quadratics, in the static and in the dynamic system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from reproduce.declare import Artifact
from reproduce.experiment import Experiment
from reproduce.papers.fedacs import toy_cells, toys
from reproduce.papers.fedacs.looks import log_distance
from reproduce.report.names import pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.figures import Look
    from reproduce.report.histories import Histories

LABELS = ["system", "calibrate", "algorithm"]
TITLES = {False: "common rate 0.002", True: "calibrated rates"}
LIMITS = ("fedavg", "ca_fedavg", "fednova", "fedacs")
"""One algorithm of each group that shares its limit; these get dashed lines."""


def cells(histories: Histories) -> pd.DataFrame:
    """Plateau distances of every run and of the mean model, with and without calibration."""
    import pandas as pd

    from reproduce.report import metrics

    frame = both(histories.frame)
    end = int(frame["round"].max())
    plateau = metrics.plateau(frame, "distance", int(0.8 * end) + 1, end, name="distance_plateau")
    problem = toys.fig7_panels(histories.scale)[0].experiments[0].problem
    return pd.concat([plateau, toy_cells.mean_model(frame, LABELS, problem)], ignore_index=True)


def both(frame: pd.DataFrame) -> pd.DataFrame:
    """The histories with the runs that calibration leaves alone (factor one) also as calibrated ones."""
    import pandas as pd

    same = frame[~frame["algorithm"].isin(toys.CALIBRATED)]
    return pd.concat([frame, same.assign(calibrate=True)], ignore_index=True)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(2, 2, sharey=True, sharex=True)
    looks = figures.lines(toys.ALGORITHMS)
    frame = both(histories.frame)
    rows = frame[(frame["metric"] == "distance") & (frame["round"] % 10 == 0)]
    means = rows.groupby([*LABELS, "round"])["value"].mean()
    panels = {panel.name: panel for panel in toys.fig7_panels(histories.scale)}
    for column, system in enumerate(toys.fig7_systems()):
        experiment = panels[f"fig7-{system}"].experiments[0]
        for row, (calibrated, title) in enumerate(TITLES.items()):
            ax = axes[row, column]
            ax.set_title(f"{system} system, {title}")
            here = rows[(rows["system"] == system) & (rows["calibrate"] == calibrated)]
            if here.empty:
                figures.missing(ax, histories.reason(f"fig7-{system}") or "no results")
                continue
            figures.curves(ax, here, order=toys.ALGORITHMS, styles=looks, band=None)
            log_distance(ax, 0.65 * means.min(), 1.1 * means.max())
            _limits(ax, experiment, calibrated, looks)
    for ax in axes[-1]:
        ax.set_xlabel("round")
    for ax in axes[:, 0]:
        ax.set_ylabel(r"$\|X_r - X^*\|$")
    figures.legend(fig)
    return fig


def _limits(ax: Axes, experiment: Experiment, calibrated: bool, looks: Mapping[str, Look]) -> None:
    """Dashes at the distances of the closed-form limits; one below the axis is written down instead."""
    optimum = toy_cells.minimisers(experiment.problem).mean(0)
    rate = experiment.algorithm.lr
    for name in LIMITS:
        point = toy_cells.limit(name, experiment.problem, experiment.system, rate, calibrated=calibrated)
        distance = float(np.linalg.norm(point - optimum))
        color = looks[name].color
        if distance > ax.get_ylim()[0]:
            ax.axhline(distance, color=color, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
        else:
            text = f"limit of {pretty(name)}: {distance:.2g} ↓"
            ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", color=color, fontsize=6.5)


ARTIFACT = Artifact(
    "fedacs",
    "fig7",
    "Convergence points of the benchmarks on quadratics",
    toys.fig7_panels,
    cells,
    draw,
    rows=("algorithm",),
    columns=("system", "calibrate"),
    options={
        "stamp": "Lines: mean over seeds. Thin dashes: distance of the closed-form limit (FedAvg and OS; CA-FedAvg, "
        "FedVARP and FedAU; FedNova; FedACS). The upper row is the paper's figure, whose caption gives one rate for "
        "all; the lower row, with the calibration of appendix I.2, is an addition of this package.",
    },
)
