"""Results files as tests write them, sealed and of the form that `reproduce.store.reading` asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from reproduce.store import seal

PARTS = {part: {"type": part} for part in ("problem", "system", "algorithm", "clock")}


def rows(note: Mapping[str, Any]) -> pa.Table:
    """One row of each run that a provenance names."""
    found = [
        {**e["labels"], "seed": seed, "round": 0, "time": 0.0, "metric": "m", "key": "", "value": 1.0, "status": "ok"}
        for e in note["experiments"]
        for seed in note["seeds"]
    ]
    return pa.Table.from_pylist(found)


def named(table: pa.Table) -> dict[str, Any]:
    """The least that a provenance with these rows says: their settings with parts of no meaning, their seeds."""
    columns = ("seed", "round", "time", "metric", "key", "value", "status")
    labels = table.select([c for c in table.column_names if c not in columns]).to_pylist()
    settings = [dict(pairs) for pairs in dict.fromkeys(tuple(mine.items()) for mine in labels)] or [{}]
    seeds = list(dict.fromkeys(table["seed"].to_pylist())) if "seed" in table.column_names else [0]
    experiments = [{"labels": mine, **PARTS} for mine in settings]
    return {"experiments": experiments, "seeds": seeds, "git": "c0ffee", "date": "then"}


def costs(experiments: int, seeds: int) -> dict[str, Any]:
    """What a provenance of today says of the costs of its trainings."""
    amounts = dict.fromkeys(("seconds", "cpu_seconds", "samples", "flops"), 1.0)
    more = {"data": {}, "seconds_by_part": {}, "local_runs": {}, "strategies": []}
    return {**amounts, **more, "cpu_seconds_of": [[1.0] * seeds] * experiments}


def write(path: Path, note: Any, table: pa.Table | None = None) -> Path:
    """A results file with this provenance and these rows (None: `rows`)."""
    found = rows(note) if table is None else table
    if isinstance(note, Mapping):
        note = {**note, "content": seal.of_table(found)}
    said = json.dumps(note).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(found.replace_schema_metadata({b"provenance": said, b"seal": seal.of_note(said)}), path)
    return path
