"""The first rounds of a finished job once more: does today's code still give the numbers that it wrote down?

The runs are trained as ever and simply not asked for more, so that nothing in them knows of the end. Quadratics and
schedules are float64 and agree to rounding (on one machine to the bit). Networks are float32: another order of sums
changes the last bits, and training carries such a difference on and lets it grow, so that only few rounds can be
compared, within `TOLERANCE`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from reproduce.declare.experiment import Experiment
from reproduce.engine.scheduler import Run
from reproduce.runs.job import begin, finish
from reproduce.settings import settings

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = {"float64": 1e-9, "float32": 0.01, "tf32": 0.02, "bfloat16": 0.02}
"""Largest deviation that counts as agreement, relative to the largest number of the metric or to 1: one point of
accuracy in float32, where the deviations found on one machine (`results/<scale>/replay.csv`) are mostly below 1e-6."""

Row = tuple[int, float, str, str, float]  # round, time, metric, key, value


@dataclass(frozen=True)
class Comparison:
    """rounds: up to there all runs were compared; rows: numbers compared; deviation: the largest.

    where: what deviates most, "" if nothing does. agrees: is the deviation within the tolerance?
    """

    rounds: int
    rows: int
    deviation: float
    where: str
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.deviation <= self.tolerance


def replay(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    rounds: int,
    stored: pd.DataFrame,
    precision: str,
) -> Comparison:
    """Train to round `rounds`, and on to the first evaluation after training; compare with `stored`.

    Rounds are counted as in the results file, where runs without pilot sessions begin later. stored: its rows.
    precision: the one that it was trained with.
    """
    scheduler = begin(experiments, seeds, replace(settings(), precision=precision))
    runs = scheduler.runs
    last: dict[int, int] = {}  # where the comparison of a run ends, however long it has to wait for others

    def enough(run: Run) -> bool:
        if _enough(run, rounds):
            last.setdefault(id(run), _recorded(run))
        return id(run) in last

    scheduler.enough = enough
    finish(scheduler, lambda: None)
    ends = [last.get(id(run), run.state["round"]) for run in runs]
    found = [_compare(run, _rows(stored, run), end) for run, end in zip(runs, ends, strict=True)]
    deviation, where = max((d for deviations in found for d in deviations), default=(math.inf, "nothing to compare"))
    exact = all(run.env.split.dtype == torch.float64 for run in runs)
    tolerance = TOLERANCE["float64" if exact else precision]
    return Comparison(min(ends), sum(map(len, found)), deviation, where if deviation else "", tolerance)


def _enough(run: Run, rounds: int) -> bool:
    """Has the run `rounds` rounds behind it, evaluated as often as it should be, and once after training at least?"""
    history, last = run.state["history"], _recorded(run)
    evaluated = any(history[0][0] < row[0] <= last for row in history)
    return run.done or (last >= rounds and evaluated)


def _recorded(run: Run) -> int:
    """The rounds whose evaluation is in the run's history, if there was one."""
    return int(run.state["round"]) - (not run.done and run.state["pending"])


def _rows(stored: pd.DataFrame, run: Run) -> list[Row]:
    """The rows of the results file that belong to `run`."""
    mine = stored["seed"] == run.seed
    for label, value in run.experiment.labels.items():
        mine &= stored[label] == value
    rows = stored.loc[mine, ["round", "time", "metric", "key", "value"]]
    return list(rows.itertuples(index=False, name=None))


def _compare(run: Run, stored: Iterable[Row], end: int) -> list[tuple[float, str]]:
    """(deviation, what) of every row up to round `end`; a row that only one side has deviates infinitely.

    Of the last round, the run may not have recorded everything yet.
    """
    complete = math.inf if run.done or run.state["round"] > end else end
    ours, theirs = (_numbered(row for row in rows if row[0] <= end) for rows in (run.state["history"], stored))
    scale: dict[str, float] = defaultdict(lambda: 1.0)
    for (_, metric, *_), (_, value) in theirs.items():
        scale[metric] = max(scale[metric], abs(value) if math.isfinite(value) else 0.0)
    found = []
    for key in ours.keys() | {k for k in theirs if k[0] < complete}:
        what = f"{key[1]}{f' of {key[2]}' if key[2] else ''} at round {key[0]}"
        if key in ours and key in theirs:
            (time, value), (then, stored_value) = ours[key], theirs[key]
            late = _apart(time, then) > TOLERANCE["float64"] * max(1.0, abs(then))  # schedules are float64 in all runs
            deviation = math.inf if late else _apart(value, stored_value) / scale[key[1]]
            found.append((deviation, what))
        else:
            found.append((math.inf, f"{what}, {'not in the results file' if key in ours else 'not in the replay'}"))
    return found


def _numbered(rows: Iterable[Row]) -> dict[tuple[int, str, str, int], tuple[float, float]]:
    """(round, metric, key, which of several) -> (time, value)."""
    seen: Counter[tuple[int, str, str]] = Counter()
    found = {}
    for round, time, metric, key, value in rows:
        name = (int(round), metric, key)
        found[*name, seen[name]] = (time, value)
        seen[name] += 1
    return found


def _apart(ours: float, theirs: float) -> float:
    """|ours - theirs|; two missing values are equal, one is infinitely far from a number."""
    if ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
        return 0.0
    return abs(ours - theirs) if math.isfinite(ours - theirs) else math.inf
