"""Special measures: the mixtures that sessions start from."""

from __future__ import annotations

import pandas as pd

from reproduce.report.histories import Histories


def weights(histories: Histories) -> pd.DataFrame:
    """alpha(s, z) of the proposed scheme: columns algorithm, seed, session, stored, value and the clock's columns
    `returns` (the first session whose clients come back) and `same` (do s and z belong to one group?)."""
    frame = histories.frame
    frame = frame.assign(clock=histories.of("clock"))
    alpha = frame[(frame["metric"] == "alpha") & (frame["init_scheme"] == "proposed")]
    keys = alpha["key"].str.split(":", expand=True).astype(int)
    found = alpha[["algorithm", "seed", "value", "clock"]].assign(session=keys[0], stored=keys[1])
    return found


def mixtures(histories: Histories) -> pd.DataFrame:
    """Per seed and session from the first return on: do the weights sum to one, the least, those of the group."""
    alpha = weights(histories)
    rows = []
    for (algorithm, seed, session), mix in alpha.groupby(["algorithm", "seed", "session"]):
        clock = mix["clock"].iloc[0]
        if int(str(session)) < clock.returns:
            continue
        group = clock.membership.group
        same = mix["stored"].map(group) == group(int(str(session)))
        numbers = {
            "alpha_weights_sum_error": abs(mix["value"].sum() - 1),
            "alpha_weights_min": mix["value"].min(),
            "matching_group_weight": mix["value"][same].sum(),
        }
        labels = {"session": session, "algorithm": algorithm, "seed": seed}
        rows += [{**labels, "metric": name, "value": float(value)} for name, value in numbers.items()]
    return pd.DataFrame(rows)
