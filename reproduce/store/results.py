"""A results file: any set of runs, each with its rows, its declaration and where it comes from.

Rows: the labels of the experiment, seed, round, time, metric, key, value, status. The rows of a run lie together, in
the order of the runs. The provenance, JSON in the file's metadata, is four tables:

    parts        what was declared: problems, systems, algorithms and clocks, once each
    experiments  labels, and places among the parts
    trainings    what is said of a training: commit, date, machine, versions, precision, data, seconds, ...
    runs         places among these two; seed, digest of the code, number of rows, what it cost
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare.experiment import COLUMNS, PARTS
from reproduce.errors import UserError
from reproduce.store import reading, seal
from reproduce.store.reading import Stored

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def merge(path: Path, rows: pd.DataFrame, runs: Sequence[Stored], alone: bool = False) -> None:
    """Put runs into the results file at `path`, in the places of those with their labels and seeds; alone: without
    those that are there. rows: of all of them, in their order.

    A file that is damaged, or of something else, is replaced.
    """
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    with files.locked(path.parent):
        old, there = (None, ()) if alone else found(path)
        names = {run.name for run in runs}
        kept = [run for run in there if run.name not in names]
        new = pa.Table.from_pandas(rows, preserve_index=False)
        starts = [sum(run.rows for run in runs[:i]) for i in range(len(runs))]
        added = [replace(run, start=start) for run, start in zip(runs, starts, strict=True)]
        pieces = [(run, old.slice(run.start, run.rows)) for run in kept if old is not None]
        pieces += [(run, new.slice(run.start, run.rows)) for run in added]
        pieces.sort(key=_place([run.labels for run in (*there, *runs)]))
        tables = [piece for _, piece in pieces]
        write(path, pa.concat_tables(tables, promote_options="permissive"), [run for run, _ in pieces])


def adopt(path: Path, aside: Path) -> None:
    """`merge` of all runs of another results file."""
    merge(path, *read(aside))


def _place(labels: Sequence[Mapping[str, Any]]) -> Any:
    """Sorts runs by their experiment, in the order of `labels`, and by their seed."""
    order: dict[Any, int] = {}
    for mine in labels:
        order.setdefault(tuple(sorted(mine.items())), len(order))
    return lambda piece: (order[piece[0].name[:-1]], piece[0].seed)


def found(path: Path) -> tuple[pa.Table | None, tuple[Stored, ...]]:
    """Rows and runs of a results file; none of one that is not there, or cannot be used."""
    try:
        return reading.result(path)
    except reading.Unusable:
        return None, ()


def check_data(path: Path, asked: Iterable[tuple[Mapping[str, Any], int]], data: Mapping[str, str]) -> None:
    """Raises UserError if runs that would stay beside those asked for, (labels, seed) each, were trained on other data
    of the same name. data: name -> checksum."""
    names = {(*sorted(labels.items()), seed) for labels, seed in asked}
    for run in found(path)[1]:
        theirs = run.training.get("data", {})
        odd = [name for name, digest in data.items() if theirs.get(name, digest) != digest]
        if odd and run.name not in names:
            raise UserError(
                f"{path} has runs that were trained on other data ({', '.join(odd)}): restore that data, or delete the "
                "file, and train again"
            )


def read(path: Path) -> tuple[pd.DataFrame, tuple[Stored, ...]]:
    """Rows and runs of a results file; UserError for one that cannot be used."""
    try:
        table, runs = reading.result(path)
    except reading.Unusable as error:
        raise UserError(f"{path}: {error}; delete it, and train again") from error
    return table.to_pandas(), runs


def write(path: Path, table: pa.Table, runs: Sequence[Stored]) -> None:
    """A results file of these rows and runs, which are in one order."""
    import pyarrow.parquet as pq

    labels = [name for name in table.column_names if name not in COLUMNS]
    table = table.select([*labels, *COLUMNS]).replace_schema_metadata(None).combine_chunks()
    table = table.cast(_plain(table.schema))
    parts, experiments, trainings = _Distinct(), _Distinct(), _Distinct()

    def declared(experiment: Mapping[str, Any]) -> dict[str, Any]:
        return {**experiment, **{name: parts.place(experiment[name]) for name in PARTS}}

    entries = [
        {
            **{"experiment": experiments.place(declared(run.experiment)), "training": trainings.place(run.training)},
            **{"seed": run.seed, "code": run.code, "rows": run.rows, "seconds": run.seconds, "samples": run.samples},
        }
        for run in runs
    ]
    tables = {"parts": parts, "experiments": experiments, "trainings": trainings}
    note = {**{name: table.values for name, table in tables.items()}, "runs": entries}
    said = json.dumps(_finite({**note, "content": seal.of_table(table)}), sort_keys=True).encode()
    # Values do not repeat: all first bytes, then all second ones, and so on pack better than a dictionary of them.
    packed: dict[str, Any] = {"use_dictionary": [c for c in table.column_names if c != "value"]}
    packed |= {"use_byte_stream_split": ["value"], "compression": "zstd", "compression_level": 15}

    def fill(file: Any) -> None:
        # Arrow's own description of the columns would repeat the provenance in base64.
        with pq.ParquetWriter(file, table.schema, store_schema=False, **packed) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"provenance": said, "seal": seal.of_note(said)})

    files.write(path, fill)


def _plain(schema: pa.Schema) -> pa.Schema:
    """With the types that are read again where Arrow's own description is not stored."""
    import pyarrow as pa

    text = pa.types.is_large_string
    return pa.schema([(f.name, pa.string() if text(f.type) else f.type) for f in schema])


class _Distinct:
    """Values, once each, in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        place = self._places.setdefault(json.dumps(value, sort_keys=True), len(self.values))
        self.values += [value] if place == len(self.values) else []
        return place


def _finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
