"""What the measures of `declare` mean: from an artifact's histories to its cells."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import pandas as pd

from reproduce.declare.artifact import Artifact, Code, Last, Reach, Window
from reproduce.declare.experiment import Experiment
from reproduce.report import metrics
from reproduce.report.code import function
from reproduce.report.histories import Histories


def cells(artifact: Artifact, histories: Histories) -> pd.DataFrame:
    """The cells of all measures of an artifact, one below the other."""
    if callable(artifact.cells):
        found: pd.DataFrame = artifact.cells(histories)
        return found
    parts = [measure(m, histories, artifact.paper) for m in artifact.cells]
    found = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    return found.drop(columns=list(artifact.drop), errors="ignore")


@singledispatch
def measure(m: Any, histories: Histories, paper: str) -> pd.DataFrame:
    """The cells of one measure."""
    raise TypeError(f"{m!r} is no measure")


@measure.register
def _(m: Code, histories: Histories, paper: str) -> pd.DataFrame:
    found: pd.DataFrame = function(paper, m)(histories)
    return found


@measure.register
def _(m: Last, histories: Histories, paper: str) -> pd.DataFrame:
    key, each = None if m.by else "", _each(histories, histories.frame, m.over)
    parts = [metrics.last(rows, m.metric, int(n), key=key, name=m.name or None) for n, rows in each]
    found = pd.concat(parts, ignore_index=True)
    return found.rename(columns={"key": m.by}) if m.by else found


@measure.register
def _(m: Window, histories: Histories, paper: str) -> pd.DataFrame:
    frame, name = histories.frame, m.name or m.metric
    if not m.sessions:
        return metrics.plateau(frame, m.metric, m.first, m.last, name=name)
    length = histories.of("clock.rounds")
    origin = histories.of(m.origin) if m.origin else length * 0
    parts = []
    for lengths, rows in frame.groupby([length, origin], sort=False):
        rounds, first = (int(str(n)) for n in lengths)
        for transition, session in m.sessions.items():
            if m.last <= rounds:
                start = (first + session) * rounds
                part = metrics.plateau(rows, m.metric, start + m.first, start + m.last, name=name)
                parts.append(part.assign(transition=transition))
    nothing = pd.DataFrame({c: [] for c in [*metrics.label_columns(frame), "seed", "metric", "value", "transition"]})
    return pd.concat(parts, ignore_index=True) if parts else nothing


def rounds_of(m: Window, e: Experiment, transition: str) -> tuple[float, float]:
    """The first and the last round of the window of a transition in a run of sessions."""
    origin: Any = e
    for name in m.origin.split(".") if m.origin else ():
        origin = getattr(origin, name)
    begin = ((origin if m.origin else 0) + m.sessions[transition]) * e.clock.rounds
    return float(begin + m.first), float(begin + m.last)


@measure.register
def _(m: Reach, histories: Histories, paper: str) -> pd.DataFrame:
    parts, frame, key = [], histories.frame[histories.frame["metric"] == m.metric], None if m.by else ""
    for n, rows in _each(histories, frame, m.smooth):
        curve = metrics.smooth(rows, int(n)) if n > 1 else rows
        for horizon, part in _each(histories, curve, m.horizon) if m.horizon else [(None, curve)]:
            parts.append(metrics.first_reaching(part, m.metric, m.target, horizon=horizon, x=m.x, key=key, name=m.name))
    found = pd.concat(parts, ignore_index=True)
    return found.rename(columns={"key": m.by}) if m.by else found


def _each(histories: Histories, frame: pd.DataFrame, number: Any) -> list[tuple[Any, pd.DataFrame]]:
    """The frame, cut by the label column, or by the attribute of the experiments, that holds the number, or whole with
    the number itself."""
    if not isinstance(number, str):
        return [(number, frame)]
    held = histories.of(number)[frame.index] if "." in number else frame[number]
    return [(value, rows) for value, rows in frame.groupby(held, sort=False)]
