"""Results with provenance: the histories of a job as one tidy file (docs/architecture.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files, seal
from reproduce.engine.cohort import Run

if TYPE_CHECKING:
    import pandas as pd


def write_results(path: Path, runs: Sequence[Run], provenance: Mapping[str, Any]) -> None:
    """The histories of all runs as one tidy parquet file (docs/architecture.md), provenance in its metadata."""
    import pandas as pd

    frames = []
    for run in runs:
        frame = pd.DataFrame(run.state["history"], columns=["round", "time", "metric", "key", "value"])
        for i, (label, value) in enumerate(run.experiment.labels.items()):
            frame.insert(i, label, value)
        frame.insert(len(run.experiment.labels), "seed", run.seed)
        frame["status"] = run.state["status"]
        frames.append(frame)
    _write(path, pd.concat(frames, ignore_index=True), provenance)


def split(path: Path, parts: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
    """Write each experiment of a results file into one of its own, (file, what its provenance says otherwise) each.

    `seconds`, `local_runs` and the peak memory stay those of all of them together.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    frame, note = table.to_pandas(), json.loads(table.schema.metadata[b"provenance"])
    for i, (file, others) in enumerate(parts):
        experiment = note["experiments"][i]
        rows = frame
        for label, value in experiment["labels"].items():
            rows = rows[rows[label] == value]
        mine = {"experiments": [experiment], "cpu_seconds_of": [note["cpu_seconds_of"][i]]}
        _write(file, rows.reset_index(drop=True), {**note, **mine, **others})


def _write(path: Path, frame: pd.DataFrame, provenance: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    note = json.dumps(_finite({**provenance, "content": seal.of_table(table)}), sort_keys=True).encode()
    said = {b"provenance": note, b"seal": seal.of_note(note)}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **said})
    files.write(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
