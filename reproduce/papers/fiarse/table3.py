"""Table 3: hyper-parameters, read from the configuration of the paper scale; nothing is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.experiment import Artifact, no_panels
from reproduce.papers.fiarse import panels

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

Entries = list[tuple[str, int, str, float | str]]


def configured() -> Entries:
    """(dataset, option, metric, value) of every data set of the paper scale."""
    import math

    entries: Entries = []
    for dataset, setting in panels.settings("paper").items():
        values: dict[str, list[float | str]] = {
            "local_epochs": [setting.system.work.amounts(0, 0, 1)[0]],
            "batch_size": [setting.problem.batches.size],
            "communication_rounds": [setting.clock.rounds],
            "optimizer": ["sgd"],
        }
        used = panels.algorithms(setting.participants).values()
        values["log10_learning_rate_grid"] = [round(math.log10(lr), 6) for lr in dict.fromkeys(a.lr for a in used)]
        values["sgd_momentum_grid"] = list(dict.fromkeys(a.momentum for a in used))
        entries += [(dataset, i, metric, v) for metric, found in values.items() for i, v in enumerate(found)]
    return entries


def cells(histories: Histories) -> pd.DataFrame:
    """One cell per entry of the configuration; words stand in `text`."""
    import pandas as pd

    rows = [
        {
            "dataset": dataset,
            "option": str(option),
            "algorithm": "all",
            "metric": metric,
            "seed": -1,
            "value": float("nan") if isinstance(value, str) else float(value),
            "text": value if isinstance(value, str) else "",
        }
        for dataset, option, metric, value in configured()
    ]
    return pd.DataFrame(rows)


ARTIFACT = Artifact(
    "fiarse",
    "table3",
    "Hyper-parameters of the paper scale",
    no_panels,
    cells,
    rows=("metric",),
    columns=("dataset", "option"),
    decimals=0,
    notes=(
        "The paper searches a grid and does not say how it selects; here all methods have the values of the commands "
        "in the published code, rate 0.1 and momentum 0. The other options of the grid are therefore not run.",
        "The commands of the published code make 100 local steps, which are 4 epochs; Table 3 says 5.",
        "AG News is not part of this package yet.",
    ),
)
