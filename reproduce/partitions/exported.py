"""A partition as a file that others can use: Parquet, a row for each sample that a client holds.

Columns: `part` (train or test, only where clients have test sets), `client`, `index` (from 0, in the order of the data
set), `position` (among the samples that are in use, only where these are a subset or in another order), `label`. The
rows of a client are in its order, which batches follow. The metadata key `provenance` says what it is a partition of,
`seal` is the checksum of that.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from reproduce import __version__, files
from reproduce.data.checks import PARTS
from reproduce.declare.values import Indices, Labels
from reproduce.errors import UserError
from reproduce.store import seal

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.partitions.split import Split

ORDER = "index counts from 0 in the order of the data set's files; the rows of a client are in the client's order"

COUNTS = "there", "used"
"""How many samples the data set has, and how many of them are in use."""


@dataclass(frozen=True)
class Exported:
    """The partition in a `file` that `python -m reproduce partition` wrote, whatever the seed of the run.

    It fits the problem that it was made of, and one that uses the whole of the same data set. checksum: that of the
    file as it was printed, without one that of the file as it is now. Raises UserError for a file that is none, or
    another one.
    """

    leaves_empty: ClassVar[bool] = True  # as the partition that was exported said
    shares_samples: ClassVar[bool] = True
    data_seed: ClassVar[int] = 0
    by_place: ClassVar[bool] = True  # its lists are of these data and of no part of them

    file: str
    checksum: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", os.fspath(self.file))
        if not self.checksum:
            object.__setattr__(self, "checksum", read(Path(self.file))[1]["checksum"])

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._parts(0, labels, clients)

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._parts(1, test_labels, clients)

    def _parts(self, which: int, labels: Labels, clients: int) -> list[Indices]:
        """The clients' positions in `labels`, of the training or of the test set."""
        rows, about = read(Path(self.file))
        if about["checksum"] != self.checksum:
            raise UserError(f"{self.file} has the checksum {about['checksum']}, declared is {self.checksum}")
        if clients != about["clients"]:
            raise UserError(f"{self.file} is a partition among {about['clients']} clients, not {clients}")
        if which and "part" not in rows:
            raise UserError(f"{self.file} has no test sets of the clients: set test_partition=False")
        rows = rows[rows["part"] == PARTS[which]] if "part" in rows else rows
        whole, used = (about["samples"][PARTS[which]][name] for name in COUNTS)
        # Those in use may be fewer, or be in another order (`split.chosen`).
        fits = [c for c, count in (("position", used), ("index", whole)) if c in rows and count == len(labels)]
        if not fits:
            counts = " or ".join(f"{count:,}" for count in dict.fromkeys((used, whole)))
            raise UserError(f"{self.file} is of {about['data']}, {counts} {PARTS[which]} samples, not {len(labels):,}")
        for column in fits:
            places = rows[column].to_numpy(np.int64)
            wrong = np.flatnonzero(labels[places] != rows["label"].to_numpy())
            if not len(wrong):
                sizes = np.bincount(rows["client"], minlength=clients)
                return np.split(places, np.cumsum(sizes)[:-1])  # the rows are in the order of the clients
        first, said = places[wrong[0]], rows["label"].iloc[wrong[0]]
        raise UserError(
            f"{self.file} is of {about['data']} (SHA-256 {about['data_sha256'][:12]}), and these are other data: "
            f"{PARTS[which]} sample {first} has the label {labels[first]}, there {said}"
        )


def rows(split: Split) -> pd.DataFrame:
    """The rows of a split, as they are exported."""
    import pandas as pd

    wholes, tables = [np.arange(_counts(split, k)[0]) for k in range(len(split.parts))], []
    apart = not all(map(np.array_equal, split.used, wholes))
    for which, parts in enumerate(split.parts):
        positions = np.concatenate(parts)
        table = pd.DataFrame({"client": np.repeat(np.arange(len(parts)), [len(part) for part in parts])})
        table["index"] = split.used[which][positions]
        if apart:
            table["position"] = positions
        table["label"] = split.labels[which][positions]
        if len(split.parts) > 1:
            table.insert(0, "part", PARTS[which])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _counts(split: Split, which: int) -> tuple[int, int]:
    """`COUNTS` of the training or of the test set."""
    return len((split.data.train_y, split.data.test_y)[which]), len(split.used[which])


def checksum(table: pd.DataFrame) -> str:
    """SHA-256 of the rows as CSV with a header, lines ended by \\n."""
    return hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode()).hexdigest()


def provenance(split: Split, table: pd.DataFrame, **more: Any) -> dict[str, Any]:
    """What a partition is of, ready for JSON; `more` is said, too."""
    problem = split.problem
    return {
        **more,
        "data": str(problem.data),
        "data_sha256": split.data.sha256,
        "data_note": split.data.note,
        "partition": str(problem.partition),
        "clients": problem.clients,
        "seed": split.seed,
        "depends_on_seed": split.by_seed,
        "samples": {part: dict(zip(COUNTS, _counts(split, k), strict=True)) for k, part in enumerate(PARTS)},
        "subset_seed": problem.subset_seed,
        "order": ORDER,
        "versions": {"reproduce": __version__, "numpy": np.__version__},
        "checksum": checksum(table),
    }


def write(path: Path, table: pd.DataFrame, about: dict[str, Any]) -> None:
    """Write the rows with their provenance; equal splits give equal files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    note = json.dumps(about).encode()
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({b"provenance": note, b"seal": seal.of_note(note)})
    files.write(path, lambda file: pq.write_table(arrow, file))


def is_ours(path: Path) -> bool:
    """Is there a partition that was exported?"""
    try:
        read(path)
    except UserError:
        return False
    return True


def read(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows and the provenance of an exported partition; UserError for a file that is none, or is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise UserError(f"{path}: no such file; `python -m reproduce partition PANEL -o {path}` writes one")
    try:
        arrow = pq.read_table(pa.BufferReader(files.read_bytes(path)))
        about = json.loads((arrow.schema.metadata or {}).get(b"provenance", b"null"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as Parquet: it is another file, or damaged") from error
    if not isinstance(about, dict) or "checksum" not in about or "client" not in arrow.column_names:
        raise UserError(f"{path} is no partition that `python -m reproduce partition` wrote")
    if not seal.kept(arrow):
        raise UserError(f"{path} is damaged: its provenance is not what was written; copy it again")
    table = arrow.to_pandas()
    if (found := checksum(table)) != about["checksum"]:
        raise UserError(
            f"{path} is damaged: its rows have the checksum {found}, not {about['checksum']}; copy it again"
        )
    return table, about
