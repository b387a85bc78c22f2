"""Results with provenance: the histories of a job as one tidy file (docs/architecture.md)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files, seal
from reproduce.engine.cohort import Run
from reproduce.errors import UserError

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


SUMS = ("seconds", "cpu_seconds", "samples", "flops")
OF_EACH = (
    *("code", "digest", "git", "date", "versions", "machine", "compiled", "device", "threads"),
    *("configured_precision", "precision", "resumed", "instructions_changed"),
)
"""Entries of a provenance that are said of each training: of the newest in their places, of others under `earlier`."""


def add(path: Path, new: Path, seeds: Sequence[int]) -> None:
    """Put the runs of the results file `new` beside those of `path`, whose job has the same experiments.

    seeds: those of both, in the order that the runs of an experiment get. The provenance becomes that of `new`, with
    the costs of all runs, and what that of `path` said of its own training under `earlier`. Raises UserError if the
    files do not go together.
    """
    import pandas as pd
    import pyarrow.parquet as pq

    tables = [pq.read_table(file) for file in (path, new)]
    old, late = [json.loads(table.schema.metadata[b"provenance"]) for table in tables]
    for file, table, note in zip((path, new), tables, (old, late), strict=True):
        if not seal.kept(table) or note["content"] != seal.of_table(table):
            raise UserError(f"{file} holds other numbers than were written: delete it, and train again")
    if old["data"] != late["data"]:
        raise UserError(
            f"the seeds of {new} cannot be added to {path}: they were trained on other data; restore that data and "
            "delete the former, or delete the latter, and train again"
        )
    if sorted(old["seeds"] + late["seeds"]) != sorted(seeds):
        raise UserError(f"the seeds of {new} and {path} are not {', '.join(map(str, seeds))}")
    frame = pd.concat([table.to_pandas() for table in tables], ignore_index=True)
    names = {name for e in late["experiments"] for name in e["labels"]}
    runs = [_run(frame, names, e["labels"], seed) for e in late["experiments"] for seed in seeds]
    _write(path, pd.concat(runs, ignore_index=True), _provenance(old, late, seeds))


def _run(frame: pd.DataFrame, names: Iterable[str], labels: Mapping[str, Any], seed: int) -> pd.DataFrame:
    """The rows of the experiment that has these labels, and none of the other `names`, with this seed."""
    mine = frame["seed"] == seed
    for name in names:
        mine &= frame[name] == labels[name] if name in labels else frame[name].isna()
    return frame[mine]


def _provenance(old: Mapping[str, Any], late: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """What is said of the runs of both, and of each training."""
    spent: dict[tuple[int, int], float] = {}
    for note in (old, late):
        for i, row in enumerate(note["cpu_seconds_of"]):
            spent |= {(i, seed): s for seed, s in zip(note["seeds"], row, strict=True)}
    parts = [Counter(note["seconds_by_part"]) for note in (old, late)]
    before = {s for training in old.get("earlier", ()) for s in training["seeds"]}
    own = {"seeds": [s for s in old["seeds"] if s not in before]} | {name: old[name] for name in OF_EACH}
    return {
        **late,
        **{name: old[name] + late[name] for name in SUMS},
        "seeds": list(seeds),
        "cpu_seconds_of": [[spent[i, seed] for seed in seeds] for i in range(len(late["experiments"]))],
        "seconds_by_part": {name: round(parts[0][name] + parts[1][name], 2) for name in parts[0] | parts[1]},
        "local_runs": dict(Counter(old["local_runs"]) + Counter(late["local_runs"])),
        "peak_memory": max(old["peak_memory"], late["peak_memory"]),
        "strategies": sorted({*old["strategies"], *late["strategies"]}),
        "earlier": [own, *old.get("earlier", ())],
    }


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
