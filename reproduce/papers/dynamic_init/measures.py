"""Special measures: the mixtures that sessions start from, their first and last round, what the runs cost."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from reproduce.declare.experiment import Experiment
from reproduce.report import metrics
from reproduce.report.histories import Histories


def weights(histories: Histories) -> pd.DataFrame:
    """alpha(s, z) of the proposed scheme: columns algorithm, seed, session, stored, value, and the run's clock."""
    frame = histories.frame.assign(clock=histories.of("clock"))
    alpha = frame[(frame["metric"] == "alpha") & (frame["init_scheme"] == "proposed")]
    keys = alpha["key"].str.split(":", expand=True).astype(int)
    return alpha[["algorithm", "seed", "value", "clock"]].assign(session=keys[0], stored=keys[1])


def mixtures(histories: Histories) -> pd.DataFrame:
    """Per seed and session from the first return on: do the weights sum to one, the least, those of the group."""
    rows = []
    for (algorithm, seed, number), mix in weights(histories).groupby(["algorithm", "seed", "session"]):
        clock, session = mix["clock"].iloc[0], int(str(number))
        if session < clock.returns:
            continue
        group = clock.membership.group
        matching = mix["value"][mix["stored"].map(group) == group(session)]
        rows += [
            (session, algorithm, seed, "alpha_weights_sum_error", abs(mix["value"].sum() - 1)),
            (session, algorithm, seed, "alpha_weights_min", mix["value"].min()),
            (session, algorithm, seed, "matching_group_weight", matching.sum()),
        ]
    return pd.DataFrame(rows, columns=["session", "algorithm", "seed", "metric", "value"])


def ends(histories: Histories) -> pd.DataFrame:
    """Accuracy after the first and after the last round of every session from the first return on."""
    parts = []
    for clock, rows in histories.frame.groupby(histories.of("clock").map(repr), sort=False):
        timing = next(e.clock for e in histories.experiments if repr(e.clock) == clock)
        for session in range(timing.returns, timing.sessions):
            for name, t in (("first", 1), ("last", timing.rounds)):
                metric, at = f"accuracy_{name}_round_of_session_pct", session * timing.rounds + t
                parts.append(metrics.plateau(rows, "accuracy", at, at, name=metric).assign(session=session))
    return pd.concat(parts, ignore_index=True)


def costs(histories: Histories, clients: int, overlap: float) -> pd.DataFrame:
    """Processor seconds of all schemes of a setting together, and the most memory that one of their jobs had.

    clients, overlap: the number of clients and the overlap of AG News (if not 0) as these tables print them.
    A seed of a setting is left out unless all its schemes have results that say what it took, on the processor that
    most runs are of: seconds of two processors do not compare.
    """
    rows, schemes = [], Counter[tuple[Any, ...]]()
    for e in histories.experiments:
        labels = {k: v for k, v in e.labels.items() if k != "init_scheme"} | {"num_clients": clients}
        if labels["dataset"] == "ag_news" and labels["label_overlap"]:
            labels["label_overlap"] = overlap
        schemes[tuple(labels.values())] += 1
        rows += [{**labels, **took} for took in _took(e, histories)]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows)
    alike = frame[frame["processor"] == frame["processor"].value_counts().idxmax()]
    groups = alike.groupby([*labels, "seed"], sort=False)
    totals = groups.agg(cpu_time_seconds=("seconds", lambda v: sum(v.tolist())), max_memory_gb=("memory", "max"))
    complete = groups.size() == [schemes[tuple(setting)] for *setting, _ in totals.index]
    return totals[complete].reset_index().melt([*labels, "seed"], var_name="metric")


def _took(e: Experiment, histories: Histories) -> Iterator[dict[str, Any]]:
    """Seconds, memory and processor of every seed of an experiment; nothing if no result says them."""
    for run in {run.seed: run for run in histories.runs_of(e) if run.seconds is not None}.values():
        processor = str(run.training.get("machine", {}).get("processor", "unknown"))
        memory = run.training["peak_memory"] / 1e9
        yield {"seed": run.seed, "seconds": run.seconds, "memory": memory, "processor": processor}
