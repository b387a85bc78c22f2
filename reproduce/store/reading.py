"""Results files and cells as they are read: whole, sealed, and of the form that is written.

Whoever reads one reads it here, since a file may be cut, changed by hand, of an older program or of another one. What
does not fit is refused in one line, and whoever asked goes on without it.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import COLUMNS, PARTS, Label
from reproduce.errors import say_once
from reproduce.store import seal

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BROKEN = "not a complete results file"


class Unusable(Exception):
    """A file that is not what it should be; the message says why, in a line without its name."""


@dataclass(frozen=True, eq=False)
class Stored:
    """One run of a results file: an experiment as it was declared, with one seed, and where its numbers come from.

    training: what is said of the training that it was part of (commit, date, machine, ...). code: digest of the source
    that gave its numbers. rows: how many it has, from row `start` on. seconds: of the processor, that it took; samples:
    that it was trained on; both None where nothing says so.
    """

    experiment: Mapping[str, Any]
    seed: int
    training: Mapping[str, Any]
    code: str
    rows: int
    seconds: float | None = None
    samples: float | None = None
    start: int = 0

    @property
    def labels(self) -> Mapping[str, Label]:
        labels: Mapping[str, Label] = self.experiment["labels"]
        return labels

    @property
    def name(self) -> tuple[Any, ...]:
        """What tells it from the other runs of its file: its labels and its seed."""
        return *sorted(self.labels.items()), self.seed

    @property
    def precision(self) -> str:
        """The arithmetic that it was configured with; runs from before it was recorded are of float32."""
        return str(self.training.get("configured_precision", self.training.get("precision", "float32")))


def result(path: Path) -> tuple[pa.Table, tuple[Stored, ...]]:
    """The rows of a results file and its runs, in the order of the rows; Unusable for what is none, or holds other
    numbers than it says."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if not path.is_file():
            raise Unusable("not a file" if os.path.lexists(path) else "no such results file; train it first")
        with parquet.ParquetFile(path) as file:
            table = file.read(use_threads=False)
        note = json.loads((table.schema.metadata or {}).get(b"provenance", b"null"))
        if not isinstance(note, dict) or not seal.kept(table):
            raise Unusable(f"{BROKEN}: its provenance is not what was written")
        if note.get("content") != seal.of_table(table):
            raise Unusable(f"{BROKEN}: it holds other numbers than were written")
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        # A process killed while copying, or a full disk, leaves half a file; nothing in it can be trusted.
        raise Unusable(BROKEN) from error
    runs = _runs(note)
    if why := _disagrees(table, runs):
        raise Unusable(why)
    return table, runs


def _runs(note: Mapping[str, Any]) -> tuple[Stored, ...]:
    """The runs that a provenance lists, with what it says of their experiments and trainings."""
    try:
        starts = accumulate((run["rows"] for run in note["runs"]), initial=0)
        parts, trainings = note["parts"], note["trainings"]
        experiments = [{**e, **{name: parts[e[name]] for name in PARTS}} for e in note["experiments"]]
        return tuple(
            Stored(
                **run | {"experiment": experiments[run["experiment"]], "training": trainings[run["training"]]}, start=at
            )
            for run, at in zip(note["runs"], starts, strict=False)
        )
    except (LookupError, TypeError):
        raise Unusable("its provenance is of another version of this package") from None


def _disagrees(table: pa.Table, runs: Sequence[Stored]) -> str:
    """Where rows and runs do not go together; "" if they do."""
    lacking = {*COLUMNS, *(name for run in runs for name in run.labels)} - {*table.column_names}
    if lacking:
        return f"it has no column {min(lacking)}"
    if table.num_rows != sum(run.rows for run in runs):
        return "its rows are not those of the runs that its provenance names"
    if len({run.name for run in runs}) < len(runs):
        return "its provenance: a run occurs twice"
    return ""


def say(path: Path, why: object) -> None:
    """On stderr, once a process: whoever asked goes on without the file."""
    say_once(f"not used: {path}: {why}")


# --- cells ------------------------------------------------------------------------------------------------------------

CELLS = ("algorithm", "seed", "metric", "value")
"""Columns of every file of cells."""
NOT_NAMES = ("value", "censored", "text")
NO = dict.fromkeys(("0", "0.0", "false", ""), "False")  # a gap where measures with and without meet


def cells(path: Path) -> pd.DataFrame:
    """The rows of a file of cells, all as text; Unusable for one that is not what its record says, and for what is no
    such file. Whoever changes them changes a copy."""
    if not path.is_file():
        raise Unusable("not a file")
    try:
        if broken := seal.broken(path):
            raise Unusable(broken)
        status = path.stat()
        return _cells(path, status.st_mtime_ns, status.st_size)
    except (OSError, RecursionError) as error:
        raise Unusable(f"cannot be read ({getattr(error, 'strerror', None) or 'nested too deeply'})") from error


def _shown(value: str) -> str:
    """Text of any kind in a few signs of ASCII."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@cache
def _cells(path: Path, modified: int, size: int) -> pd.DataFrame:
    import pandas as pd

    try:
        text = path.read_text(encoding="utf-8")
        head = next(csv.reader(text.splitlines()), [])
        rows = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except (ValueError, csv.Error) as error:  # pandas' parser errors are ValueErrors
        raise Unusable(f"not a CSV file of cells ({_shown(' '.join(str(error).split()))})") from error
    if not isinstance(rows.index, pd.RangeIndex):
        raise Unusable("line 2 has more values than there are columns")
    if lacking := next((c for c in CELLS if c not in head), ""):
        raise Unusable(f"the column '{lacking}' is missing")
    if len(set(head)) < len(head):
        raise Unusable("a column occurs twice")
    number = pd.to_numeric(rows["value"], errors="coerce").notna() | rows["value"].str.lower().isin(("", "nan"))
    fine = {"seed": rows["seed"].str.fullmatch("-?[0-9]{1,10}"), "value": number}
    if "censored" in head:
        words = rows["censored"].str.lower().map(dict.fromkeys(("1", "1.0", "true"), "True") | NO)
        fine["censored"] = words.notna()
    for column, good in fine.items():
        if not good.all():
            at = int((~good).to_numpy().argmax())
            raise Unusable(f"line {at + 2}: the {column} is {_shown(rows[column].iloc[at])}")
    twice = rows.duplicated([c for c in head if c not in NOT_NAMES])
    if twice.any():
        raise Unusable(f"line {int(twice.to_numpy().argmax()) + 2} has the setting and the seed of an earlier one")
    return rows.assign(censored=words) if "censored" in head else rows
