"""Fig. 1: who trains when, for three clients of which two are aggregated at a time. Drawn from simulated traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact, no_panels
from reproduce.papers.defedavg.cells import NAMES
from reproduce.systems.policies import DeFedAvgIID, DeFedAvgNIID, FedAvg
from reproduce.systems.schedule import EventClock, Job, Policy, Trace
from reproduce.systems.speeds import Costs, Explicit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

LENGTHS, HORIZON = (2.0, 3.3, 5.1), 20.0
SELECTIONS = ((0, 2), (0, 1), (1, 2))
POLICIES: Mapping[str, Policy] = {
    "fedavg": FedAvg(2, SELECTIONS),
    "defedavg_niid": DeFedAvgNIID(2, SELECTIONS),
    "defedavg_niid_hold": DeFedAvgNIID(2, SELECTIONS, variant="hold"),
    "defedavg_iid": DeFedAvgIID(2),
}


def trace(name: str) -> Trace:
    """The first 20 units of time; transfers take none."""
    clock = EventClock(POLICIES[name], 3, 1, Costs(step=1.0, upload=0.0, download=0.0), Explicit(LENGTHS))
    return clock.trace(0, horizon=HORIZON)


def cells(histories: Histories) -> pd.DataFrame:
    """Idle share and aggregations of every panel."""
    import pandas as pd

    rows = []
    for name in POLICIES:
        drawn = trace(name)
        values = {"idle_fraction": drawn.idle, "aggregations_in_horizon": float(len(drawn.aggregations))}
        rows += [{"algorithm": name, "seed": -1, "metric": m, "value": v} for m, v in values.items()]
    return pd.DataFrame(rows)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(4, 1, sharex=True, height=1.05)
    for ax, name in zip(axes[:, 0], POLICIES, strict=True):
        drawn = trace(name)
        for job in drawn.jobs:
            _bar(ax, job)
        for aggregation in drawn.aggregations:
            ax.axvline(aggregation.time, color="#303030", linestyle=(0, (3, 2)), linewidth=0.7, zorder=1)
        _versions(ax, drawn)
        count = len(drawn.aggregations)
        ax.set_title(
            f"{pretty(name, NAMES)}: {count} aggregations, clients idle {100 * drawn.idle:.1f} % of the time",
            loc="left",
            pad=11,
        )
        ax.set(ylim=(-0.55, 2.55), xlim=(0, HORIZON))
        ax.set_xticks(range(0, 21, 2))
        ax.set_yticks(range(3), [f"client {i + 1}" for i in range(3)])
        ax.invert_yaxis()
        ax.grid(visible=False)
        ax.tick_params(axis="y", length=0)
    axes[-1, 0].set_xlabel("time (units)")
    return fig


def _bar(ax: Axes, job: Job) -> None:
    """A job with the version it started from; a dot where the server receives its update."""
    from reproduce.report.figures import LINES

    end = min(job.end, HORIZON)
    color = LINES[job.start_version % len(LINES)][0]
    look: dict[str, Any] = {"color": color, "alpha": 0.55, "edgecolor": "white"}
    if not job.uploaded:
        look = {"color": "white", "edgecolor": color, "hatch": "//////"}
    ax.barh(job.client, end - job.start, left=job.start, height=0.62, linewidth=0.6, zorder=2, **look)
    if end - job.start > 0.5:
        white = {"fc": "white", "ec": "none", "pad": 0.8, "alpha": 0.8}
        middle = (job.start + end) / 2
        ax.text(
            middle, job.client, str(job.start_version), ha="center", va="center", fontsize=6.5, zorder=4, bbox=white
        )
    if job.arrival is not None:
        ax.plot(job.arrival, job.client, "o", color="black", markersize=2.8, zorder=5, clip_on=False)


def _versions(ax: Axes, drawn: Trace) -> None:
    """The version that each aggregation makes, above its line; those of one moment together."""
    made: dict[float, list[str]] = {}
    for aggregation in drawn.aggregations:
        made.setdefault(round(aggregation.time, 9), []).append(str(aggregation.index + 1))
    for time, versions in made.items():
        ax.annotate(
            ", ".join(versions), (time, 1), (0, 1.5), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5, color="#303030",
        )  # fmt: skip


ARTIFACT = Artifact(
    "defedavg",
    "fig1",
    "Timelines of three clients",
    no_panels,
    cells,
    draw,
    options={
        "names": NAMES,
        "stamp": "Simulated: jobs of 2.0, 3.3 and 5.1 units, no time for transfers, n = 2; FedAvg and DeFedAvg-nIID "
        "select clients {1,3}, {1,2}, {2,3} in turn. Numbers in bars: version that the job started from; dashed lines: "
        "aggregations with the new version; dots: the server has the update; hatched: jobs not, or not yet, uploaded. "
        "The paper's figure is a schematic without numbers.",
    },
)
