"""Table 6: what the masks trained along and the threshold of the whole model contribute, four sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.papers.fiarse import cells, panels

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

ALGORITHMS = ("fiarse", *panels.ABLATION)


def found(histories: Histories) -> pd.DataFrame:
    return cells.only(histories, ALGORITHMS)


ARTIFACT = Artifact(
    "fiarse",
    "table6",
    "Ablation of FIARSE with four submodel sizes",
    panels.ablation,
    found,
    rows=("dataset", "algorithm"),
    columns=("eval_scope", "model_size"),
    notes=(
        "FIARSE (released) is what the published code computes: the mask follows the weights, but the gradient lacks "
        "the second term of eq. 3. The paper has no such row; which of the two its FIARSE rows are is not known.",
        "Pruning-greedy has one threshold for the whole model, so that only its local steps differ from FIARSE's.",
        "FIARSE (layer-wise) has a threshold for each of six groups (stem, four stages, classifier; at the reduced "
        "scale the same six), as in the published code; the paper's text says per layer.",
    ),
    options={"extra_markdown": cells.leads, "names": cells.NAMES},
)
