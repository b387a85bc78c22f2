"""Table 2: five assumptions on the dissimilarity of clients; text without measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact, no_panels

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

SHOWN = ("condition_text", "reference_numbers")


def cells(histories: Histories) -> pd.DataFrame:
    """The paper's text, and how many assumptions there are."""
    import pandas as pd

    from reproduce.report.tables import reported

    paper = reported("fedacs", "table2")
    assert paper is not None
    rows = paper.assign(seed=-1, value=float("nan"), text=paper["paper_text"])
    text = rows[["assumption_no", "algorithm", "seed", "metric", "value", "text"]]
    count = {"assumption_no": "all", "algorithm": "none", "seed": -1, "metric": "row_count", "text": ""}
    number = pd.DataFrame([{**count, "value": float(paper["assumption_no"].nunique())}])
    return pd.concat([text, number], ignore_index=True)


ARTIFACT = Artifact(
    "fedacs",
    "table2",
    "Assumptions on the dissimilarity of clients",
    no_panels,
    cells,
    rows=("assumption_no",),
    columns=("metric",),
    notes=(
        "Text of the paper, not a result. Assumption 7 has no reference in the paper. Reference numbers are those of "
        "the paper's bibliography.",
    ),
    options={
        "metrics": SHOWN,
        "names": {"assumption_no": "Assumption", "condition_text": "Condition", "reference_numbers": "References"},
    },
)
