"""Results with provenance: the histories of a job as one tidy file (docs/architecture.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduce import files, seal
from reproduce.engine.cohort import Run


def write_results(path: Path, runs: Sequence[Run], provenance: Mapping[str, Any]) -> None:
    """The histories of all runs as one tidy parquet file (docs/architecture.md), provenance in its metadata."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frames = []
    for run in runs:
        frame = pd.DataFrame(run.state["history"], columns=["round", "time", "metric", "key", "value"])
        for i, (label, value) in enumerate(run.experiment.labels.items()):
            frame.insert(i, label, value)
        frame.insert(len(run.experiment.labels), "seed", run.seed)
        frame["status"] = run.state["status"]
        frames.append(frame)
    table = pa.Table.from_pandas(pd.concat(frames, ignore_index=True), preserve_index=False)
    note = json.dumps(_finite({**provenance, "content": seal.of_table(table)}), sort_keys=True).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"provenance": note})
    files.write(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
