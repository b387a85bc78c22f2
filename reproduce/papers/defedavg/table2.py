"""Table II: the learning rates of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact, no_panels
from reproduce.experiment import Experiment
from reproduce.papers.defedavg.cells import NAMES
from reproduce.papers.defedavg.panels import DISTRIBUTIONS, rounds_panel, settings, times_panels
from reproduce.papers.defedavg.rates import GROUPS

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

NOTES = (
    "An echo: the rates with which the runs of Table I and, for n = 5, of Fig. 6 are declared at paper scale. No grid "
    "search was run.",
    "CIFAR-10: DeFedAvg-IID at n = 10 (global 1.0) and n = 20 (local 0.01) and DeFedAvg-nIID at n = 20 (local 0.10) do "
    "not fit the times of Table I, which scale with n as if the rates were (0.1, 0.05) throughout; our Table I has "
    "rows for both readings.",
    "IID Fashion-MNIST: FedAvg's local rate falls from 0.10 (n = 10) to 0.01 (n >= 20), and its time in Table I rises "
    "from 52 to 180 s with it.",
    "The caption says 'for Table I', which has no n = 5; these columns belong to Fig. 6.",
)


def experiments() -> list[Experiment]:
    """The runs of the paper's configurations."""
    found = [e for panel in times_panels("paper") for e in panel.experiments]
    for setting in settings("paper"):
        for distribution in DISTRIBUTIONS:
            found += [e for e in rounds_panel("paper", setting, distribution).experiments if e.labels["n"] == 5]
    return found


def cells(histories: Histories) -> pd.DataFrame:
    """The rates as they stand in the declared runs; AsySG has no local rate, FAVANO no global one."""
    import pandas as pd

    rows = []
    for e in experiments():
        name = str(e.labels["algorithm"])
        if name not in GROUPS[str(e.labels["distribution"])]:
            continue
        columns = {c: e.labels[c] for c in ("distribution", "dataset", "n")}
        rates = {"global_lr": e.algorithm.server_lr, "local_lr": e.algorithm.lr}
        rates.pop({"favano": "global_lr", "asysg": "local_lr"}.get(name, ""), None)
        rows += [
            {**columns, "algorithm": name, "seed": -1, "metric": metric, "value": value, "text": str(float(value))}
            for metric, value in rates.items()
        ]
    return pd.DataFrame(rows)


ARTIFACT = Artifact(
    "defedavg",
    "table2",
    "Learning rates",
    no_panels,
    cells,
    rows=("distribution", "algorithm", "metric"),
    columns=("dataset", "n"),
    decimals=3,
    notes=NOTES,
    options={"names": {**NAMES, "global_lr": "global", "local_lr": "local"}},
)
