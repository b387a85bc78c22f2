"""Results files and cells as they are read: whole, sealed, and of the form that is written.

Whoever reads one reads it here, since a file may be cut, changed by hand, of an older program or of another one. What
does not fit is refused in one line, and whoever asked goes on without it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import COLUMNS, PARTS, Label
from reproduce.errors import say_once
from reproduce.settings import PRECISIONS
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
        if why := _wrong(note, NOTE, "its provenance"):
            raise Unusable(why)
        if note["content"] != seal.of_table(table):
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
    starts = accumulate((run["rows"] for run in note["runs"]), initial=0)
    parts, trainings = note["parts"], note["trainings"]
    try:
        experiments = [{**e, **{name: parts[e[name]] for name in PARTS}} for e in note["experiments"]]
        return tuple(
            Stored(
                **run | {"experiment": experiments[run["experiment"]], "training": trainings[run["training"]]}, start=at
            )
            for run, at in zip(note["runs"], starts, strict=False)
        )
    except IndexError:
        raise Unusable("its provenance: a run or an experiment names what is not there") from None


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


# --- the form of a provenance -----------------------------------------------------------------------------------------

Form = Any
"""What a value must be: a dictionary of fields ("name?" may be absent, "*" stands for any other name), [the form of
each item], or a function that says what it should be, "" if it is."""


def _wrong(value: Any, form: Form, name: str) -> str:
    """Why `value` is not of that form, in one line that begins with the name of what is wrong; "" if it is."""
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{name} is {_shown(value)}, not a list"
        return next((why for i, v in enumerate(value) if (why := _wrong(v, form[0], f"{name}[{i}]"))), "")
    if not isinstance(form, Mapping):
        asked = form(value)
        return asked and f"{name} is {_shown(value)}, not {asked}"
    if not isinstance(value, Mapping):
        return f"{name} is {_shown(value)}, not a record"
    if lacking := next((f for f in form if not f.endswith(("?", "*")) and f not in value), ""):
        return f"{name} has no entry {lacking}"
    forms = {field.removesuffix("?"): inner for field, inner in form.items()}
    for key, inner in value.items():
        if why := _text(key):
            return f"{name} has the entry {_shown(key)}, whose name is not {why}"
        if key not in forms and "*" not in forms:
            return f"{name} has the entry {_shown(key)}, which this version does not know"
        if why := _wrong(inner, forms.get(key, forms.get("*")), f"{name}: {key}"):
            return why
    return ""


def _shown(value: Any) -> str:
    """A value of any kind in a few signs of ASCII."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    text = ascii(value if isinstance(value, str | int | float | None) else type(value).__name__)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(value: Any) -> str:
    fits = isinstance(value, str) and len(value) <= 2000 and value.isprintable()
    return "" if fits else "text in one line"


def _word(value: Any) -> str:
    fits = isinstance(value, str) and re.fullmatch(r"[\w.+-]{1,200}", value)
    return "" if fits else "a word of letters, digits, '.', '+' and '-'"


def _precision(value: Any) -> str:
    return "" if value in PRECISIONS else f"one of {', '.join(PRECISIONS)}"


def _count(value: Any) -> str:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return "" if fits else "a whole number that is not negative"


def _amount(value: Any) -> str:
    fits = value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e30)
    return "" if fits else "a number that is not negative"


def _label(value: Any) -> str:
    if isinstance(value, int | float):
        return "" if abs(value) < (math.inf if isinstance(value, float) else 2**63) else "a finite number"
    return _text(value) and "text in one line, a number, true or false"


def _record(value: Any) -> str:
    """A part of a declaration is compared with today's as it is; here it must only be one."""
    return "" if isinstance(value, Mapping) and isinstance(value.get("type"), str) else "a declared record"


def _said(value: Any) -> str:
    """Other entries are shown to people or not at all: text of any depth in lines, numbers, nothing."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return next(filter(None, map(_said, value)), "")
    return "" if value is None else _label(value)


TRAINING = {
    **{"git": _word, "date": _text, "device?": _word, "threads?": _count, "machine?": {"cores?": _count, "*": _text}},
    **{"configured_precision?": _precision, "precision?": _precision, "peak_memory?": _count},
    **{"data?": {"*": _text}, "compiled?": {"*": _text}},
    **{f"{name}?": _amount for name in ("seconds", "cpu_seconds", "samples", "flops")},
    "*": _said,
}
NOTE = {
    "content": _word,
    "parts": [_record],
    "experiments": [{"labels": {"*": _label}, **dict.fromkeys(PARTS, _count), "files?": {"*": _text}}],
    "trainings": [TRAINING],
    "runs": [
        {
            **dict.fromkeys(("experiment", "training", "seed", "rows"), _count),
            **{"code": _text, "seconds?": _amount, "samples?": _amount},
        }
    ],
}
"""The tables of a provenance (`store.results`), and the checksum of the rows."""


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
