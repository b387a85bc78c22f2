"""The training histories of an artifact: results files in, one tidy frame out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import COLUMNS, Experiment, recorded
from reproduce.store import results as store
from reproduce.store.reading import Stored

if TYPE_CHECKING:
    import pandas as pd

NOTHING: Mapping[str, Iterable[int]] = MappingProxyType({})
# (panel name, results file or None, why there is no file); a panel with several files appears several times.
Job = tuple[str, Path | None, str]


@dataclass(frozen=True)
class Histories:
    """What an artifact reads.

    frame: rows of all panels, columns = label columns + `COLUMNS`; empty (but with `COLUMNS`) if nothing was trained.
    missing: (panel name, reason) of the panels, or parts of panels, that have no results file.
    substitutes: one phrase per setting that stands in for the paper's, the arithmetic of the results included.
    runs: what was read, in the order of the files; one that serves two experiments twice.
    experiments: the declarations that these results are of (a run of another one is never read); those without results,
        too.
    """

    frame: pd.DataFrame
    scale: str
    missing: tuple[tuple[str, str], ...] = ()
    substitutes: tuple[str, ...] = ()
    runs: tuple[Stored, ...] = field(default=(), repr=False)
    experiments: tuple[Experiment, ...] = field(default=(), repr=False)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that occur, ascending."""
        return tuple(sorted(int(s) for s in self.frame["seed"].unique()))

    @property
    def seeds_each(self) -> tuple[int, int]:
        """The fewest and the most seeds that an experiment has; zeros if nothing was trained."""
        labels = [c for c in self.frame.columns if c not in COLUMNS]
        if self.frame.empty or not labels:
            return len(self.seeds), len(self.seeds)
        counts = self.frame.groupby(labels, dropna=False, sort=False)["seed"].nunique()
        return int(counts.min()), int(counts.max())

    def of(self, what: str) -> pd.Series[Any]:
        """An attribute of the experiment of every row, such as "clock.rounds", as a column beside `frame`."""
        import pandas as pd

        labels = [c for c in self.frame.columns if c not in COLUMNS]
        known = {_name(e.labels, labels): attrgetter(what)(e) for e in self.experiments}
        rows = self.frame[labels].drop_duplicates()
        values = [known[tuple(map(spelled, row))] for row in rows.itertuples(index=False, name=None)]
        found = self.frame[labels].merge(rows.assign(_value=values), on=labels, how="left")["_value"]
        return pd.Series(found.to_numpy(), index=self.frame.index)

    def declared(self, **labels: Any) -> Experiment:
        """The first experiment with these labels."""
        return next(e for e in self.experiments if labels.items() <= dict(e.labels).items())

    def runs_of(self, e: Experiment) -> list[Stored]:
        """The runs whose numbers an experiment has."""
        return [run for run in self.runs if run.labels == dict(e.labels)] or _equal(self.runs, e)

    def reason(self, panel: str) -> str | None:
        """Why `panel` has no results, or None if it has."""
        return next((why for name, why in self.missing if name == panel), None)


def _name(labels: Mapping[Any, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """What tells an experiment from the others in a frame with these label columns."""
    return tuple(spelled(labels.get(c)) for c in columns)


def spelled(label: object) -> str:
    """A label as text; "" for one that an experiment does not have, which makes floats of whole numbers beside it."""
    if label is None or label != label:
        return ""
    return format(label, ".10g") if isinstance(label, float) else str(label)


def load(
    jobs: Sequence[Job],
    scale: str,
    substitutes: Iterable[str] = (),
    experiments: Iterable[Experiment] = (),
    seeds: Mapping[str, Iterable[int]] = NOTHING,
) -> Histories:
    """Read the results files of `jobs`; jobs without a file end in `Histories.missing`.

    experiments: those whose runs are wanted (empty: all). What differs in its labels only was trained once: the rows
    of the one serve the others. seeds: those that are wanted of a panel, by its name (one without: all).
    Raises UserError for a file that is not there, is cut short, or is not a results file.
    """
    import pandas as pd

    wanted = tuple(experiments)
    missing = tuple(dict.fromkeys((name, reason) for name, path, reason in jobs if path is None))
    found: list[tuple[pd.DataFrame, list[Stored]]] = []
    for path, panel in {path: name for name, path, _ in jobs if path is not None}.items():
        frame, runs = store.read(path)
        asked = {*seeds[panel]} if panel in seeds else {run.seed for run in runs}
        found.append((frame, [run for run in runs if run.seed in asked]))
    named = defaultdict[Any, list[Experiment]](list)
    for e in wanted:
        named[tuple(sorted(e.labels.items()))].append(e)
    mine = [
        (frame, [run for run in runs if not wanted or any(_declares(run, e) for e in named[run.name[:-1]])])
        for frame, runs in found
    ]
    used = [run for _, runs in mine for run in runs]
    parts = [_rows(*each) for each in mine]
    labels = list(dict.fromkeys(c for frame in parts for c in frame.columns if c not in COLUMNS))
    have = {run.name[:-1] for run in used}
    for e in (e for name, same in named.items() if name not in have for e in same):
        if copied := next(((frame, same) for frame, runs in found if (same := _equal(runs, e))), None):
            used += copied[1]
            parts.append(_rows(*copied).assign(**dict.fromkeys(labels) | dict(e.labels)))
    frames = [frame for frame in parts if len(frame)]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({c: [] for c in COLUMNS})
    labels = [c for c in frame.columns if c not in COLUMNS]
    reduced = dict.fromkeys(p for run in used if (p := run.training.get("precision", "float32")) != "float32")
    said = [phrase for s in substitutes for phrase in s.split("; ")]  # one panel may have several, alike in many
    phrases = tuple(dict.fromkeys(filter(None, [*said, *(f"local steps in {p}" for p in reduced)])))
    return Histories(frame[[*labels, *COLUMNS]], scale, missing, phrases, tuple(used), wanted)


def _rows(frame: pd.DataFrame, runs: Sequence[Stored]) -> pd.DataFrame:
    """The rows of some runs of a results file."""
    import numpy as np

    places = [np.arange(run.start, run.start + run.rows) for run in runs]
    return frame.take(np.concatenate(places) if places else np.arange(0))


def _declares(run: Stored, e: Experiment) -> bool:
    """Was the run declared as the experiment, or as it would be to its target?"""
    return recorded(run.experiment, e) or recorded(run.experiment, e.to_target)


def _equal(runs: Sequence[Stored], e: Experiment) -> list[Stored]:
    """The runs of an experiment that differs from this one in its labels only, if there is one."""
    first = next((run.labels for run in runs if _declares(run, e)), None)
    return [run for run in runs if run.labels == first and _declares(run, e)]
