"""Numbers that several artifacts take from the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.papers.defedavg.panels import DISTRIBUTIONS, settings
from reproduce.papers.defedavg.rates import PROPOSED

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

COLUMNS = ["distribution", "dataset", "n"]
NAMES = {
    "fedavg_lr_n10": "FedAvg (rates of n = 10)",
    "defedavg_iid_corrected": "DeFedAvg-IID (0.1, 0.05)",
    "defedavg_niid_corrected": "DeFedAvg-nIID (0.1, 0.05)",
    "defedavg_niid_hold": "DeFedAvg-nIID, hold",
    "defedavg_iid_fixed": "DeFedAvg-IID (0.1, 0.05)",
    "defedavg_niid_fixed": "DeFedAvg-nIID (0.1, 0.05)",
    "gaussian": "Gaussian classes",
    "time_to_target_s": "Time to target (s)",
    "rounds_to_target": "Aggregations to target",
    "idle_fraction": "Idle share",
}


def to_target(histories: Histories) -> pd.DataFrame:
    """`time_to_target_s` and `rounds_to_target` of all runs on the grid of virtual times."""
    import pandas as pd

    from reproduce.report import metrics

    parts = []
    for setting in settings(histories.scale):
        for where, distribution in enumerate(DISTRIBUTIONS):
            frame = histories.frame
            frame = frame[(frame["dataset"] == setting.dataset) & (frame["distribution"] == distribution)]
            if frame.empty:
                continue
            smooth = metrics.smooth(frame[frame["metric"] == "accuracy"], setting.smooth[where])
            target, horizon = setting.target[where], setting.horizon[where]
            parts += [
                metrics.time_to_reach(smooth, "accuracy", target, horizon=horizon, name="time_to_target_s"),
                metrics.first_reaching(smooth, "accuracy", target, name="rounds_to_target"),
            ]
    return pd.concat(parts, ignore_index=True)


def proposed_times(cells: pd.DataFrame) -> pd.DataFrame:
    """Per column and seed: the time at which the DeFedAvg variant reached its target, infinite if it did not."""
    import numpy as np

    ours = cells[(cells["metric"] == "time_to_target_s") & (cells["algorithm"] == cells["distribution"].map(PROPOSED))]
    return ours.assign(at=np.where(ours["censored"], np.inf, ours["value"]))[[*COLUMNS, "seed", "at"]]


def at_times(frame: pd.DataFrame, metric: str, times: pd.DataFrame, name: str) -> pd.DataFrame:
    """The last value of `metric` at or before `times["at"]` of the same column and seed, one row per run."""
    by = [*COLUMNS, "algorithm", "seed"]
    rows = frame[frame["metric"] == metric].merge(times, on=[*COLUMNS, "seed"])
    rows = rows[rows["time"] <= rows["at"] + 1e-9].sort_values("round", kind="stable")
    value = rows.groupby(by, sort=False)["value"].last()
    return value.reset_index().assign(metric=name)[[*by, "metric", "value"]]
