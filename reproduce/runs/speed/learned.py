"""What finished jobs tell about this machine: the processor time in the provenance of results files.

The time on the clock would say how busy the machine was with other things.

Reading Parquet takes longer than planning, so what was read is kept in the store, and read again when a file changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare.experiment import trainings
from reproduce.engine.hardware import machine
from reproduce.runs.speed.kept import write
from reproduce.settings import Settings
from reproduce.store import reading

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Finished:
    """A job that ran on a CPU: `seconds` of processor time, before an interruption too.

    `samples` were declared, `trained` were trained on: fewer where the algorithm chooses clients that do little.
    """

    scale: str
    paper: str
    job: str
    samples: float
    trained: float
    runs: int
    seconds: float

    def __post_init__(self) -> None:
        """TypeError or ValueError for what cannot be a time or a number of samples."""
        if not 0 < self.seconds < math.inf:
            raise ValueError("seconds that no job takes")
        if not 0 <= self.trained < math.inf:
            raise ValueError("samples that no job trains on")


def finished(settings: Settings) -> list[Finished]:
    """The jobs that finished on this machine, as far as `refresh` has seen them."""
    if settings.device != "cpu":
        return []
    here, found = machine(), []
    for entry in _kept(settings).values():
        try:
            if entry["machine"] == here:
                found.append(Finished(**entry["job"]))
        except (KeyError, TypeError, ValueError):  # a damaged entry teaches nothing
            continue
    return found


def refresh(settings: Settings, results: Path = Path("results")) -> None:
    """Read the results files that are new or have changed; raises UserError if what they say cannot be kept."""
    kept = _kept(settings)
    before = dict(kept)
    for file in filter(Path.is_file, results.glob("*/*/*.parquet")):
        status, name = file.stat(), str(file.resolve())
        stamp = [status.st_mtime_ns, status.st_size]
        old = kept.get(name)
        if not isinstance(old, dict) or old.get("stamp") != stamp:
            provenance, work, whole = _read(file)
            kept[name] = {"stamp": stamp, **(_entry(provenance, work) if whole else {})}
    if kept != before:
        write(_file(settings), kept)


def _entry(provenance: Mapping[str, Any], work: float | None) -> dict[str, Any]:
    """Machine and job of a provenance; empty if it says too little."""
    try:
        if provenance["device"] != "cpu" or provenance["precision"] != "float32":
            return {}
        if any(training["machine"] != provenance["machine"] for training in trainings(provenance)):
            return {}
        job = Finished(
            provenance["scale"],
            provenance["paper"],
            provenance["job"],
            provenance["samples"],
            provenance["samples"] if work is None else work,
            len(provenance["experiments"]) * len(provenance["seeds"]),
            provenance["cpu_seconds"],
        )
        return {"machine": provenance["machine"], "job": asdict(job)}
    except (KeyError, TypeError, ValueError):
        return {}


def _read(file: Path) -> tuple[dict[str, Any], float | None, bool]:
    """The provenance of a results file, {} if it cannot be used; `_work`; did every run go on to its end? One that
    diverged did less than was planned."""
    try:
        table, note = reading.result(file)
    except reading.Unusable:
        return {}, None, False
    return note, _work(table), table["status"].unique().to_pylist() == ["ok"]


def _work(table: pa.Table) -> float | None:
    """Samples that all runs trained on, where the history says so (a metric that grows with the rounds)."""
    import pyarrow.compute as pc

    rows = table.filter(pc.field("metric") == "work")
    if not rows.num_rows:
        return None
    run = [c for c in rows.column_names if c not in ("round", "time", "metric", "key", "value", "status")]
    return float(pc.sum(rows.group_by(run).aggregate([("value", "max")])["value_max"]).as_py() or math.nan)


def _kept(settings: Settings) -> dict[str, Any]:
    try:
        found = json.loads(files.read_text(_file(settings)))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file(settings: Settings) -> Path:
    return settings.store / "machines" / "finished_jobs.json"
