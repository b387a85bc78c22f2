"""Results files and cells as they are read: whole, sealed, and of the form that is written.

Whoever reads one reads it here, since a file may be cut, changed by hand, of an older program or of another one. What
does not fit is refused in one line, and whoever asked goes on without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.experiment import PARTS, Label
from reproduce.errors import say_once
from reproduce.store import seal

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BROKEN = "not a complete results file"


class Unusable(Exception):
    """A file that is not what it should be; the message says why, in a line without its name."""


@dataclass(frozen=True, eq=False)
class Stored:
    """One run of a results file: an experiment as it was declared, with one seed, and where its numbers come from.

    training: what is said of the training that it was part of (commit, date, machine, ...). code: digest of the source
    that gave its numbers. rows: how many it has, from row `start` on. seconds: of the processor, that it took; samples:
    that it was trained on; both None where nothing says so.
    """

    experiment: Mapping[str, Any]
    seed: int
    training: Mapping[str, Any]
    code: str
    rows: int
    seconds: float | None = None
    samples: float | None = None
    start: int = 0

    @property
    def labels(self) -> Mapping[str, Label]:
        labels: Mapping[str, Label] = self.experiment["labels"]
        return labels

    @property
    def name(self) -> tuple[Any, ...]:
        """What tells it from the other runs of its file: its labels and its seed."""
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
        note = json.loads((table.schema.metadata or {}).get(b"provenance", b"null"))
        if not isinstance(note, dict) or not seal.kept(table):
            raise Unusable(f"{BROKEN}: its provenance is not what was written")
        if note.get("content") != seal.of_table(table):
            raise Unusable(f"{BROKEN}: it holds other numbers than were written")
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        # A process killed while copying, or a full disk, leaves half a file; nothing in it can be trusted.
        raise Unusable(BROKEN) from error
    return table, _runs(note)


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


def say(path: Path, why: object) -> None:
    """On stderr, once a process: whoever asked goes on without the file."""
    say_once(f"not used: {path}: {why}")


# --- cells ------------------------------------------------------------------------------------------------------------


def cells(path: Path) -> pd.DataFrame:
    """The rows of a file of cells, all as text; Unusable for one that is not what its record says. Whoever changes them
    changes a copy."""
    if not path.is_file():
        raise Unusable("not a file")
    try:
        if broken := seal.broken(path):
            raise Unusable(broken)
        status = path.stat()
        return _cells(path, status.st_mtime_ns, status.st_size)
    except (OSError, RecursionError) as error:
        raise Unusable(f"cannot be read ({getattr(error, 'strerror', None) or 'nested too deeply'})") from error


@cache
def _cells(path: Path, modified: int, size: int) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(path, dtype=str, keep_default_na=False)
