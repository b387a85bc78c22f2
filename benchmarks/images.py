"""What the test set adds to the error of a lead: runs once more, judged without each twentieth of the test images."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from reproduce.declare.experiment import Experiment
from reproduce.engine.cohort import Cohort
from reproduce.engine.requests import Evaluate, Evaluated, listed
from reproduce.errors import UserError
from reproduce.report import metrics
from reproduce.report.histories import Histories
from reproduce.runs import plan
from reproduce.runs.job import begin, finish, frame
from reproduce.settings import settings
from reproduce.verdicts.scoreboard import scoreboard

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]
GROUPS = 20
"""Parts of the test set, drawn at random; each is left out once (the delete-a-group jackknife)."""
SESSIONS = {"algorithm": "fedavg", "metric": "accuracy_after_transition_pct"}
LEADS = (
    ("fedacs/fig9", "fashion-mnist-static", "fedacs", "fedavg", {"metric": "final_accuracy"}),
    ("fedagrac/fig3", "fig3-cnn2-async", "fedagrac", "fedagrac_avg", {"metric": "last10"}),
    ("dynamic_init/table3", "fashion-mnist-n10-o00-a03", "proposed", "average", SESSIONS),
    ("dynamic_init/table1", "cifar10-n10-o00-a03", "proposed", "average", SESSIONS),
    ("fiarse/table1", "four-fashion-mnist", "fiarse", "heterofl", {"eval_scope": "global"}),
)
"""Artifact, job, what is ahead of what, and which of the job's cells: at reduced scale, of 2,000 test images;
sessions on Fashion-MNIST look at half of 10,000."""
DECIDED = ("reproduced", "supported where run", "contradicted")


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
        assert answered.correct is not None
        task, history = self.runs[i].env.task, self.runs[i].state["history"]
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
            for row, numbers in less.items():
                values[start + row] = numbers
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


def images() -> None:
    """Half widths of the 95 % intervals of leads in points, as seeds vary, as test images do, and as both do."""
    print(f"| lead | seeds | points | over seeds | over images | over both | over images, unpaired |\n|{' --- |' * 7}")
    widest = 0.0
    for artifact, job, a, b, where in LEADS:
        for setting, ours, theirs in pairs(artifact, job, a, b, where):
            lead, n = ours - theirs, ours.shape[1]
            seeds, paired, both = variances(lead[0], lead[1:].T)
            if not paired > 0:
                raise UserError(
                    f"{artifact}, {setting}{a} minus {b}: a run diverged, or no test image is in these cells"
                )
            unpaired = sum(variances(alone[0], alone[1:].T)[1] for alone in (ours, theirs))
            over_seeds, over_images = (stats.t.ppf(0.975, df) for df in (n - 1, GROUPS - 1))
            widths = [
                t * v**0.5 for t, v in zip((over_seeds, over_images) * 2, (seeds, paired, both, unpaired), strict=True)
            ]
            widest = max(widest, widths[1])
            name = f"{artifact}, {setting}{a} minus {b}"
            print(f"| {name} | {n} | {lead[0].mean():.2f} | {' | '.join(f'{w:.2f}' for w in widths)} |", flush=True)
    judged = [v for v in scoreboard("reduced") if v.verdict in DECIDED and v.measured and v.measured.unit == "percent"]
    near = [
        f"{v.id}: {v.verdict}, {abs(v.effect):.2f}" for v in judged if v.effect is not None and abs(v.effect) < widest
    ]
    print(
        f"\n{len(near)} of {len(judged)} decided claims on accuracy are less than {widest:.2f} points, the widest over "
    )
    print("images, from the border of what they state:", *near, sep="\n")


def pairs(artifact: str, job: str, a: str, b: str, where: Mapping[str, str]) -> Iterator[tuple[str, Values, Values]]:
    """Of every setting of the job: what tells it from the others, and the cells of a and of b [1 + GROUPS, seed]."""
    made, found = plan.artifact(artifact), plan.job("reduced", artifact.split("/")[0], job)
    column = next(c for e in found.experiments for c, v in e.labels.items() if v == a)
    chosen = [e for e in found.experiments if e.labels[column] in (a, b)]
    chosen = [e for e in chosen if all(e.labels.get(c, v) == v for c, v in where.items())]
    tables = []
    for histories in watched(chosen, found.panel.seeds).frames():
        cells = metrics.cells(made, Histories(histories, "reduced", experiments=tuple(chosen)))
        tables.append(cells[(cells[list(where)] == list(where.values())).all(axis=1)])
    keys = [c for c in tables[0] if c not in (column, "seed", "value", "censored") and tables[0][c].nunique() > 1]
    for name in dict.fromkeys(tables[0][keys].itertuples(index=False, name=None)):
        each = [
            t[(t[keys] == list(name)).all(axis=1)].pivot(index="seed", columns=column, values="value") for t in tables
        ]
        said = "".join(f"{k} {v}, " for k, v in zip(keys, name, strict=True))
        yield said, np.stack([t[a] for t in each]), np.stack([t[b] for t in each])
