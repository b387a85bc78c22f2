"""Files that survive anything: atomic writes, checkpoints of a job, results with provenance.

Nothing is ever written in place: a file appears under its name only when it is complete (temporary file, fsync,
rename), so a kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import errno
import json
import math
import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import torch

from reproduce.engine.cohort import Run
from reproduce.errors import UserError


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
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


class Checkpoint:
    """The states of all runs of a job, written every `interval` seconds and at most `share` of the time.

    `said` is what `note` said when the restored checkpoint was written: how the job was computed until then.
    """

    def __init__(
        self,
        path: Path,
        runs: Sequence[Run],
        note: Callable[[], dict[str, Any]] = dict,
        interval: float = 20.0,
        share: float = 0.03,
    ) -> None:
        self.path, self.runs, self.note, self.interval, self.share = path, runs, note, interval, share
        self.said: dict[str, Any] = {}
        self.spent = 0.0
        self.last = time.monotonic()

    def restore(self) -> bool:
        """Load the states; False if there is no checkpoint. A damaged file is put aside and reported as UserError."""
        if not self.path.exists():
            return False
        try:
            with self.path.open("rb") as file:
                content = torch.load(file, weights_only=False)
            states, self.said = content["states"], content["note"]
            if len(states) != len(self.runs):
                raise ValueError("another number of runs")
        except (
            *(OSError, ValueError, EOFError, RuntimeError, pickle.UnpicklingError),
            *(KeyError, TypeError, AttributeError),
        ) as error:
            raise UserError(
                f"checkpoint {self.path} cannot be read ({error}): delete it to train from the start"
            ) from error
        for run, state in zip(self.runs, states, strict=True):
            run.state.clear()
            run.state.update(state)
        return True

    def tick(self) -> None:
        """Save if it is time."""
        if time.monotonic() - self.last >= max(self.interval, self.spent / self.share):
            self.save()

    def save(self) -> None:
        start = time.monotonic()
        content = {"states": [run.state for run in self.runs], "note": self.note()}
        write_atomically(self.path, lambda file: torch.save(content, file))
        self.last = time.monotonic()
        self.spent = self.last - start

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


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
    note = json.dumps(_finite(provenance), sort_keys=True).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"provenance": note})
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _finite(value: Any) -> Any:
    """JSON without NaN."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
