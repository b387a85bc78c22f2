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
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import COLUMNS, PARTS, SCALES, trainings
from reproduce.settings import PRECISIONS
from reproduce.store import seal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

BROKEN = "not a complete results file"


class Unusable(Exception):
    """A file that is not what it should be; the message says why, in a line without its name."""


def result(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The rows and the provenance of a results file; Unusable for what is none, or holds other numbers than it says."""
    import pyarrow as pa

    table, note = _opened(path, whole=True)
    if why := _wrong_columns(table, note):
        raise Unusable(why)
    coded = {
        name: table[name].combine_chunks().dictionary_encode()
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind)
    }
    if note["content"] != seal.of_table(table, coded):
        raise Unusable(f"{BROKEN}: it holds other numbers than were written")
    if why := _wrong_rows(table, note, coded):
        raise Unusable(why)
    return table, note


def note(path: Path) -> dict[str, Any]:
    """The provenance of a results file, whose rows are not read; Unusable for one that is not as it was written."""
    return _opened(path, whole=False)[1]


def _opened(path: Path, whole: bool) -> tuple[pa.Table, dict[str, Any]]:
    """The rows of a results file (whole: false: none of them), and its provenance, which is of its form."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if not path.is_file():
            raise Unusable("not a file" if os.path.lexists(path) else "no such results file; train it first")
        with parquet.ParquetFile(path) as file:
            table = file.read(use_threads=False) if whole else file.schema_arrow.empty_table()
        found = json.loads((table.schema.metadata or {}).get(b"provenance", b"null"))
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        # A process killed while copying, or a full disk, leaves half a file; nothing in it can be trusted.
        raise Unusable(BROKEN) from error
    if not isinstance(found, dict) or not seal.kept(table):
        raise Unusable(f"{BROKEN}: its provenance is not what was written")
    if why := _wrong(found, NOTE, "its provenance") or _disagrees(found):
        raise Unusable(why)
    return table, found


def say(path: Path, why: object) -> None:
    """On stderr, once a process: whoever asked goes on without the file."""
    _say(f"not used: {path}: {why}")


@cache
def _say(line: str) -> None:
    print(line, file=sys.stderr)


# --- the form of a provenance -----------------------------------------------------------------------------------------

Form = Any
"""What a value must be: the words that it is one of, a dictionary of fields ("name?" may be absent, "*" stands for any
other name), [the form of each item], or a function that says what it should be, "" if it is."""


def _wrong(value: Any, form: Form, name: str) -> str:
    """Why `value` is not of that form, in one line that begins with the name of what is wrong; "" if it is."""
    if isinstance(form, tuple):
        fits = isinstance(value, str) and value in form
        return "" if fits else f"{name} is {_shown(value)}, not one of {', '.join(form)}"
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
        wanted = forms.get(key, forms.get("*"))
        if wanted is not None and (why := _wrong(inner, wanted, f"{name}: {key}")):
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


def _whole(most: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
        return "" if fits else f"a whole number from 0 to {most}"

    return check


def _amount(value: Any) -> str:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e30
    return "" if fits else "a number that is not negative"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _label(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isfinite(value) else "a finite number"
    if isinstance(value, int):
        return "" if abs(value) < 2**63 else "a number of 64 bits"
    return _text(value) and "text in one line, a number, true or false"


def _sum(value: Any) -> str:
    return "" if value is None else _word(value.replace(" ", "-") if isinstance(value, str) else value)


def _record(value: Any) -> str:
    """A part of a declaration is compared with today's as it is; here it must only be one."""
    return "" if isinstance(value, Mapping) and isinstance(value.get("type"), str) else "a declared record"


LABELS, TEXTS, AMOUNTS = {"*": _label}, {"*": _text}, {"*": _amount}
SEED, COUNT = _whole(2**32 - 1), _whole(2**63)
TRAINING = {
    **{"seeds": [SEED], "git": _word, "date": _text, "only?": [LABELS], "code?": _text, "digest?": _text},
    **{"versions?": TEXTS, "machine?": {"cores?": COUNT, "*": _text}, "compiled?": TEXTS, "device?": ("cpu", "cuda")},
    **{"threads?": COUNT, "configured_precision?": PRECISIONS, "precision?": PRECISIONS, "resumed?": _flag},
    **{"instructions_changed?": _text, "peak_memory?": COUNT},
}
"""What a provenance says of each training; the newest one's stands in the provenance itself."""
COSTS = {
    **{"data": TEXTS, "seconds": _amount, "cpu_seconds": _amount, "samples": _amount, "flops": _amount},
    **{"seconds_by_part": AMOUNTS, "local_runs": {"*": COUNT}, "strategies": [_word], "cpu_seconds_of": [[_amount]]},
}
"""What it says of all of them together. Older results lack some; those with the last entry have all."""
NOTE = {
    **TRAINING,
    **{f"{name}?": form for name, form in COSTS.items()},
    **{"content": _word, "scale?": SCALES, "paper?": _word, "job?": _word, "panel?": _word, "substitute?": _text},
    **{"data_notes?": TEXTS, "earlier?": [TRAINING], "read?": {"*": _sum}},
    "experiments": [{"labels": LABELS, **dict.fromkeys(PARTS, _record), "files?": TEXTS}],
}


def _disagrees(note: Mapping[str, Any]) -> str:
    """Where the entries of a provenance, each of its form, do not go together; "" if they do."""
    seeds, labels = note["seeds"], [e["labels"] for e in note["experiments"]]
    if not seeds or len(set(seeds)) < len(seeds):
        return "its provenance: seeds are none, or one occurs twice"
    if not labels or any(mine in labels[:i] for i, mine in enumerate(labels)):
        return "its provenance: experiments are none, or two have the same labels"
    if taken := {name for mine in labels for name in mine} & set(COLUMNS):
        return f"its provenance: {taken.pop()} is a label, and a column of all results"
    if "cpu_seconds_of" in note:
        if why := _wrong({k: note[k] for k in COSTS if k in note}, COSTS, "its provenance"):
            return why
        if [*map(len, note["cpu_seconds_of"])] != [len(seeds)] * len(labels):
            return "its provenance: cpu_seconds_of has not a number for each experiment and seed"
    made = trainings(note)
    if not all(training["seeds"] for training in made):
        return "its provenance: one of the trainings has no seeds"
    for seed in seeds:
        of_it = [training for training in made if seed in training["seeds"]]
        if not all(any(mine in t.get("only", (mine,)) for t in of_it) for mine in labels):
            return f"its provenance: no training of seed {seed}"
    return ""


# --- the form of the rows ---------------------------------------------------------------------------------------------

TYPES = {
    **dict.fromkeys(("seed", "round"), ("int64",)),
    **dict.fromkeys(("time", "value"), ("double",)),
    **dict.fromkeys(("metric", "key", "status"), ("string", "large_string")),
}
LABEL_TYPES = ("string", "large_string", "int64", "double", "bool")
ENDS = {"ok", "diverged"}


def _wrong_columns(table: pa.Table, note: Mapping[str, Any]) -> str:
    """Why the columns are not those of the runs that the provenance names; "" if they are."""
    names = _label_names(note)
    if sorted(table.column_names) != sorted([*names, *COLUMNS]):
        odd = set(table.column_names) ^ {*names, *COLUMNS}
        return f"its columns are not those of its provenance ({_shown(', '.join(sorted(odd)) or 'one occurs twice')})"
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if str(kind) not in TYPES.get(name, LABEL_TYPES):
            return f"its column {name} is of {_shown(str(kind))}"
        if table[name].null_count and name in ("seed", "round", "metric", "key", "status"):
            return f"its column {name} has gaps"
    return ""


def _label_names(note: Mapping[str, Any]) -> set[str]:
    return {name for e in note["experiments"] for name in e["labels"]}


def _wrong_rows(table: pa.Table, note: Mapping[str, Any], coded: Mapping[str, pa.DictionaryArray]) -> str:
    """Why the rows, in their columns, are not the histories of the runs that the provenance names; "" if they are."""
    import pyarrow.compute as pc

    names = sorted(_label_names(note))
    if not table.num_rows:
        return "it has no rows"
    rounds, times = (pc.min_max(table[name]).as_py() for name in ("round", "time"))
    if rounds["min"] < 0 or rounds["max"] >= 2**40 or (times["min"] or 0) < 0:
        return "a round of it is not a number of rounds, or a time is negative"
    if other := set(pc.unique(table["status"]).to_pylist()) - ENDS:
        return f"a status of it is {_shown(other.pop())}, not one of {', '.join(sorted(ENDS))}"
    codes = {name: _codes(table[name], coded.get(name)) for name in table.column_names if name not in ("time", "value")}
    starts = _starts([codes[name] for name in (*names, "seed")])
    runs = table.select([*names, "seed"]).take(starts).to_pylist()
    found = [_run({k: v for k, v in run.items() if k != "seed"}, run["seed"]) for run in runs]
    wanted = {_run(e["labels"], seed) for e in note["experiments"] for seed in note["seeds"]}
    if set(found) != wanted:
        return "its rows are not of the settings and seeds that its provenance names"
    backwards = codes["round"][1:] < codes["round"][:-1]
    backwards[starts[1:] - 1] = False
    if backwards.any():
        return "its rounds are not in their order"
    if len(found) > len(wanted) or _repeats(codes, starts, table["time"]):
        return "a row of it occurs twice, or rows of runs are mixed"
    return ""


def _run(labels: Mapping[str, Any], seed: int) -> tuple[Any, ...]:
    """The name of a run: a label that an experiment does not have is a gap in the rows."""
    return seed, *sorted((k, v) for k, v in labels.items() if v is not None and v == v)


def _starts(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The rows at which another run begins: those that differ from the row before in one of these columns."""
    import numpy as np

    changes = np.zeros(len(columns[0]), bool)
    changes[0] = True
    for codes in columns:
        changes[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(changes)


def _codes(column: pa.ChunkedArray, coded: pa.DictionaryArray | None) -> np.ndarray:
    """Equal numbers for equal values, gaps included."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    indices = (column.combine_chunks().dictionary_encode() if coded is None else coded).indices
    return np.asarray(indices.fill_null(-1) if indices.null_count else indices)


def _repeats(codes: Mapping[str, np.ndarray], starts: np.ndarray, time: pa.ChunkedArray) -> bool:
    """Does a run have two numbers of one metric and key in one round, at one time?"""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    run = np.zeros(len(time), np.int64)
    run[starts] = 1
    places = [np.cumsum(run), *(codes[name] for name in ("round", "metric", "key"))]
    later = np.zeros(len(time) - 1, bool)  # is each row's place behind that of the row before?
    for place in reversed(places):
        later = (place[1:] > place[:-1]) | ((place[1:] == place[:-1]) & later)
    if later.all():
        return False
    together, room = np.zeros(len(time), np.int64), 1
    for place in [*places, _codes(time, None)]:
        low, size = int(place.min()), int(place.max()) - int(place.min()) + 1
        room *= size
        if room >= 2**63:
            return True
        together = together * size + (place - low)
    return int(pc.count_distinct(pa.array(together)).as_py()) < len(time)


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
