"""From accuracy curves to the numbers of Tables 1-7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reproduce.experiment import Panel
from reproduce.report.metrics import plateau

if TYPE_CHECKING:
    import pandas as pd

TRANSITIONS = {"first": 3, "second": 4}
"""Session that starts with the transition, for P = 1: at session 2 the schemes still coincide."""


def windows(frame: pd.DataFrame, panels: Sequence[Panel], transitions: Mapping[str, int]) -> pd.DataFrame:
    """Mean accuracy after each transition, one row per run, transition and window.

    `accuracy_after_transition_pct` is the window that reproduces the printed numbers: the entries s T, ..., s T + 4 of
    the curve, i.e. the end of the last session (on its labels) and four rounds of session s, because the curve starts
    with the random model. `accuracy_first5_rounds_pct` and `accuracy_first10_rounds_pct` are the session's own rounds.
    """
    import pandas as pd

    parts = []
    lengths = {p.experiments[0].labels["dataset"]: p.experiments[0].clock.rounds for p in panels}
    for dataset, rows in frame.groupby("dataset", sort=False):
        length = lengths[str(dataset)]
        for transition, session in transitions.items():
            start = session * length
            spans = {"after_transition": (0, 4), "first5_rounds": (1, 5), "first10_rounds": (1, 10)}
            for name, (first, last) in spans.items():
                if last <= length:
                    part = plateau(rows, "accuracy", start + first, start + last, name=f"accuracy_{name}_pct")
                    parts.append(part.assign(transition=transition))
    return pd.concat(parts, ignore_index=True)


def shared(cells: pd.DataFrame, panels: Sequence[Panel]) -> pd.DataFrame:
    """`cells` with the Continuous numbers of the algorithms that use another one's, which is the same training.

    Continuous is trained under the first algorithm of each learning rate; it would be the same under the others.
    """
    import pandas as pd

    copies = []
    for panel in panels:
        trained = [e for e in panel.experiments if e.labels["init_scheme"] == "continuous"]
        names = dict.fromkeys(str(e.labels["algorithm"]) for e in panel.experiments)
        for name in names:
            other = next(e for e in panel.experiments if e.labels["algorithm"] == name)
            source = next(
                (e for e in trained if (e.algorithm.lr, e.clock.floor) == (other.algorithm.lr, other.clock.floor)), None
            )
            if source is not None and source.labels["algorithm"] != name:
                same = cells[[*source.labels]].eq(pd.Series(dict(source.labels))).all(axis=1)
                copies.append(cells[same].assign(algorithm=name))
    return pd.concat([cells, *copies], ignore_index=True)
