"""The numbers of FedACS's artifacts that are not plain reductions of a curve.

Quadratics: distances of single runs, of the mean over seeds, and to the closed forms. Networks: rounds and work to a
target, ratios to FedACS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.artifact import Reach
from reproduce.declare.experiment import Experiment
from reproduce.declare.values import Floats, Ints
from reproduce.models.declared import ConvNet
from reproduce.papers.fedacs import theory
from reproduce.papers.fedacs.artifacts import FINAL, PLATEAU, ROUNDS, TIME
from reproduce.papers.fedacs.choices import TABLES
from reproduce.report import metrics
from reproduce.report.histories import Histories, label_columns
from reproduce.report.tables import reported
from reproduce.systems import System

SETTING = ["system", "dataset", "dirichlet_alpha"]
RUN = [*SETTING, "algorithm", "seed"]
LATE = 0.8
"""The plateau begins after this share of the rounds: the last 200 of 1000."""


def extremes(histories: Histories, system: System, clients: int) -> pd.DataFrame:
    """Fig. 1: the extremes of the static system."""
    steps, success = (values[0] for values in theory.draws(system, clients))
    rows = [
        ("T_min", steps.min()), ("T_max", steps.max()), ("success_min", round(float(success.min()), 12)),
        ("success_max", round(float(success.max()), 12)), ("clients", clients),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["metric", "value"]).assign(system="static", algorithm="none", seed=-1)


def traces(histories: Histories) -> Iterator[tuple[Experiment, Floats, Ints, Ints]]:
    """Yields, for every experiment with results: its declaration, x [seeds, times, d], rounds [times], seeds [seeds].

    A run that diverged has no values where it stopped.
    """
    labels = label_columns(histories.frame)
    rows = histories.frame[histories.frame["metric"] == "x"]
    rows = rows.assign(key=rows["key"].astype(int))
    for values, group in rows.groupby(labels, sort=False, dropna=False):
        table = group.pivot_table(index=["seed", "round"], columns="key", values="value", dropna=False)
        seeds, rounds = (table.index.unique(level) for level in ("seed", "round"))
        x = table.to_numpy().reshape(len(seeds), len(rounds), -1)
        e = histories.declared(**dict(zip(labels, values, strict=True)))
        yield e, x, rounds.to_numpy(), seeds.to_numpy()


def per_seed(histories: Histories, metric: str, number: Callable[[Any, Floats, Ints], Any]) -> pd.DataFrame:
    """Cells of `number(experiment, x, rounds)` [seeds], one row per seed; none for an experiment where it is None."""
    rows = [
        {**e.labels, "seed": int(seed), "metric": metric, "value": float(value)}
        for e, x, rounds, seeds in traces(histories)
        if (values := number(e, x, rounds)) is not None
        for seed, value in zip(seeds, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=[*label_columns(histories.frame), "seed", "metric", "value"])


def second_half(x: Floats, rounds: Ints) -> Floats:
    """The average of X_r over the second half of the run [seeds, d]."""
    return np.asarray(x[:, rounds > rounds.max() / 2].mean(1))


def tail_averages(histories: Histories, algorithms: tuple[str, ...] = (), closed: bool = False) -> pd.DataFrame:
    """`distance_of_tail_average`: of the average over the second half of the run to X*, one row per run; or (`closed`)
    `distance_of_tail_average_to_closed_form`, at the rate of the simulation. algorithms: if not all."""
    frame = histories.frame
    chosen = replace(histories, frame=frame[frame["algorithm"].isin(algorithms or frame["algorithm"])])

    def distances(e: Any, x: Floats, rounds: Ints) -> Any:
        return np.linalg.norm(second_half(x, rounds) - (theory.limit(e) if closed else e.problem.optimum()), axis=1)

    return per_seed(chosen, "distance_of_tail_average" + ("_to_closed_form" if closed else ""), distances)


def mean_to_limit(histories: Histories) -> pd.DataFrame:
    """`distance_of_mean_model_to_closed_form`: ||mean of X_r over seeds and plateau - limit|| where the system is
    static, see `jackknife`."""

    def distances(e: Any, x: Floats, rounds: Ints) -> Any:
        if len(theory.draws(e.system, e.problem.clients)[0]) > 1:
            return None
        limit, plateau = theory.limit(e), rounds > LATE * rounds.max()
        return jackknife(x, lambda seeds: float(np.linalg.norm(seeds.mean(0)[plateau].mean(0) - limit)))

    return per_seed(histories, "distance_of_mean_model_to_closed_form", distances)


def mean_model(histories: Histories) -> pd.DataFrame:
    """`distance_of_mean_model`: plateau of ||mean over seeds of X_r - X*||, see `jackknife`."""

    def distances(e: Any, x: Floats, rounds: Ints) -> Any:
        plateau, best = rounds > LATE * rounds.max(), e.problem.optimum()
        return jackknife(x, lambda seeds: float(np.linalg.norm(seeds.mean(0)[plateau] - best, axis=1).mean()))

    return per_seed(histories, "distance_of_mean_model", distances)


def jackknife(x: Floats, number: Callable[[Floats], float]) -> Floats:
    """Tukey's pseudo-values [seeds] of a number of all seeds together: n times it, less n - 1 times the number without
    the seed. Their mean is the number (less its bias) and their spread its uncertainty. One seed: the number itself."""
    full, n = number(x), len(x)
    if n == 1:
        return np.array([full])
    return np.array([n * full - (n - 1) * number(np.delete(x, i, axis=0)) for i in range(n)])


def calibrated_too(frame: pd.DataFrame, histories: Histories) -> pd.DataFrame:
    """Rows of Fig. 7 with the runs that calibration leaves alone (factor one) also as calibrated ones."""
    changed = {e.labels["algorithm"] for e in histories.experiments if e.labels["calibrate"]}
    same = frame[~frame["algorithm"].isin(changed)]
    return pd.concat([frame, same.assign(calibrate=True)], ignore_index=True)


def convergence_points(histories: Histories) -> pd.DataFrame:
    """Fig. 7: plateau distances of every run and of the mean model, with and without calibration."""
    distances = pd.concat([metrics.measured(PLATEAU, histories), mean_model(histories)], ignore_index=True)
    return calibrated_too(distances, histories)


def choices(histories: Histories) -> pd.DataFrame:
    """Sensitivity: `final_accuracy` as in Fig. 6; for the quadratic `distance_plateau` as in Fig. 4."""
    parts = [
        metrics.measured(PLATEAU if toy else FINAL, replace(histories, frame=rows))
        for toy, rows in histories.frame.groupby(histories.frame["dataset"] == "quadratic")
    ]
    return pd.concat(parts, ignore_index=True)


def halves(histories: Histories) -> pd.DataFrame:
    """`slow_class_accuracy` and `fast_class_accuracy`, where every client has one class: the mean final accuracy on the
    classes of the slow, badly connected first half of the clients, and of the others."""
    rows = histories.frame[histories.frame["metric"] == "class_accuracy"]
    return _halves(rows, _first(rows), RUN)


def _first(rows: pd.DataFrame) -> pd.Series[bool]:
    """Marks the rows whose class is in the first half of their data set's classes."""
    label = rows["key"].astype(int)
    return label < (label.groupby(rows["dataset"]).transform("max") + 1) // 2


def _halves(rows: pd.DataFrame, slow: pd.Series[bool], run: list[str]) -> pd.DataFrame:
    tail = rows["round"] > rows.groupby("dataset")["round"].transform("max") - rows["tail"]
    parts = [
        half.groupby(run, sort=False)["value"].mean().reset_index().assign(metric=name)
        for name, half in (("slow_class_accuracy", rows[tail & slow]), ("fast_class_accuracy", rows[tail & ~slow]))
    ]
    return pd.concat(parts, ignore_index=True)


def traded(histories: Histories) -> pd.DataFrame:
    """`final_accuracy`, and the two of `halves` where the clients' halves own other classes."""
    rows = histories.frame[histories.frame["metric"] == "class_accuracy"]
    rows = rows[rows["slow_own"] != "half of every class"]
    slow = _first(rows) == (rows["slow_own"] == "the first classes")
    final = metrics.measured(FINAL, histories)
    return pd.concat([final, _halves(rows, slow, [*label_columns(rows), "seed"])], ignore_index=True)


def targets(histories: Histories) -> dict[Any, float]:
    """Setting -> target accuracy (%): the paper's, or 0.9 x the best final accuracy of FedAvg where it has none."""
    frame = histories.frame
    if "target_accuracy_pct" in frame:
        return {k: float(v) for k, v in frame.groupby(SETTING)["target_accuracy_pct"].first().items()}
    final = metrics.measured(FINAL, histories)
    best = final[final["algorithm"] == "fedavg"].groupby(SETTING)["value"].max()
    return {k: round(0.9 * float(v), 1) for k, v in best.items()}


def to_target(histories: Histories) -> pd.DataFrame:
    """Rounds and P100-equivalent seconds to the target, their ratios to FedACS's, and the work per round.

    A run that misses the target has the horizon as a lower bound (of the time, what it worked until it ended), and so
    do the ratios it enters; where FedACS itself misses it in a seed there is no ratio, without FedAvg no target.
    """
    goals, frame = targets(histories), histories.frame
    known = [goals.get(s, float("nan")) for s in frame[SETTING].itertuples(index=False, name=None)]
    frame = frame.assign(target_accuracy_pct=known, end=histories.of("clock.rounds"))
    aim = Reach(target="target_accuracy_pct", horizon="end", name=ROUNDS)
    rounds = metrics.measured(aim, replace(histories, frame=frame)).drop(columns="end")
    work = frame.loc[frame["metric"] == "work", [*RUN, "target_accuracy_pct", "round", "value"]].sort_values("round")
    reached = work.merge(rounds[[*RUN, "value"]].rename(columns={"value": "end"}), on=RUN)
    reached = reached[reached["round"] <= reached["end"]].groupby(RUN, sort=False).last()
    done = rounds[RUN].merge(reached["value"].reset_index(), on=RUN, how="left")["value"].to_numpy()
    time = rounds.assign(metric=TIME, value=done * rounds["seconds_per_sample"])
    last = work.groupby(RUN, sort=False).last().reset_index()
    last = last[last["round"] > 0]
    per_round = last.assign(metric="work_per_round", value=last["value"] / last["round"], censored=False)
    both = pd.concat([rounds, time], ignore_index=True)
    return pd.concat([both, _ratios(both), per_round.drop(columns="round")], ignore_index=True)


def _ratios(cells: pd.DataFrame) -> pd.DataFrame:
    """Every value over FedACS's mean over its seeds, so that means have the ratio of the means that stand beside them
    (the paper divides averages); none where FedACS misses the target in a seed, since its mean is a bound there."""
    keys = [*SETTING, "metric"]
    known = cells["value"].where(~cells["censored"])
    fedacs = cells.assign(value=known)[cells["algorithm"] == "fedacs"]
    base = fedacs.groupby(keys)["value"].apply(lambda v: v.mean(skipna=False)).rename("base")
    value = cells["value"] / cells.join(base, on=keys)["base"]
    metric = cells["metric"] + "_ratio_printed"
    return cells.assign(value=value, metric=metric, censored=cells["censored"] & value.notna())


def rounds_to_target(histories: Histories) -> pd.DataFrame:
    """The rounds of `to_target` alone."""
    cells = to_target(histories)
    return cells[cells["metric"] == ROUNDS]


def readings(histories: Histories) -> pd.DataFrame:
    """Rounds to the target and final accuracy under each reading; `table`: which prints the rounds."""
    parts = []
    for _, rows in histories.frame.groupby(["system", "reading"], sort=False):
        selected = replace(histories, frame=rows)
        parts += [rounds_to_target(selected), metrics.measured(FINAL, selected)]
    cells = pd.concat(parts, ignore_index=True)
    return cells.assign(table=cells["system"].map(TABLES), censored=cells["censored"].eq(True))


def assumptions(histories: Histories) -> pd.DataFrame:
    """Table 2: the paper's text, and how many assumptions there are."""
    paper = reported("fedacs", "table2")
    assert paper is not None
    text = paper[["assumption_no", "algorithm", "metric"]].assign(value=float("nan"), text=paper["paper_text"])
    count = [("all", "none", "row_count", float(paper["assumption_no"].nunique()), "")]
    return pd.concat([text, pd.DataFrame(count, columns=text.columns)], ignore_index=True).assign(seed=-1)


def configuration(histories: Histories, settings: tuple[Any, ...]) -> pd.DataFrame:
    """Table 3: all its lines from the settings that the experiments use, and the number of parameters of each network.

    Loss: the paper's names; the negative log-likelihood of a log-softmax is the cross-entropy that the engine computes.
    """
    ((kernel, padding),) = {(s.model.kernel, s.model.padding) for s in settings}
    entries: dict[str, dict[str, Any]] = {
        s.name: {
            "network": "cnn", "architecture_code": architecture(s.model),
            "loss": "nll" if s.name == "mnist" else "cross_entropy", "learning_rate_eta1": s.rate,
            "global_rounds": s.rounds, "batch_size": s.batch, "parameter_count": s.model.parameters,
        }
        for s in settings
    }  # fmt: skip
    entries["all"] = {
        "conv_kernel": kernel, "conv_stride": 1, "conv_padding": padding, "maxpool_kernel": 2, "maxpool_stride": 2,
        "dropout_probability": max(s.model.dropout for s in settings),
    }  # fmt: skip
    rows = [
        (name, metric, float("nan"), entry) if isinstance(entry, str) else (name, metric, float(entry), "")
        for name, lines in entries.items()
        for metric, entry in lines.items()
    ]
    return pd.DataFrame(rows, columns=["dataset", "metric", "value", "text"]).assign(algorithm="all", seed=-1)


def architecture(model: ConvNet) -> str:
    """The network in the letters of the paper: C convolution, R ReLU, M max-pooling, D dropout, L linear."""
    between = "RM" if model.activation else ""
    a, b = model.widths
    parts = [f"C({model.channels},{a})", f"{between}C({a},{b})"]
    for i, outputs in enumerate((*model.hidden, model.classes)):
        dropout = {"all": True, "first": i == 0, "last": i == len(model.hidden)}[model.dropout_at]
        before = between if i == 0 else "R" if model.activation else ""
        parts.append(f"{before}{'D' if model.dropout and dropout else ''}L({outputs})")
    return " - ".join(parts)
