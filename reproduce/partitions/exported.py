"""A partition as a file that others can use: Parquet, a row for each sample that a client holds.

Columns: `part` (train or test, only where clients have test sets), `client`, `index` (from 0, in the order of the data
set), `label`. The rows of a client are in its order, which batches follow. The metadata key `provenance` says what it
is a partition of.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce import files
from reproduce.data.dataset import PARTS

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.partitions.split import Split

ORDER = "index counts from 0 in the order of the data set's files; the rows of a client are in the client's order"


def rows(split: Split) -> pd.DataFrame:
    """The rows of a split, as they are exported."""
    import pandas as pd

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
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({b"provenance": json.dumps(about).encode()})
    files.write(path, lambda file: pq.write_table(arrow, file))
