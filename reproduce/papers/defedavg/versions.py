"""Figs. 6 and 7: DeFedAvg over aggregations, for different n and different K."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.experiment import Panel
from reproduce.papers.defedavg.cells import NAMES
from reproduce.papers.defedavg.panels import DISTRIBUTIONS, LOSS_VIEW, middle, rounds_panel, settings, steps_panel
from reproduce.papers.defedavg.rates import PROPOSED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

ROWS = (("train_loss", "training loss"), ("accuracy", "test accuracy (%)"))
STAMP = (
    f"Lines: mean over seeds; bands: least to greatest; loss on up to {int(LOSS_VIEW[6:]):,} training samples. "
    "Layout and range are ours, the paper's image is not in its text."
)


def participants_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 6: all n at the usual K."""
    return tuple(rounds_panel(scale, s, d) for s in settings(scale) for d in DISTRIBUTIONS)


def steps_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 7: the usual K comes from the runs of Fig. 6."""
    others = tuple(steps_panel(scale, s, d) for s in settings(scale) for d in DISTRIBUTIONS)
    return (*participants_panels(scale), *others)


def to_target(histories: Histories) -> pd.DataFrame:
    """`rounds_to_target` of all runs: aggregations to the target of Table I, to within the evaluation interval."""
    import pandas as pd

    from reproduce.report import metrics

    parts = []
    for setting in settings(histories.scale):
        for where, distribution in enumerate(DISTRIBUTIONS):
            frame = histories.frame
            frame = frame[(frame["dataset"] == setting.dataset) & (frame["distribution"] == distribution)]
            if len(frame):
                name, horizon = "rounds_to_target", float(setting.rounds)
                target = setting.target[where]
                parts.append(metrics.first_reaching(frame, "accuracy", target, horizon=horizon, name=name))
    return pd.concat(parts, ignore_index=True)


def draw(histories: Histories, by: str) -> Figure:
    """Rows: loss, accuracy; columns: data set and distribution; one line for each value of the column `by`."""
    from reproduce.report import figures
    from reproduce.report.names import pretty

    columns = [(s, d) for s in settings(histories.scale) for d in DISTRIBUTIONS]
    fig, axes = figures.sheet(2, len(columns), sharex="col")
    for column, (setting, distribution) in enumerate(columns):
        frame, name = histories.frame, PROPOSED[distribution]
        frame = frame[(frame["dataset"] == setting.dataset) & (frame["algorithm"] == name)]
        if by == "K":
            frame = frame[frame["n"] == middle(setting)]
        frame = frame.assign(series=[f"{by} = {v}" for v in frame[by]])
        order = [f"{by} = {v}" for v in (setting.few if by == "n" else setting.ks)]
        for row, (metric, label) in enumerate(ROWS):
            ax = axes[row, column]
            rows = frame[frame["metric"] == metric]
            if rows.empty:
                figures.missing(ax, "; ".join(dict.fromkeys(why for _, why in histories.missing)) or "no results")
                continue
            figures.curves(ax, rows, series="series", order=order, markers=5)
            if metric == "accuracy":
                ax.set_xlabel("aggregations")
            else:
                ax.set_ylim(0, min(2.5, 1.05 * float(rows["value"].max())))
            if column == 0:
                ax.set_ylabel(label)
        axes[0, column].set_title(f"{pretty(setting.dataset, NAMES)}, {pretty(distribution)}: {pretty(name)}", size=7)
    figures.legend(fig)
    return fig
