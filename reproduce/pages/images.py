"""What other test images would change in a verdict: the runs that decide it once more, judged without parts of the test
set.

No interval over seeds contains the error of a test set that all of them see. It is estimated by leaving out each of
`GROUPS` parts of the test images in turn (the delete-a-group jackknife). Both sides of a comparison are judged on the
same images, so that of a lead it is the error of paired differences.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import COLUMNS, Experiment, Panel
from reproduce.engine.cohort import Cohort
from reproduce.engine.cost import estimate_together
from reproduce.engine.requests import Evaluate, Evaluated, listed
from reproduce.engine.task import ClassificationTask
from reproduce.errors import UserError
from reproduce.pages.multiverse import seal_cells, stored
from reproduce.report import metrics, render
from reproduce.report.histories import Histories, spelled
from reproduce.runs.costs import rates
from reproduce.runs.job import begin, finish, frame
from reproduce.settings import settings
from reproduce.verdicts.checks import canon
from reproduce.verdicts.claims import claims_files
from reproduce.verdicts.images import GROUPS, Line
from reproduce.verdicts.scope import EMPIRICAL, read
from reproduce.verdicts.scoreboard import Shelf, Verdict, artifacts_read, scoreboard
from reproduce.verdicts.verdict import COUNTS, numbers

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path("results")
Values = NDArray[np.float64]
Asked = tuple[Panel, Experiment, NDArray[np.bool_]]
"""An experiment of a panel, and which cells are of it."""
Runs = list[tuple[Artifact, dict[tuple[int, ...], list[Experiment]]]]
NEAR = 2.0
"""Points from the border of what is required within which other test images may matter: the widest interval over 2,000
images that was found is 1.7 points to each side."""


def near(scale: str) -> list[Verdict]:
    """The claims on percentages that training decided, by less than `NEAR`; the nearest first."""
    found = []
    for v in scoreboard(scale):
        m, decided = v.measured, v.verdict in ("reproduced", "supported where run", "contradicted")
        if decided and v.rests_on in EMPIRICAL and m and m.unit == "percent" and m.what not in COUNTS:
            found += [v] if m.low != m.high and v.effect is not None and abs(v.effect) < NEAR else []
    return sorted(found, key=lambda v: abs(v.effect or 0))


class Watched(Cohort):
    """A cohort that also notes what every accuracy on test images is without each group of them: `less[run][row of its
    history]` [GROUPS]."""

    def __init__(self, cohort: Cohort) -> None:
        super().__init__(cohort.runs, cohort.trainer)
        self.less: list[dict[int, Values]] = [{} for _ in self.runs]
        self._asked: dict[int, list[Any]] = {}

    def _advance(self, i: int, play: Generator[Any, Any, None], answer: Any, waiting: dict[int, Any]) -> None:
        run = self.runs[i]
        asked, before = self._asked.pop(i, []), len(run.state.get("history", ()))
        super()._advance(i, play, answer, waiting)
        if i in waiting:
            self._asked[i] = listed(waiting[i][1])
        for request, answered in zip(asked, listed(answer), strict=bool(asked)):
            if isinstance(request, Evaluate) and not request.view.startswith("train"):
                self._note(i, request, answered, before)

    def _note(self, i: int, request: Evaluate, answered: Evaluated, before: int) -> None:
        """The row that this answer has become is the first without a note that holds its accuracy."""
        task, history = self.runs[i].env.task, self.runs[i].state["history"]
        assert answered.correct is not None
        assert isinstance(task, ClassificationTask)
        accuracy = float(answered.metrics["accuracy"][0])
        fits = (r for r in range(before, len(history)) if r not in self.less[i] and history[r][4] == accuracy)
        if (row := next(fits, None)) is not None:
            groups = np.random.default_rng(0).permutation(len(task.arena.test_labels)) % GROUPS
            mine = groups[task.view(request.view)]
            count = np.bincount(mine, minlength=GROUPS)
            right = np.bincount(mine, answered.correct[0], minlength=GROUPS)
            self.less[i][row] = 100 * (right.sum() - right) / (count.sum() - count)

    def frames(self) -> list[pd.DataFrame]:
        """The histories of all runs, and what they are without each of the groups."""
        whole = frame(self.runs)
        at = np.cumsum([0, *(len(run.state["history"]) for run in self.runs)])
        values = np.repeat(whole["value"].to_numpy()[:, None], GROUPS, axis=1)
        for start, less in zip(at, self.less, strict=False):
            for row, without in less.items():
                values[start + row] = without
        return [whole, *(whole.assign(value=column) for column in values.T)]


def watched(experiments: Sequence[Experiment], seeds: Sequence[int]) -> Watched:
    """These runs at their ends."""
    cohort = Watched(begin(experiments, seeds, settings()))
    finish(cohort)
    return cohort


def variances(whole: Values, less: Values) -> tuple[float, float, float]:
    """Variance of the mean of numbers [seed] that are `less` [seed, group] without a group: as seeds vary, as the test
    images do, and as both do (seeds and groups are crossed: what they have in common is counted once)."""
    seeds, groups = less.shape
    values = groups * whole[:, None] - (groups - 1) * less  # the jackknife's pseudo-values
    rows, columns = values.mean(1), values.mean(0)
    rest = values - rows[:, None] - columns + values.mean()
    shared = (rest**2).sum() / ((seeds - 1) * (groups - 1) * seeds * groups)
    a, b = float(rows.var(ddof=1) / seeds), float(columns.var(ddof=1) / groups)
    return a, b, max(a, b, a + b - float(shared))


def added(whole: Values, less: Values) -> float:
    """The standard error that test images add to that of a mean over seeds."""
    over_seeds, _, both = variances(whole, less)
    return math.sqrt(max(0.0, both - over_seeds))


def of_median(less: Values) -> float:
    """The standard error over test images of a median of seeds: the jackknife's of the median itself."""
    medians = np.median(less, axis=0)
    return float(np.sqrt((len(medians) - 1) * medians.var()))


class Decided:
    """The number that decides a claim, and the runs that it is made of."""

    def __init__(self, v: Verdict, scale: str) -> None:
        self.scale = scale
        self.file = next(f for f in claims_files() if f.paper == v.paper)
        self.claim = next(c for c in self.file.claims if c.id == v.id)
        assert v.measured
        self.measured = v.measured
        part = Shelf(self.file, RESULTS / scale / "cells").deciding(self.claim, scale, v.measured)
        if part is None:
            raise UserError(f"{v.id}: no part of it has the number that decides")
        self.part = part
        self.runs = self._runs()

    def cells(self, results: Path) -> pd.DataFrame:
        """What the number is made of, from the cells in a folder."""
        found, reason = Shelf(self.file, results / self.scale / "cells").cells(self.claim, self.part, printed=False)
        if found is None:
            raise UserError(f"{self.claim.id}: {reason}")
        return found

    def numbers(self, cells: pd.DataFrame) -> pd.DataFrame:
        """The deciding number by seed: columns low and high."""
        return numbers(self.part, cells, self.file.metrics, self.measured.setting)

    def _runs(self) -> Runs:
        """By artifact, the experiments without whose cells the number would be another, by the seeds of their panels.

        UserError if none is found.
        """
        cells, found = self.cells(RESULTS), []
        for artifact in artifacts_read(self.claim, self.part):
            asked = _owned(cells, read(self.part, [artifact], self.scale))
            those: dict[tuple[int, ...], list[Experiment]] = {}
            for panel, e, _ in self._deciding(cells, [each for each in asked if each[-1].any()]):
                those.setdefault(panel.seeds, []).append(e)
            found += [(artifact, those)] if those else []
        if not found:
            raise UserError(f"{self.claim.id}: no experiment's cells are in the number that decides")
        return found

    def _deciding(self, cells: pd.DataFrame, asked: Sequence[Asked]) -> Sequence[Asked]:
        """Those that change the number when their cells move, up or down, each by another amount; found by halves."""
        moves = np.linspace(1, 2, len(cells)) * np.logical_or.reduce([mine for *_, mine in asked])
        number, half = self.numbers(cells), len(asked) // 2
        moved = (self.numbers(cells.assign(low=cells["low"] + m, high=cells["high"] + m)) for m in (moves, -moves))
        if not asked or all(other.equals(number) for other in moved):
            return []
        return asked if not half else [*self._deciding(cells, asked[:half]), *self._deciding(cells, asked[half:])]

    @property
    def seconds(self) -> float:
        """Estimate of what `line` takes on one core."""
        each = (pair for _, cohorts in self.runs for pair in cohorts.items())
        return sum(estimate_together(experiments, seeds, rates()).seconds for seeds, experiments in each)

    def line(self) -> Line:
        """The error of its test images, by training its runs again; UserError where that cannot be known."""
        with tempfile.TemporaryDirectory() as folder:
            for artifact, each in self.runs:
                cohorts = [watched(experiments, seeds).frames() for seeds, experiments in each.items()]
                whole = stored(artifact, self.scale)
                for n, frames in enumerate(zip(*cohorts, strict=True)):
                    cells = metrics.cells(artifact, _with(whole, frames))
                    seal_cells(Path(folder, str(n), self.scale, "cells"), artifact, render.check(artifact, cells))
            found = [self._judged(Path(folder, str(n))) for n in range(GROUPS + 1)]
        values = np.stack([f.to_numpy(float) for f in found])  # [1 + GROUPS, seed, end]
        if not (np.isfinite(values).all() and (values[..., 0] == values[..., 1]).all()):
            raise UserError(f"{self.claim.id}: a run diverged or did not reach its target")
        of_mean = math.isclose(self.numbers(self.cells(RESULTS))["low"].mean(), self.measured.value)
        error = added(values[0, :, 0], values[1:, :, 0].T) if of_mean else of_median(values[1:, :, 0].T)
        return Line(self.claim.id, self.measured.setting, self.measured.n, error)

    def _judged(self, results: Path) -> pd.DataFrame:
        """The number by seed from cells in a folder; artifacts that were not trained again are as they are."""
        here = results / self.scale / "cells"
        for file in (RESULTS / self.scale / "cells").glob(f"{self.file.paper}_*"):
            if not (here / file.name).exists():
                (here / file.name).symlink_to(file.resolve())
        return self.numbers(self.cells(results))


def _owned(cells: pd.DataFrame, asked: Sequence[tuple[Panel, Experiment]]) -> list[Asked]:
    """Which cells are of each experiment, by its labels. A column in which cells have other names does not count."""
    named = {c: {canon(e.labels[c]) for _, e in asked if c in e.labels} & {*cells[c]} for c in map(str, cells)}
    return [
        (panel, e, np.logical_and.reduce([cells[c] == canon(e.labels[c]) for c in e.labels if named.get(c)]))
        for panel, e in asked
    ]


def _with(whole: Histories, frames: Sequence[pd.DataFrame]) -> Histories:
    """Stored curves with those of other runs in the place of their own."""
    import pandas as pd

    labels = [c for c in whole.frame.columns if c not in COLUMNS]
    keys = [[tuple(map(spelled, row)) for row in f.reindex(columns=labels).itertuples(index=False)] for f in frames]
    new = {key for each in keys for key in each}
    old = [tuple(map(spelled, row)) for row in whole.frame[labels].itertuples(index=False)]
    kept = whole.frame[[key not in new for key in old]]
    return replace(whole, frame=pd.concat([kept, *frames], ignore_index=True)[[*labels, *COLUMNS]])
