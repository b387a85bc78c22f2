"""Replays of a finished job: its first rounds run once more, and their numbers are compared with the stored ones.

The runs are trained as ever and simply not asked for more, so that nothing in them knows of the end. Quadratics and
schedules are float64 and agree to rounding (on one machine to the bit). Networks are float32: another order of sums
changes the last bits, and training carries such a difference on and lets it grow. So only few rounds are compared,
within `TOLERANCE`. Where they deviate by more, the replay is run once more from a start that is moved by rounding
(`moved`). From the round on where that shows in a run, `FACTOR` times what it does there (`noise`) counts as agreement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from reproduce import store
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit
from reproduce.engine.scheduler import Run
from reproduce.runs import results
from reproduce.runs.job import begin, finish, frame
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.text import counted

TOLERANCE = {"float64": 1e-9, "float32": 0.01, "tf32": 0.02, "bfloat16": 0.02}
"""Largest deviation that counts as agreement, relative to the largest number of the metric or to 1: one point of
accuracy in float32, where the deviations found on one machine (`results/<scale>/replay.csv`) are mostly below 1e-6."""
SIZE = 1e-6
"""The relative move of a start: about what the roundings of a hundred steps, each of 1e-7, add up to."""
FACTOR = 10.0
"""Multiple of one moved run's deviation that another processor's may have. Both are draws of a noise that grows
exponentially; the rounds before it shows are the test."""


@dataclass(frozen=True)
class Comparison:
    """The result of a replay. rounds: up to there all runs were compared; rows: numbers compared; deviation: of the
    number that exceeds most what is allowed.

    where: which number that is, "" if none deviates. noise: what a moved start does to that run, 0 before it shows, NaN
    if none was needed. agrees: is each deviation within the tolerance, or within `FACTOR` times the noise?
    """

    rounds: int
    rows: int
    deviation: float
    where: str
    tolerance: float
    noise: float = math.nan

    @property
    def agrees(self) -> bool:
        return self.deviation <= max(self.tolerance, FACTOR * self.noise)


def replay(
    experiments: Sequence[Experiment], seeds: Sequence[int], rounds: int, stored: pd.DataFrame, precision: str
) -> Comparison:
    """Train to round `rounds`, and on to the first evaluation after training; compare with `stored`.

    Rounds are counted as in the results file, where runs without pilot sessions begin later. stored: its rows.
    precision: the one that it was trained with.
    """
    runs, ends = _trained(experiments, seeds, rounds, precision)
    compared = [_compare(run, stored, end).assign(noise=math.nan) for run, end in zip(runs, ends, strict=True)]
    exact = all(run.env.split.dtype == torch.float64 for run in runs)
    tolerance = TOLERANCE["float64" if exact else precision]
    if not exact and any((rows["deviation"] > tolerance).any() for rows in compared):
        with moved():
            repeated = frame(_trained(experiments, seeds, rounds, precision)[0])
        for run, end, rows in zip(runs, ends, compared, strict=True):
            noise = _noise(_compare(run, repeated, end), tolerance)
            rows["noise"] = noise.reindex(rows["round"], method="ffill").to_numpy()
    rows = pd.concat(compared)
    if rows.empty:
        return Comparison(min(ends), 0, math.inf, "nothing to compare", tolerance)
    allowed = (FACTOR * rows["noise"]).clip(lower=tolerance).fillna(tolerance)
    worst = rows.iloc[(rows["deviation"] / allowed).argmax()]
    where = worst["what"] if worst["deviation"] else ""
    return Comparison(min(ends), len(rows), worst["deviation"], where, tolerance, worst["noise"])


def _trained(
    experiments: Sequence[Experiment], seeds: Sequence[int], rounds: int, precision: str
) -> tuple[Sequence[Run], list[int]]:
    """The runs, trained for `rounds` rounds or a little more, and where the comparison of each ends."""
    scheduler = begin(experiments, seeds, replace(settings(), precision=precision))
    runs = scheduler.runs
    last: dict[int, int] = {}  # where the comparison of a run ends, however long it has to wait for others

    def enough(run: Run) -> bool:
        if _enough(run, rounds):
            last.setdefault(id(run), _recorded(run))
        return id(run) in last

    scheduler.enough = enough
    finish(scheduler, lambda: None)
    return runs, [last.get(id(run), run.state["round"]) for run in runs]


@contextmanager
def moved(size: float = SIZE) -> Iterator[None]:
    """Runs begun in here start from initial models that are moved by a relative `size`, as rounding moves them."""
    initial = ClassificationSplit.initial

    def other(self: ClassificationSplit, *key: int | str) -> Tensor:
        x, stream = initial(self, *key), torch.Generator().manual_seed(0)
        return x * (1 + size * torch.randn(x.shape, generator=stream).to(x))

    with patch.object(ClassificationSplit, "initial", other):
        yield


def _noise(rows: pd.DataFrame, tolerance: float) -> pd.Series[float]:
    """Of the rows of a run beside its moved one: round -> the largest finite deviation in any row, and 0 as long as
    none is above a tenth of the tolerance."""
    largest = rows["deviation"].where(np.isfinite(rows["deviation"]), 0.0).groupby(rows["round"]).max()
    return (largest.cummax() > tolerance / 10) * largest.max()


def _enough(run: Run, rounds: int) -> bool:
    """Tells whether the run has `rounds` rounds behind it, evaluated as declared, and at least once after training."""
    history, last = run.state["history"], _recorded(run)
    evaluated = any(history[0][0] < row[0] <= last for row in history)
    return run.done or (last >= rounds and evaluated)


def _recorded(run: Run) -> int:
    """The rounds whose evaluation is in the run's history, if there was one."""
    return int(run.state["round"]) - (not run.done and run.state["pending"])


NAMES = ["round", "metric", "key", "which"]
COLUMNS = ["round", "time", "metric", "key", "value"]


def _rows(rows: pd.DataFrame, end: float) -> pd.DataFrame:
    """The rows up to round `end`; `which` numbers those of equal names."""
    selected = rows[rows["round"] <= end].reset_index(drop=True)
    return selected.assign(which=selected.groupby(NAMES[:-1]).cumcount())


def _compare(run: Run, stored: pd.DataFrame, end: int) -> pd.DataFrame:
    """`_beside` of the rows up to round `end`, of which the run may not have recorded everything yet."""
    mask = stored["seed"] == run.seed
    for label, value in run.experiment.labels.items():
        mask &= stored[label] == value
    both = _beside(pd.DataFrame(run.state["history"], columns=COLUMNS), stored[mask], end)
    if not run.done and run.state["round"] <= end:
        both = both[(both["where"] != "right_only") | (both["round"] < end)]
    return both


def _beside(ours: pd.DataFrame, stored: pd.DataFrame, end: float = math.inf) -> pd.DataFrame:
    """Every row of a run up to round `end`, on both sides, with its `deviation` and `what` it is; a row that only one
    side has deviates infinitely."""
    run_rows, stored_rows = _rows(ours[COLUMNS], end), _rows(stored[COLUMNS], end)
    both = run_rows.merge(stored_rows, how="outer", on=NAMES, suffixes=("", "_stored"), indicator="where")
    sizes = stored_rows["value"].abs().where(np.isfinite(stored_rows["value"])).groupby(stored_rows["metric"]).max()
    scale = both["metric"].map(sizes).fillna(1.0).clip(lower=1.0)
    # Schedules are float64 in all runs.
    late = _gap(both["time"], both["time_stored"]) > TOLERANCE["float64"] * both["time_stored"].abs().clip(lower=1.0)
    deviation = (_gap(both["value"], both["value_stored"]) / scale).mask(late | (both["where"] != "both"), math.inf)
    lacking = {"left_only": ", not in the results file", "right_only": ", not in the replay", "both": ""}
    what = [
        f"{row['metric']}{' of ' * bool(row['key'])}{row['key']} at round {row['round']}{lacking[row['where']]}"
        for row in both.to_dict("records")
    ]
    return both.assign(deviation=deviation, what=what)


def beside(job: Job, file: Path) -> str:
    """A file that was trained of a job beside the job's results file, in a line: how many numbers, how far they are
    apart, the tolerance, and whether, or to which round, they agree."""
    stored, (ours, runs), path = results.standing(job).stored, store.read(file), Path(job.output)
    pairs = [(run, old) for run in runs for old in stored if old.name == run.name]
    if not pairs:
        return f"{file}: {path} has nothing to compare it with"
    theirs = store.read(path)[0]
    rows = pd.concat(
        [
            _beside(ours.iloc[run.start : run.start + run.rows], theirs.iloc[old.start : old.start + old.rows])
            for run, old in pairs
        ]
    )
    tolerance = TOLERANCE[stored[0].precision if any(e.problem.model for e in job.experiments) else "float64"]
    deviating, most = rows[rows["deviation"] > tolerance], rows.iloc[rows["deviation"].argmax()]
    same = rows.loc[rows["round"] < deviating["round"].min(), "round"]
    agree = f"agrees to round {same.max()}, then differs" if len(same) else "differs from the beginning"
    outcome = f"{agree}, most in {most['what']}" if len(deviating) else "agrees"
    numbers = f"{len(rows):,} numbers of {counted(len(pairs), 'run')}"
    return f"{file} beside {path}: {numbers}, {most['deviation']:.2g} apart (tolerance {tolerance:g}): {outcome}"


def _gap(ours: pd.Series[float], theirs: pd.Series[float]) -> pd.Series[float]:
    """|ours - theirs|; two missing values are equal, one is infinitely far from a number."""
    distance = (ours - theirs).abs()
    return distance.where(np.isfinite(distance), math.inf).mask((ours == theirs) | (ours.isna() & theirs.isna()), 0.0)
