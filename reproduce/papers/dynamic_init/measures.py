"""Special measures: the mixtures that sessions start from, their first and last round, what the runs cost."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from reproduce.report import metrics
from reproduce.report.histories import Histories
from reproduce.store.reading import Stored


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
        numbers = {
            "alpha_weights_sum_error": abs(mix["value"].sum() - 1),
            "alpha_weights_min": mix["value"].min(),
            "matching_group_weight": mix["value"][mix["stored"].map(group) == group(session)].sum(),
        }
        labels = {"session": session, "algorithm": algorithm, "seed": seed}
        rows += [{**labels, "metric": name, "value": float(value)} for name, value in numbers.items()]
    return pd.DataFrame(rows)


def ends(histories: Histories) -> pd.DataFrame:
    """Accuracy after the first and after the last round of every session from the first return on."""
    parts = []
    for clock, rows in histories.frame.groupby(histories.of("clock").map(repr), sort=False):
        timing = next(e.clock for e in histories.experiments if repr(e.clock) == clock)
        for session in range(timing.returns, timing.sessions):
            for name, t in (("first", 1), ("last", timing.rounds)):
                metric, at = f"accuracy_{name}_round_of_session_pct", session * timing.rounds + t
                parts.append(metrics.at_round(rows, "accuracy", at, name=metric).assign(session=session))
    return pd.concat(parts, ignore_index=True)


def costs(histories: Histories, clients: int, overlap: float) -> pd.DataFrame:
    """Processor seconds of all schemes of a setting together, and the most memory that one of their jobs had.

    clients, overlap: the number of clients and the overlap of AG News (if not 0) as these tables print them.
    A seed of a setting is left out unless all its schemes have results that say what it took, on the processor that
    most runs are of: seconds of two processors do not compare.
    """
    groups: dict[tuple[tuple[str, object], ...], list[list[Stored]]] = {}
    for e in histories.experiments:
        labels = {k: v for k, v in e.labels.items() if k != "init_scheme"} | {"num_clients": clients}
        if labels["dataset"] == "ag_news" and labels["label_overlap"]:
            labels["label_overlap"] = overlap
        groups.setdefault(tuple(labels.items()), []).append(histories.runs_of(e))
    runs = {
        setting: [{run.seed: run for run in mine if run.seconds is not None} for mine in found]
        for setting, found in groups.items()
    }
    counts = Counter(_processor(run) for found in runs.values() for seeds in found for run in seeds.values())
    processor = max(counts, key=lambda name: counts[name], default="")
    rows = []
    for setting, found in runs.items():
        for seed in found[0]:
            timed = [seeds[seed] for seeds in found if seed in seeds and _processor(seeds[seed]) == processor]
            if len(timed) < len(found):
                continue
            memory = max(run.training["peak_memory"] for run in timed) / 1e9
            numbers = {"cpu_time_seconds": sum(run.seconds or 0 for run in timed), "max_memory_gb": memory}
            rows += [{**dict(setting), "seed": seed, "metric": name, "value": value} for name, value in numbers.items()]
    return pd.DataFrame(rows)


def _processor(run: Stored) -> str:
    return str(run.training.get("machine", {}).get("processor", "unknown"))
