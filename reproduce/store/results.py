"""Results with provenance: the histories of a job as one tidy file (docs/architecture.md)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare.experiment import Label, training_of, trainings
from reproduce.errors import UserError
from reproduce.store import reading, seal

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.engine.cohort import Run


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

    `seconds`, `local_runs` and the peak memory stay those of all of them together; the processor's time is divided.
    """
    import pandas as pd

    result = _Result(path)
    note, seconds = result.note, [sum(each) for each in result.note["cpu_seconds_of"]]
    for i, (file, others) in enumerate(parts):
        rows = [result.rows(result.labels[i], seed) for seed in note["seeds"]]
        mine = {
            "experiments": [note["experiments"][i]],
            "cpu_seconds_of": [note["cpu_seconds_of"][i]],
            "cpu_seconds": round(note["cpu_seconds"] * seconds[i] / sum(seconds), 2),
        }
        _write(file, pd.concat(rows, ignore_index=True), {**note, **mine, **others})


SUMS = ("seconds", "cpu_seconds", "samples", "flops")
OF_EACH = (
    *("code", "digest", "git", "date", "versions", "machine", "compiled", "device", "threads"),
    *("configured_precision", "precision", "resumed", "instructions_changed", "peak_memory"),
)
"""Entries of a provenance that are said of each training: of the newest in their places, of others under `earlier`."""


class _Result:
    """A results file: its rows `frame`, its provenance `note`. Raises UserError for one that is damaged."""

    def __init__(self, path: Path) -> None:
        try:
            table, self.note = reading.result(path)
        except reading.Unusable as error:
            raise UserError(f"{path}: {error}; delete it, and train again") from error
        self.frame = table.to_pandas()
        self.labels: list[Mapping[str, Label]] = [e["labels"] for e in self.note["experiments"]]

    def has(self, labels: Mapping[str, Label], seed: int) -> bool:
        return labels in self.labels and seed in self.note["seeds"]

    def rows(self, labels: Mapping[str, Label], seed: int) -> pd.DataFrame:
        """Of one run, in the columns that a file of its own would have."""
        names = {name for each in self.labels for name in each}
        mine = self.frame["seed"] == seed
        for name in names:
            mine &= self.frame[name] == labels[name] if name in labels else self.frame[name].isna()
        return self.frame[mine].drop(columns=[*(names - labels.keys())]).assign(**labels)

    def experiment(self, labels: Mapping[str, Label]) -> dict[str, Any]:
        return dict(self.note["experiments"][self.labels.index(labels)])

    def seconds(self, labels: Mapping[str, Label], seed: int) -> float:
        """Of the processor, that one run took."""
        return float(self.note["cpu_seconds_of"][self.labels.index(labels)][self.note["seeds"].index(seed)])


def join(path: Path, new: Path, labels: Sequence[Mapping[str, Label]], seeds: Sequence[int], code: str) -> None:
    """Put the runs of the results file `new` beside those of `path`, and in the places of those of the same name.

    labels: of all experiments, seeds: of each of them, in the order that the runs get; what is not among them is left
    out. The provenance becomes that of `new`, with the digest `code` of the code of all experiments, what all trainings
    took together, replaced ones included, and what that of `path` said of its own training under `earlier`. Raises
    UserError if the files do not go together.
    """
    import pandas as pd

    old, late = _Result(path), _Result(new)
    if any(old.note["data"].get(name, digest) != digest for name, digest in late.note["data"].items()):
        raise UserError(
            f"the runs of {new} cannot be added to {path}: they were trained on other data; restore that data and "
            "delete the former, or delete the latter, and train again"
        )
    runs = [(mine, seed) for mine in labels for seed in seeds]
    source = [late if late.has(*run) else old for run in runs]
    if not all(file.has(*run) for file, run in zip(source, runs, strict=True)):
        raise UserError(f"{new} and {path} have not all settings with seeds {', '.join(map(str, seeds))}")
    rows = [file.rows(*run) for file, run in zip(source, runs, strict=True)]
    seconds = iter([file.seconds(*run) for file, run in zip(source, runs, strict=True)])
    note = {
        **_of_both(old.note, late.note),
        "code": code,
        "seeds": list(seeds),
        "experiments": [file.experiment(mine) for mine, file in zip(labels, source[:: len(seeds)], strict=True)],
        "cpu_seconds_of": [[next(seconds) for _ in seeds] for _ in labels],
    }
    if len(late.labels) < len(labels):
        note["only"] = late.labels
    made = trainings(note)
    used = [training_of(made, *run) for run in runs]
    note["earlier"] = [training for training in note["earlier"] if any(training is one for one in used)]
    _write(path, pd.concat(rows, ignore_index=True), note)


def _of_both(old: Mapping[str, Any], late: Mapping[str, Any]) -> dict[str, Any]:
    """A provenance with what two trainings took together, and what is said of each."""
    parts = [Counter(note["seconds_by_part"]) for note in (old, late)]
    own = trainings(old)[0]
    return {
        **late,
        **{name: old[name] + late[name] for name in SUMS},
        "data": {**old["data"], **late["data"]},
        "seconds_by_part": {name: round(parts[0][name] + parts[1][name], 2) for name in parts[0] | parts[1]},
        "local_runs": dict(Counter(old["local_runs"]) + Counter(late["local_runs"])),
        "strategies": sorted({*old["strategies"], *late["strategies"]}),
        "earlier": [{k: own[k] for k in ("seeds", "only", *OF_EACH) if k in own}, *old.get("earlier", ())],
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
