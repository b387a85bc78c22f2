"""Numbers of the network experiments: final accuracies, rounds and work to a target, ratios to FedACS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reproduce.papers.fedacs.networks import SETTINGS, TARGETS

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

SETTING = ["system", "dataset", "dirichlet_alpha"]
RUN = [*SETTING, "algorithm", "seed"]


def final_accuracy(histories: Histories) -> pd.DataFrame:
    """`final_accuracy`: mean over the last evaluations, five at paper scale (appendix I.3.4)."""
    import pandas as pd

    from reproduce.report import metrics

    parts = []
    for dataset, rows in histories.frame.groupby("dataset", sort=False):
        tail = SETTINGS[histories.scale][str(dataset)].tail
        parts.append(metrics.last(rows, "accuracy", tail, name="final_accuracy"))
    return pd.concat(parts, ignore_index=True)


def halves(histories: Histories) -> pd.DataFrame:
    """`slow_class_accuracy` and `fast_class_accuracy`, where every client has one class: the mean final accuracy on the
    classes of the slow, badly connected first half of the clients, and of the others."""
    import pandas as pd

    parts = []
    frame = histories.frame
    for dataset, rows in frame[frame["metric"] == "class_accuracy"].groupby("dataset", sort=False):
        tail = SETTINGS[histories.scale][str(dataset)].tail
        late = rows[rows["round"] > rows["round"].max() - tail]
        label = late["key"].astype(int)
        slow = label < (label.max() + 1) // 2
        for name, half in (("slow_class_accuracy", late[slow]), ("fast_class_accuracy", late[~slow])):
            parts.append(half.groupby(RUN, sort=False)["value"].mean().reset_index().assign(metric=name))
    nothing = pd.DataFrame({name: [] for name in [*RUN, "metric"]} | {"value": pd.Series(dtype=float)})
    return pd.concat(parts, ignore_index=True) if parts else nothing


def targets(histories: Histories) -> dict[Any, float]:
    """Setting -> target accuracy (%): the paper's, or 0.9 x the best final accuracy of FedAvg at a smaller scale."""
    final = final_accuracy(histories)
    if histories.scale == "paper":
        known: Mapping[Any, float] = {(dataset, str(alpha)): target for (dataset, alpha), target in TARGETS.items()}
        return {
            tuple(s): known[s[1], s[2]] for s in final[SETTING].drop_duplicates().itertuples(index=False, name=None)
        }
    best = final[final["algorithm"] == "fedavg"].groupby(SETTING)["value"].max()
    return {s: round(0.9 * float(value), 1) for s, value in best.items()}


def to_target(histories: Histories) -> pd.DataFrame:
    """Rounds and P100-equivalent seconds to the target, their ratios to FedACS's, and the work per round.

    A run that misses the target has the horizon as a lower bound, and so do the ratios it enters; where FedACS itself
    misses it there is no ratio.
    """
    import pandas as pd

    from reproduce.report import metrics

    goals = targets(histories)
    frame = histories.frame
    frame = frame.assign(target_accuracy_pct=_of(frame, goals))
    rounds = metrics.first_reaching(frame, "accuracy", "target_accuracy_pct", name="rounds_to_target")
    work = frame.loc[frame["metric"] == "work", [*RUN, "round", "value"]]
    at_target = rounds[[*RUN, "value"]].rename(columns={"value": "round"}).merge(work, on=[*RUN, "round"], how="left")
    seconds = [SETTINGS[histories.scale][d].seconds for d in rounds["dataset"]]
    time = rounds.assign(metric="computation_time_to_target_s", value=at_target["value"].to_numpy() * seconds)
    last = work.sort_values("round").groupby(RUN, sort=False).last().reset_index()
    last = last[last["round"] > 0]
    per_round = last.assign(metric="work_per_round", value=last["value"] / last["round"]).drop(columns="round")
    per_round["target_accuracy_pct"] = _of(per_round, goals)
    both = pd.concat([rounds, time], ignore_index=True)
    return pd.concat([both, _ratios(both), per_round.assign(censored=False)], ignore_index=True)


def figure(histories: Histories) -> pd.DataFrame:
    """The cells of an accuracy figure: final accuracies, and rounds to the target."""
    import pandas as pd

    rounds = to_target(histories)
    rounds = rounds[rounds["metric"] == "rounds_to_target"].drop(columns="target_accuracy_pct")
    final = pd.concat([final_accuracy(histories), halves(histories)], ignore_index=True).assign(censored=False)
    return pd.concat([final, rounds], ignore_index=True)


def _ratios(cells: pd.DataFrame) -> pd.DataFrame:
    """Every value over FedACS's of the same seed."""
    keys = [*SETTING, "seed", "metric"]
    base = cells[cells["algorithm"] == "fedacs"][[*keys, "value", "censored"]]
    both = cells.merge(base, on=keys, how="left", suffixes=("", "_fedacs"))
    value = (both["value"] / both["value_fedacs"]).where(both["censored_fedacs"].eq(False))
    metric = cells["metric"].to_numpy() + "_ratio_printed"
    return cells.assign(value=value.to_numpy(), metric=metric, censored=cells["censored"] & value.notna().to_numpy())


def _of(frame: pd.DataFrame, goals: Mapping[Any, float]) -> list[float]:
    """The target of every row; NaN where FedAvg was not run."""
    return [goals.get(s, float("nan")) for s in frame[SETTING].itertuples(index=False, name=None)]
