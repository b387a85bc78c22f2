"""A partition as a file that others can use: Parquet, a row for each sample that a client holds.

Columns: `part` (train or test, only where clients have test sets), `client`, `index` (from 0, in the order of the data
set), `label`. The rows of a client are in its order, which batches follow. The metadata key `provenance` says what it
is a partition of.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from reproduce import files
from reproduce.data.dataset import PARTS
from reproduce.data.load import sha256
from reproduce.declare.values import Indices, Labels
from reproduce.errors import UserError
from reproduce.partitions.heldout import validated
from reproduce.partitions.split import Split, chosen, loaded
from reproduce.settings import settings

ORDER = "index counts from 0 in the order of the data set's files; the rows of a client are in the client's order"


def rows(split: Split) -> pd.DataFrame:
    """The rows of a split, as they are exported."""
    tables = []
    for which, parts in enumerate(split.parts):
        positions = np.concatenate(parts)
        table = pd.DataFrame({"client": np.repeat(np.arange(len(parts)), [len(part) for part in parts])})
        table["index"], table["label"] = split.used[which][positions], split.labels[which][positions]
        if len(split.parts) > 1:
            table.insert(0, "part", PARTS[which])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def checksum(table: pd.DataFrame) -> str:
    """SHA-256 of the rows as CSV with a header, lines ended by \\n."""
    return hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode()).hexdigest()


def provenance(split: Split, table: pd.DataFrame, **more: Any) -> dict[str, Any]:
    """The provenance of a partition for JSON, with the keys of `more`."""
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
        "samples": {
            part: {"there": len(labels), "used": len(used)}
            for part, labels, used in zip(PARTS, (split.data.train_y, split.data.test_y), split.used, strict=True)
        },
        "subset_seed": problem.subset_seed,
        "order": ORDER,
        "versions": {name: version(name) for name in ("reproduce", "numpy")},
        "checksum": checksum(table),
    }


def write(path: Path, table: pd.DataFrame, about: dict[str, Any]) -> None:
    """Write the rows with their provenance; equal splits give equal files."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({b"provenance": json.dumps(about).encode()})
    files.write(path, lambda file: pq.write_table(arrow, file))


@dataclass(frozen=True)
class FromFile:
    """The clients of a file, Parquet or CSV, with columns as `write` makes them; `label` and `part` may lack.

    problem: whose samples they are. data: where a part of it is held out, which no client has then.
    """

    file: str
    sha256: str
    clients: int
    problem: Any = None
    data: Any = None

    by_place: ClassVar[bool] = True
    shares_samples: ClassVar[bool] = True
    leaves_empty = property(lambda self: self.data is not None)

    def __str__(self) -> str:
        return self.file

    @classmethod
    def of(cls, file: str) -> FromFile:
        """The record of a file. Raises UserError if it cannot be read, or has no such clients."""
        clients = read(file)["client"]
        if {*clients} != {*range(clients.nunique())}:
            raise UserError(f"{file}: the column client has other numbers than 0, 1, ... without gaps: number them so")
        return cls(file, sha256(Path(file)), clients.nunique())

    def put(self, problem: Any) -> Any:
        """The problem with these clients."""
        return replace(problem, partition=replace(self, problem=problem), clients=self.clients)

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._held(0, labels)

    def split_test(self, labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._held(1, test_labels)

    def _held(self, which: int, labels: Labels) -> list[Indices]:
        """Positions in the samples in use, of the training or of the test set, a list per client."""
        table, part = read(self.file), PARTS[0 if self.data else which]  # what is held out is of the training set
        table = table[table["part"] == part] if "part" in table else table[: None if part == PARTS[0] else 0]
        problem = validated(self.problem) if self.data else self.problem
        used = chosen(problem, loaded(problem, settings()))[which]
        used = self.data.places[which][used] if self.data else used
        found = table["index"].map(pd.Series(np.arange(len(used)), used))
        there = found.notna()
        if not self.data and not there.all():
            raise UserError(f"{self.file}: sample {table['index'][~there].iloc[0]} is not in use in {problem.data}")
        if "label" in table and not np.array_equal(labels[found[there].astype(int)], table["label"][there]):
            raise UserError(f"{self.file} has other labels than {problem.data}: it is a partition of other data")
        return [found[there & (table["client"] == m)].to_numpy(np.int64) for m in range(self.clients)]


def read(file: str) -> pd.DataFrame:
    """The rows of a file. Raises UserError if it cannot be read, or lacks `client` or `index`."""
    try:
        table = pd.read_csv(file) if file.endswith(".csv") else pd.read_parquet(file)
        return table[["client", "index", *({"part", "label"} & {*table})]]
    except (OSError, ValueError, KeyError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"the partition {file} has no rows with client and index for each sample ({why})") from error
