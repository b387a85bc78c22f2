"""Fig. 6: DeFedAvg over aggregations with different numbers of participants n."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.defedavg import versions
from reproduce.papers.defedavg.cells import NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

WINDOW = (200, 1000)
AT = 300


def cells(histories: Histories) -> pd.DataFrame:
    """Accuracy after 300 aggregations, aggregations to the target, and how much the accuracy jumps between evaluations
    from aggregation 200 to 1000 (as far as the run goes); of shorter runs (smoke) the last quarter stands in."""
    import pandas as pd

    from reproduce.report import metrics

    frame = histories.frame.drop(columns="K")
    end = int(frame["round"].max())
    at, window = (AT, WINDOW) if end >= AT else (end, (end // 2, end))
    labels = ["distribution", "dataset", "n", "algorithm", "seed"]
    accuracy = frame[(frame["metric"] == "accuracy") & frame["round"].between(*window)].sort_values("round")
    jumps = accuracy.groupby(labels, sort=False)["value"].agg(lambda curve: curve.diff().std())
    name = "std_of_test_accuracy_differences"
    return pd.concat(
        [
            metrics.at_round(frame, "accuracy", at, name="test_accuracy_pct_at_round_300"),
            versions.to_target(histories).drop(columns="K"),
            jumps.reset_index().assign(metric=name)[[*labels, "metric", "value"]],
        ],
        ignore_index=True,
    )


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return versions.draw(histories, "n")


ARTIFACT = Artifact(
    "defedavg",
    "fig6",
    "DeFedAvg over aggregations for different n",
    versions.participants_panels,
    cells,
    draw,
    options={
        "names": NAMES,
        "stamp": versions.STAMP + " At paper scale the rates are those of Table II, which change with n for "
        "DeFedAvg-IID; runs with (0.1, 0.05) throughout are in the cells as '(0.1, 0.05)'.",
    },
)
