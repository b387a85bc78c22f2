"""Figs. 2-5: training loss and test accuracy over virtual seconds, one figure for each n."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.defedavg.cells import NAMES, at_times, proposed_times, to_target
from reproduce.papers.defedavg.panels import DISTRIBUTIONS, LOSS_VIEW, settings, times_panels
from reproduce.papers.defedavg.rates import GROUPS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

ROWS = (("train_loss", "training loss"), ("accuracy", "test accuracy (%)"))


def cells(histories: Histories) -> pd.DataFrame:
    """Accuracy and training loss of all runs when the DeFedAvg variant of their panel reaches its target, and the loss
    at half of that time."""
    import pandas as pd

    times = proposed_times(to_target(histories))
    half = times.assign(at=times["at"] / 2)
    frame = histories.frame
    return pd.concat(
        [
            at_times(frame, "accuracy", times, "test_accuracy_pct_at_target_time"),
            at_times(frame, "train_loss", times, "train_loss_at_target_time"),
            at_times(frame, "train_loss", half, "train_loss_at_half_target_time"),
        ],
        ignore_index=True,
    )


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Rows: loss, accuracy; columns: data set and distribution."""
    from reproduce.report import figures
    from reproduce.report.names import pretty

    columns = [(s, where) for s in settings(histories.scale) for where in range(len(DISTRIBUTIONS))]
    fig, axes = figures.sheet(2, len(columns), sharex="col")
    for column, (setting, where) in enumerate(columns):
        distribution = DISTRIBUTIONS[where]
        frame = histories.frame
        frame = frame[(frame["dataset"] == setting.dataset) & (frame["distribution"] == distribution)]
        frame = frame[frame["time"] <= setting.shown[where]]
        order = [*GROUPS[distribution], *sorted(set(frame["algorithm"]) - set(GROUPS[distribution]))]
        looks = figures.lines([*order[:4], *GROUPS["iid"][:3], *GROUPS["noniid"][:3], *order[4:]])
        for row, (metric, label) in enumerate(ROWS):
            ax = axes[row, column]
            rows = frame[frame["metric"] == metric]
            if rows.empty:
                figures.missing(ax, "; ".join(dict.fromkeys(why for _, why in histories.missing)) or "no results")
                continue
            figures.curves(ax, rows, x="time", order=order, styles=looks, names=NAMES, markers=5)
            if metric == "accuracy":
                ax.axhline(setting.target[where], color="#404040", linewidth=0.7, linestyle=(0, (1, 1)), zorder=1)
                ax.set_xlabel("virtual seconds")
            else:
                ax.set_ylim(0, min(2.5, 1.05 * float(rows["value"].max())))
            if column == 0:
                ax.set_ylabel(label)
        axes[0, column].set_title(f"{pretty(setting.dataset, NAMES)}, {pretty(distribution)}")
    figures.legend(fig)
    return fig


def artifact(number: int, n: int) -> Artifact:
    """Fig. `number`: the runs with `n` participants."""
    return Artifact(
        "defedavg",
        f"fig{number}",
        f"Training loss and test accuracy over virtual time, n = {n}",
        partial(times_panels, n=n),
        cells,
        draw,
        options={
            "names": NAMES,
            "stamp": f"Lines: mean over seeds; bands: least to greatest; loss on up to {int(LOSS_VIEW[6:]):,} "
            "training samples; dotted: target of Table I. Layout and range are ours, the paper's image is not in its "
            "text.",
        },
    )
