"""The training histories of an artifact: results files in, one tidy frame out."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduce import store
from reproduce.declare.experiment import COLUMNS, Experiment, declares
from reproduce.errors import UserError
from reproduce.report.names import canonical
from reproduce.settings import settings
from reproduce.store import Stored

if TYPE_CHECKING:
    import pandas as pd

NOTHING: Mapping[str, Iterable[int]] = MappingProxyType({})


class Source(NamedTuple):
    """A results file of a panel, which may have several. without: what is said where it has not a run of each of the
    `needed` experiments; "": there must be one."""

    panel: str
    file: Path
    without: str = ""
    needed: tuple[Experiment, ...] = ()


@dataclass(frozen=True)
class Histories:
    """The runs that an artifact reads.

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
        labels = label_columns(self.frame)
        if self.frame.empty or not labels:
            return len(self.seeds), len(self.seeds)
        counts = self.frame.groupby(labels, dropna=False, sort=False)["seed"].nunique()
        return int(counts.min()), int(counts.max())

    def of(self, what: str) -> pd.Series[Any]:
        """An attribute of the experiment of every row, such as "clock.rounds", as a column beside `frame`."""
        import pandas as pd

        labels = label_columns(self.frame)
        known = {_name(e.labels, labels): attrgetter(what)(e) for e in self.experiments}
        rows = self.frame[labels].drop_duplicates()
        values = [known[tuple(map(canonical, row))] for row in rows.itertuples(index=False, name=None)]
        column = self.frame[labels].merge(rows.assign(_value=values), on=labels, how="left")["_value"]
        return pd.Series(column.to_numpy(), index=self.frame.index)

    def declared(self, **labels: Any) -> Experiment:
        """The first experiment with these labels."""
        return next(e for e in self.experiments if labels.items() <= dict(e.labels).items())

    def runs_of(self, e: Experiment) -> list[Stored]:
        """The runs whose numbers an experiment has."""
        return [run for run in self.runs if run.labels == dict(e.labels)] or _equal(self.runs, e)


def label_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of `frame` that tell experiments apart."""
    return [c for c in frame.columns if c not in COLUMNS]


def _name(labels: Mapping[Any, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """The key of an experiment in a frame with these label columns."""
    return tuple(canonical(labels.get(c)) for c in columns)


def load(
    sources: Iterable[Source],
    scale: str,
    substitutes: Iterable[str] = (),
    experiments: Iterable[Experiment] = (),
    seeds: Mapping[str, Iterable[int]] = NOTHING,
) -> Histories:
    """Read the results files `sources`; those without the runs that are needed end in `Histories.missing`.

    experiments: those whose runs are wanted (empty: all). What differs in its labels only was trained once: the rows
    of the one serve the others. seeds: those that are wanted of a panel, by its name (one without: all).
    Raises UserError for a file that is not there, is cut short, or is not a results file.
    """
    import pandas as pd

    needed = tuple(experiments)
    missing, loaded = list[tuple[str, str]](), list[tuple[pd.DataFrame, list[Stored]]]()
    for source in {source.file: source for source in sources}.values():
        frame, runs = _table_and_runs(source, seeds)
        if source.without and not (
            runs and all(any(declares(run.experiment, e) for run in runs) for e in source.needed)
        ):
            missing.append((source.panel, source.without))
        else:
            loaded.append((frame, runs))
    named = defaultdict[Any, list[Experiment]](list)
    for e in needed:
        named[tuple(sorted(e.labels.items()))].append(e)
    selected = [
        (frame, [run for run in runs if not needed or any(declares(run.experiment, e) for e in named[run.name[:-1]])])
        for frame, runs in loaded
    ]
    used = [run for _, runs in selected for run in runs]
    parts = [_rows(*each) for each in selected]
    labels = list(dict.fromkeys(c for frame in parts for c in label_columns(frame)))
    have = {run.name[:-1] for run in used}
    for e in (e for name, same in named.items() if name not in have for e in same):
        if copied := next(((frame, same) for frame, runs in loaded if (same := _equal(runs, e))), None):
            used += copied[1]
            parts.append(_rows(*copied).assign(**dict.fromkeys(labels) | dict(e.labels)))
    frames = [frame for frame in parts if len(frame)]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({c: [] for c in COLUMNS})
    reduced = dict.fromkeys(p for run in used if (p := run.training.get("precision", "float32")) != "float32")
    notes = [phrase for s in substitutes for phrase in s.split("; ")]  # one panel may have several, alike in many
    notes += [
        *(f"local steps in {p}" for p in reduced),
        _splits([e for n, es in named.items() if n in have for e in es]),
    ]
    phrases = tuple(dict.fromkeys(filter(None, notes)))
    gaps = tuple(dict.fromkeys(missing))
    return Histories(frame[[*label_columns(frame), *COLUMNS]], scale, gaps, phrases, tuple(used), needed)


def one_split(e: Experiment) -> bool:
    """Tells whether all seeds have one data partition, so that intervals over them say nothing of others."""
    partition = getattr(e.problem, "partition", None)
    return (getattr(partition, "data_seed", None), getattr(e.problem, "partition_seed", None)) != (None, None)


def _splits(run: Sequence[Experiment]) -> str:
    """The remark on them; "" if all have a partition per seed."""
    many = sum(map(one_split, run))
    return f"one split of the data{f' in {many} of {len(run)} settings' * (many < len(run))}" if many else ""


def _table_and_runs(source: Source, seeds: Mapping[str, Iterable[int]]) -> tuple[pd.DataFrame, list[Stored]]:
    """Returns the whole table of a results file, and its runs of the wanted seeds and precision. seeds: panel name ->
    seeds; a panel without entry has all. Precision is `settings().precision_asked`, None for any. For an unusable file:
    UserError, or both empty if `source.without` is set."""
    import pandas as pd

    try:
        table, runs = store.result(source.file)
    except store.Unusable as error:
        if not source.without:
            raise UserError(f"{source.file}: {error}; delete it, and train again") from error
        if os.path.lexists(source.file):
            store.say(source.file, error)
        return pd.DataFrame(), []
    precision = settings().precision_asked
    needed = {*seeds[source.panel]} if source.panel in seeds else {run.seed for run in runs}
    selected = [run for run in runs if run.seed in needed and precision in (None, run.precision)]
    return table.to_pandas(), selected


def _rows(frame: pd.DataFrame, runs: Sequence[Stored]) -> pd.DataFrame:
    """The rows of some runs of a results file."""
    places = [np.arange(run.start, run.start + run.rows) for run in runs]
    return frame.take(np.concatenate(places) if places else np.arange(0))


def _equal(runs: Sequence[Stored], e: Experiment) -> list[Stored]:
    """The runs of an experiment that differs from this one in its labels only, if there is one."""
    first = next((run.labels for run in runs if declares(run.experiment, e)), None)
    return [run for run in runs if run.labels == first and declares(run.experiment, e)]
