"""Files that survive anything: atomic writes, results with provenance.

Nothing is ever written in place: a file appears under its name only when it is complete (temporary file, fsync,
rename), so a kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from reproduce import seal
from reproduce.engine.cohort import Run
from reproduce.errors import UserError


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, then rename it; a full disk ends in UserError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"no space left to write {path}: free some space and start again; what was finished before is kept"
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


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
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
