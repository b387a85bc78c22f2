"""The training histories of an artifact: results files in, one tidy frame out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import COLUMNS, Experiment, recorded
from reproduce.errors import UserError
from reproduce.store import reading

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
    provenance: the provenance record of every file read, in the order of the files.
    experiments: the declarations that these results are of (a result of another one is never read); those without
        results, too.
    """

    frame: pd.DataFrame
    scale: str
    missing: tuple[tuple[str, str], ...] = ()
    substitutes: tuple[str, ...] = ()
    provenance: tuple[dict[str, Any], ...] = field(default=(), repr=False)
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
        values = [known[tuple(map(_spelled, row))] for row in rows.itertuples(index=False, name=None)]
        found = self.frame[labels].merge(rows.assign(_value=values), on=labels, how="left")["_value"]
        return pd.Series(found.to_numpy(), index=self.frame.index)

    def declared(self, **labels: Any) -> Experiment:
        """The first experiment with these labels."""
        return next(e for e in self.experiments if labels.items() <= dict(e.labels).items())

    def reason(self, panel: str) -> str | None:
        """Why `panel` has no results, or None if it has."""
        return next((why for name, why in self.missing if name == panel), None)


def _name(labels: Mapping[Any, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """What tells an experiment from the others in a frame with these label columns."""
    return tuple(_spelled(labels.get(c)) for c in columns)


def _spelled(label: object) -> str:
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

    experiments: those whose rows are wanted (empty: all). What differs in its labels only was trained once: the rows
    of the one serve the others. seeds: those that are wanted of a panel, by its name (one without: all).
    Raises UserError for a file that is not there, is cut short, is not a results file or lacks a column.
    """
    import pandas as pd

    wanted = tuple(experiments)
    missing = tuple(dict.fromkeys((name, reason) for name, path, reason in jobs if path is None))
    files = {path: name for name, path, _ in jobs if path is not None}
    parts = [_of_seeds(*_read(path), seeds.get(name)) for path, name in files.items()]
    frames = [frame for frame, _ in parts if len(frame)]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({c: [] for c in COLUMNS})
    records = tuple(record for _, record in parts)
    frame = _of_experiments(frame, wanted, records) if wanted and len(frame) else frame
    labels = [c for c in frame.columns if c not in COLUMNS]
    reduced = dict.fromkeys(p for r in records if (p := r.get("precision", "float32")) != "float32")
    said = [phrase for s in substitutes for phrase in s.split("; ")]  # one panel may have several, alike in many
    phrases = tuple(dict.fromkeys(filter(None, [*said, *(f"local steps in {p}" for p in reduced)])))
    return Histories(frame[[*labels, *COLUMNS]], scale, missing, phrases, records, wanted)


def stored(experiment: Experiment, records: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], int] | None:
    """The provenance that has the experiment, or one that differs in its labels only, and its place there; or None."""
    equal = None
    for record in records:
        for i, e in enumerate(record.get("experiments", ())):
            if recorded(e, experiment) or recorded(e, experiment.to_target):
                if e["labels"] == dict(experiment.labels):
                    return record, i
                equal = equal or (record, i)
    return equal


def _of_experiments(
    frame: pd.DataFrame, experiments: Sequence[Experiment], records: Sequence[dict[str, Any]]
) -> pd.DataFrame:
    """The rows of `experiments`: those trained for them, then copies of those trained for equal ones."""
    import pandas as pd

    labels = [c for c in frame.columns if c not in COLUMNS]
    run = frame.groupby(labels, dropna=False, sort=False).ngroup() if labels else pd.Series(0, index=frame.index)
    named = {_name(row, labels): i for i, row in enumerate(frame.loc[~run.duplicated(), labels].to_dict("records"))}
    own, copies = [], []
    for e in experiments:
        if (name := _name(e.labels, labels)) in named:
            own.append(named[name])
            continue
        found = stored(e, records)
        source = None if found is None else named.get(_name(found[0]["experiments"][found[1]]["labels"], labels))
        if source is not None:
            copies.append(frame[run == source].assign(**dict.fromkeys(labels) | dict(e.labels)))
    return pd.concat([frame[run.isin(own)], *copies], ignore_index=True)


def _of_seeds(
    frame: pd.DataFrame, record: dict[str, Any], wanted: Iterable[int] | None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """What was read, without the rows of seeds that are not wanted; None: all are."""
    if wanted is None or set(record.get("seeds", ())) <= set(wanted):
        return frame, record
    places = [i for i, seed in enumerate(record["seeds"]) if seed in set(wanted)]
    mine = {"seeds": [record["seeds"][i] for i in places]}
    if "cpu_seconds_of" in record:
        mine["cpu_seconds_of"] = [[row[i] for i in places] for row in record["cpu_seconds_of"]]
    return frame[frame["seed"].isin([*wanted])], {**record, **mine}


def _read(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    try:
        table, record = reading.result(path)
    except reading.Unusable as error:
        raise UserError(f"{path}: {error}; delete it and run again") from error
    return table.to_pandas(), record
