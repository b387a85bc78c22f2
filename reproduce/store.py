"""Results files and files of cells, sealed by checksums: written whole, read strictly.

Rows of a results file: the labels of the experiment, seed, round, time, metric, key, value, status. The rows of a run
lie together, in the order of the runs. The provenance, JSON in the file's metadata, is four tables:

    parts        what was declared: problems, systems, algorithms and clocks, once each
    experiments  labels, and places among the parts
    trainings    what is said of a training: commit, date, machine, versions, precision, data, seconds, ...
    runs         places among these two; seed, digest of the code, number of rows, what it cost

Checksums guard against damage and mix-ups (a flipped bit, half a copy, another job's file), not against somebody who
can write both the numbers and their checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare.experiment import COLUMNS, PARTS, Label
from reproduce.errors import UserError, say_once

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BROKEN = "not a complete results file"


class Unusable(Exception):
    """A file that is not what it should be; the message says why, in a line without its name."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A run of a results file: an experiment as it was declared, with one seed, and the origin of its numbers.

    training: what is said of the training that it was part of (commit, date, machine, ...). code: digest of the source
    that gave its numbers. rows: how many it has, from row `start` on. seconds: of the processor, that it took; samples:
    that it was trained on; both None where nothing says so. last: the round of its last row.
    """

    experiment: Mapping[str, Any]
    seed: int
    training: Mapping[str, Any]
    code: str
    rows: int
    seconds: float | None = None
    samples: float | None = None
    start: int = 0
    last: int = 0

    @property
    def labels(self) -> Mapping[str, Label]:
        labels: Mapping[str, Label] = self.experiment["labels"]
        return labels

    @property
    def name(self) -> tuple[Any, ...]:
        """Labels and seed, which tell the run from the others of its file."""
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
        metadata = table.schema.metadata or {}
        raw = metadata.get(b"provenance", b"null")
        note = json.loads(raw)
        if not isinstance(note, dict) or metadata.get(b"seal") != of_note(raw):
            raise Unusable(f"{BROKEN}: its provenance is not what was written")
        if note.get("content") != of_table(table):
            raise Unusable(f"{BROKEN}: it holds other numbers than were written")
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        # A process killed while copying, or a full disk, leaves half a file; nothing in it can be trusted.
        raise Unusable(BROKEN) from error
    ends, runs = table["round"], _runs(note)
    return table, tuple(replace(run, last=ends[run.start + run.rows - 1].as_py()) for run in runs)


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


def say(path: Path, reason: object) -> None:
    """Says once, on stderr, why a file is not used."""
    say_once(f"not used: {path}: {reason}")


# --- writing ----------------------------------------------------------------------------------------------------------


def merge(
    path: Path, rows: pd.DataFrame, runs: Sequence[Stored], stays: Callable[[Stored], bool] = lambda run: True
) -> None:
    """Put runs into the results file at `path`, in the places of those with their labels and seeds; stays: which of
    the others are kept. rows: of all the runs, in their order.

    A file that is damaged, or of something else, is replaced.
    """
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    with files.locked(path.parent):
        old, stored = usable(path)
        names = {run.name for run in runs}
        kept = [run for run in stored if run.name not in names and stays(run)]
        new = pa.Table.from_pandas(rows, preserve_index=False)
        starts = [sum(run.rows for run in runs[:i]) for i in range(len(runs))]
        added = [replace(run, start=start) for run, start in zip(runs, starts, strict=True)]
        pieces = [(run, old.slice(run.start, run.rows)) for run in kept if old is not None]
        pieces += [(run, new.slice(run.start, run.rows)) for run in added]
        pieces.sort(key=_place([run.labels for run in (*stored, *runs)]))
        tables = [piece for _, piece in pieces]
        write(path, pa.concat_tables(tables, promote_options="permissive"), [run for run, _ in pieces])


def _place(labels: Sequence[Mapping[str, Any]]) -> Any:
    """Sorts runs by their experiment, in the order of `labels`, and by their seed."""
    order: dict[Any, int] = {}
    for entry in labels:
        order.setdefault(tuple(sorted(entry.items())), len(order))
    return lambda piece: (order[piece[0].name[:-1]], piece[0].seed)


def usable(path: Path) -> tuple[pa.Table | None, tuple[Stored, ...]]:
    """Rows and runs of a results file; none of one that is not there, or cannot be used."""
    try:
        return result(path)
    except Unusable:
        return None, ()


def check_data(
    path: Path, pairs: Iterable[tuple[Mapping[str, Any], int]], data: Mapping[str, str], stays: Callable[[Stored], bool]
) -> None:
    """Raises UserError if runs that `merge` would keep beside `pairs` (labels, seed) were trained on other data of the
    same name. data: name -> checksum."""
    names = {(*sorted(labels.items()), seed) for labels, seed in pairs}
    for run in usable(path)[1]:
        theirs = run.training.get("data", {})
        other = [name for name, digest in data.items() if theirs.get(name, digest) != digest]
        if other and run.name not in names and stays(run):
            raise UserError(
                f"{path} has runs that were trained on other data ({', '.join(other)}): restore that data, or delete "
                "the file, and train again"
            )


def read(path: Path) -> tuple[pd.DataFrame, tuple[Stored, ...]]:
    """Rows and runs of a results file; UserError for one that cannot be used."""
    try:
        table, runs = result(path)
    except Unusable as error:
        raise UserError(f"{path}: {error}; delete it, and train again") from error
    return table.to_pandas(), runs


def write(path: Path, table: pa.Table, runs: Sequence[Stored]) -> None:
    """A results file of these rows and runs, which are in one order."""
    import pyarrow.parquet as pq

    labels = [name for name in table.column_names if name not in COLUMNS]
    table = table.select([*labels, *COLUMNS]).replace_schema_metadata(None).combine_chunks()
    table = table.cast(_plain(table.schema))
    distinct: dict[str, dict[str, int]] = {"parts": {}, "experiments": {}, "trainings": {}}

    def place(where: str, value: Any) -> int:
        return distinct[where].setdefault(json.dumps(value, sort_keys=True), len(distinct[where]))

    def declared(experiment: Mapping[str, Any]) -> dict[str, Any]:
        return {**experiment, **{name: place("parts", experiment[name]) for name in PARTS}}

    entries = [
        {
            "experiment": place("experiments", declared(run.experiment)),
            "training": place("trainings", run.training),
            **{"seed": run.seed, "code": run.code, "rows": run.rows, "seconds": run.seconds, "samples": run.samples},
        }
        for run in runs
    ]
    note = {**{name: [*map(json.loads, values)] for name, values in distinct.items()}, "runs": entries}
    provenance = json.dumps(finite({**note, "content": of_table(table)}), sort_keys=True).encode()
    # Values do not repeat: all first bytes, then all second ones, and so on pack better than a dictionary of them.
    packed: dict[str, Any] = {"use_dictionary": [c for c in table.column_names if c != "value"]}
    packed |= {"use_byte_stream_split": ["value"], "compression": "zstd", "compression_level": 15}

    def fill(file: Any) -> None:
        # Arrow's own description of the columns would repeat the provenance in base64.
        with pq.ParquetWriter(file, table.schema, store_schema=False, **packed) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"provenance": provenance, "seal": of_note(provenance)})

    files.write(path, fill)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that are read again where Arrow's own description is not stored."""
    import pyarrow as pa

    text = pa.types.is_large_string
    return pa.schema([(f.name, pa.string() if text(f.type) else f.type) for f in schema])


def finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- cells ------------------------------------------------------------------------------------------------------------


def cells(path: Path) -> pd.DataFrame:
    """The rows of a file of cells, all as text; Unusable for one that is not what its record says. Whoever changes them
    changes a copy."""
    if not path.is_file():
        raise Unusable("not a file")
    try:
        if reason := _broken(path):
            raise Unusable(reason)
        status = path.stat()
        return _cells(path, status.st_mtime_ns, status.st_size)
    except (OSError, RecursionError) as error:
        raise Unusable(f"cannot be read ({getattr(error, 'strerror', None) or 'nested too deeply'})") from error


@cache
def _cells(path: Path, modified: int, size: int) -> pd.DataFrame:
    import pandas as pd

    with pd.option_context("mode.string_storage", "python"):  # Arrow's memory pays for large frames alone
        return pd.read_csv(path, dtype=str, keep_default_na=False)


# --- checksums --------------------------------------------------------------------------------------------------------


def of_table(table: pa.Table) -> str:
    """SHA-256 (32 hex digits) of the columns of a table: names, order, and every value to the bit."""
    import numpy as np
    import pyarrow as pa

    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.combine_chunks()
        digest.update(f"{name} {column.type} {len(column)} {column.null_count}\n".encode())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            words = values.dictionary_encode()
            digest.update(json.dumps(words.dictionary.to_pylist()).encode())
            values = words.indices
        if values.null_count:
            digest.update(np.asarray(values.is_null()).tobytes())
            values = values.fill_null(0)
        digest.update(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes())
    return digest.hexdigest()[:32]


def of_note(note: bytes) -> bytes:
    """SHA-256 (32 hex digits) of a provenance as it is written, beside which it lies under the key `seal`."""
    return hashlib.sha256(note).hexdigest()[:32].encode()


def of_file(path: Path) -> str:
    """SHA-256 (32 hex digits) of a text file, whatever its line ends. UserError for what is no file."""
    return hashlib.sha256(files.read_source(path)).hexdigest()[:32]


def record(cells: Path) -> Path:
    """The path of the record of a file of cells, which says what it was made from, and its checksum as `cells`."""
    return cells.with_suffix(".json")


def sealed(record: Mapping[str, Any], cells: Path) -> dict[str, Any]:
    """The content of the record of a file of cells: what it was made from, and its checksum."""
    return {**record, "cells": of_file(cells)}


def _broken(cells: Path) -> str:
    """The reason why a file of cells is not to be trusted, or ""."""
    try:
        content: Any = json.loads(files.read_text(record(cells)))
        sealed = of_file(cells)
    except FileNotFoundError:
        return f"{cells.name} has no record {record(cells).name}"
    except (OSError, ValueError, RecursionError):
        return f"the record {record(cells).name} cannot be read"
    except UserError as error:
        return str(error)
    if not isinstance(content, dict) or content.get("cells") != sealed:
        return f"{cells.name} is not what its record says: damaged, or changed by hand"
    return ""
