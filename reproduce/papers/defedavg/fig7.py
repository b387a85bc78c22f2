"""Fig. 7: DeFedAvg over aggregations with different numbers of local steps K."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.defedavg import versions
from reproduce.papers.defedavg.cells import NAMES
from reproduce.papers.defedavg.panels import middle, settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def cells(histories: Histories) -> pd.DataFrame:
    """Aggregations to the target of Table I, and the mean accuracy of the last five evaluations."""
    import pandas as pd

    from reproduce.report import metrics

    final = metrics.last(histories.frame, "accuracy", 5, name="final_test_accuracy_pct")
    both = pd.concat([versions.to_target(histories), final], ignore_index=True)
    return both[both["n"].isin([middle(s) for s in settings(histories.scale)])]


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return versions.draw(histories, "K")


def stamp(histories: Histories) -> str:
    """The caption's settings, of the runs of this scale."""
    setting = settings(histories.scale)[0]
    rates = f"All K with the rates of K = {setting.steps} (the paper gives none)"
    return f"{versions.STAMP} {rates}; n = {middle(setting)}."


ARTIFACT = Artifact(
    "defedavg",
    "fig7",
    "DeFedAvg over aggregations for different K",
    versions.steps_panels,
    cells,
    draw,
    options={"names": NAMES, "stamp": stamp},
)
