"""The scope of a claim: the settings of its check, those without per-seed values, the ground of its runs."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import Experiment, Panel
from reproduce.problem import Quadratic
from reproduce.report.names import canonical
from reproduce.verdicts.claims import Check, listed, named_values, parts
from reproduce.verdicts.observations import ENDS, matches

CHECK = "check"
"""The text instead of a ground if a statement is true or false by construction, whatever is trained:
configuration, counting, copies, our own model of time. It is no claim, but a check of this package."""
GROUNDS = ("closed form or simulation", "quadratics", "substitute data", "the paper's data")
"""The grounds of a verdict, the weakest first. Substitute: other data, another network or fewer steps than
the paper's. The last two are what training shows."""
_, QUADRATICS, SUBSTITUTE, GENUINE = GROUNDS
EMPIRICAL = SUBSTITUTE, GENUINE


def declared(panels: Iterable[Panel]) -> pd.DataFrame:
    """The labels of all experiments of `panels`, one row each, as canonical text."""
    rows = [{k: canonical(v) for k, v in e.labels.items()} for panel in panels for e in panel.experiments]
    return pd.DataFrame(rows)


def rows_read(check: Check, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `frame` that one part of a check reads, as far as its columns tell."""
    if "metric" in frame:
        frame = frame[frame["metric"].isin(listed(check["metric"]))]
    for column, condition in check.get("for", {}).items():
        if column in frame:
            frame = frame[matches(frame[column], condition)]
    for column, values in named_values(check).items():
        if column in frame and values and column != "metric":
            frame = frame[frame[column].isin(values)]
    return frame


def lacking(check: Check, cells: pd.DataFrame, requested: pd.DataFrame) -> list[str]:
    """The settings of `requested` that one part of a check asks for and that `cells` do not have, in few words."""
    columns = [c for c in requested.columns if c in cells and c not in ("metric", "seed", *ENDS)]
    if not columns:
        return []
    have, need = (_tuples(rows_read(check, frame), columns) for frame in (cells, requested))
    names = []
    for i, column in enumerate(columns):
        missing = dict.fromkeys(n[i] for n in need if n[i] not in {h[i] for h in have})
        names += [f"{column} {value}" for value in missing if value]
        need = {n: None for n in need if n[i] not in missing}
    return names + [", ".join(f"{c} {v}" for c, v in zip(columns, n, strict=True)) for n in need if n not in have]


def rests_on(check: Check, artifacts: Iterable[Artifact], scale: str) -> str:
    """The least of what the runs behind a check rest on."""
    grounds = {ground(panel, experiment.problem) for panel, experiment in read(check, artifacts, scale)}
    return min(grounds, key=GROUNDS.index) if grounds else GROUNDS[0]


def read(check: Check, artifacts: Iterable[Artifact], scale: str) -> list[tuple[Panel, Experiment]]:
    """The experiments that any part of the check reads, with their panels; all of them if their labels tell nothing."""
    panels = [panel for a in artifacts for panel in a.panels(scale)]
    all_of_them = [(panel, e) for panel in panels for e in panel.experiments]
    frame = declared(panels)
    rows = {int(i) for part in parts(check) for i in rows_read(part, frame).index} if len(frame) else set()
    return [all_of_them[i] for i in sorted(rows)] or all_of_them


def ground(panel: Panel, problem: Any) -> str:
    """The ground of a run of a panel, one of the last three of `GROUNDS`."""
    if isinstance(problem, Quadratic):
        return QUADRATICS
    return GENUINE if problem.requires and not panel.substitute else SUBSTITUTE


def _tuples(frame: pd.DataFrame, columns: list[str]) -> dict[tuple[str, ...], None]:
    return dict.fromkeys(map(tuple, frame[columns].fillna("").to_numpy().tolist()))
