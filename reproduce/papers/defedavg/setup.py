"""The paper's networks and clock: parameters, and how long an aggregation takes. No training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact, no_panels
from reproduce.papers.defedavg.cells import NAMES
from reproduce.papers.defedavg.panels import PAPER, SEEDS, schedule
from reproduce.papers.defedavg.rates import GROUPS, PARTICIPANTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

AGGREGATIONS = 300
ALGORITHMS = tuple(dict.fromkeys(a for group in GROUPS.values() for a in group))


def cells(histories: Histories) -> pd.DataFrame:
    """Parameters of the networks (a point), and mean seconds per aggregation of every algorithm and seed."""
    import pandas as pd

    rows: list[dict[str, object]] = []
    for setting in PAPER:
        same = {"dataset": setting.dataset}
        count = float(setting.problem.model.parameters)
        rows.append({**same, "n": "", "algorithm": "none", "seed": -1, "metric": "parameter_count", "value": count})
        for name in ALGORITHMS:
            for n in PARTICIPANTS:
                for seed in SEEDS:
                    end = schedule(setting, name, n).simulate(seed, AGGREGATIONS)[-1].time
                    row = {"n": str(n), "algorithm": name, "seed": seed, "value": end / AGGREGATIONS}
                    rows.append({**same, **row, "metric": "mean_seconds_per_aggregation"})
    return pd.DataFrame(rows)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(1, 2, sharey=True)
    looks = figures.lines([a for a in ALGORITHMS if a != "defedavg_iid"])
    looks["defedavg_iid"] = figures.Look(figures.SKY, "-", "P")
    rows = cells[cells["metric"] == "mean_seconds_per_aggregation"]
    rows = rows.assign(n=rows["n"].astype(float))
    order = [a for a in ALGORITHMS if not a.startswith("defedavg")] + ["defedavg_iid", "defedavg_niid"]
    for ax, setting in zip(axes[0], PAPER, strict=True):
        figures.curves(
            ax, rows[rows["dataset"] == setting.dataset], x="n", order=order, styles=looks, names=NAMES, markers=4
        )
        ax.set(xscale="log", yscale="log", xlabel="n", title=pretty(setting.dataset))
        ax.set_xticks(PARTICIPANTS, [str(n) for n in PARTICIPANTS])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("seconds per aggregation")
    figures.legend(fig)
    return fig


ARTIFACT = Artifact(
    "defedavg",
    "setup",
    "Virtual seconds per aggregation under the paper's clock",
    no_panels,
    cells,
    draw,
    options={
        "names": NAMES,
        "stamp": f"From the simulated schedules: {AGGREGATIONS} aggregations, K = 50 (AsySG 1), {len(SEEDS)} draws of "
        "the clients' speeds. The paper does not print these numbers; its Table I implies them.",
    },
)
