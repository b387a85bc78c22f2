"""Checksums of what a run leaves: does a results file, or a file of cells, still hold what was written?

They guard against damage and mix-ups (a flipped bit, half a copy, another job's file), not against somebody who can
write both the numbers and their checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import UserError
from reproduce.files import read_source, read_text

if TYPE_CHECKING:
    import pyarrow as pa


def of_table(table: pa.Table) -> str:
    """SHA-256 (32 hex digits) of the columns of a table: names, order, and every value to the bit."""
    import numpy as np
    import pyarrow as pa

    found = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.combine_chunks()
        found.update(f"{name} {column.type} {len(column)} {column.null_count}\n".encode())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            words = values.dictionary_encode()
            found.update(json.dumps(words.dictionary.to_pylist()).encode())
            values = words.indices
        if values.null_count:
            found.update(np.asarray(values.is_null()).tobytes())
            values = values.fill_null(0)
        found.update(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes())
    return found.hexdigest()[:32]


def of_note(note: bytes) -> bytes:
    """SHA-256 (32 hex digits) of a provenance as it is written, beside which it lies under the key `seal`."""
    return hashlib.sha256(note).hexdigest()[:32].encode()


def kept(table: pa.Table) -> bool:
    """Is the provenance of a table as it was written?"""
    metadata = table.schema.metadata or {}
    return metadata.get(b"seal") == of_note(metadata.get(b"provenance", b""))


def of_file(path: Path) -> str:
    """SHA-256 (32 hex digits) of a text file, whatever its line ends. UserError for what is no file."""
    return hashlib.sha256(read_source(path)).hexdigest()[:32]


def record(cells: Path) -> Path:
    """Where the record of a file of cells lies: what it was made from, and its checksum as `cells`."""
    return cells.with_suffix(".json")


def sealed(made: Mapping[str, Any], cells: Path) -> dict[str, Any]:
    """What the record of a file of cells says: what it was made from, and its checksum."""
    return {**made, "cells": of_file(cells)}


def broken(cells: Path) -> str:
    """Why a file of cells is not to be believed, or ""."""
    try:
        said: Any = json.loads(read_text(record(cells)))
        sealed = of_file(cells)
    except FileNotFoundError:
        return f"{cells.name} has no record {record(cells).name}"
    except (OSError, ValueError, RecursionError):
        return f"the record {record(cells).name} cannot be read"
    except UserError as error:
        return str(error)
    if not isinstance(said, dict) or said.get("cells") != sealed:
        return f"{cells.name} is not what its record says: damaged, or changed by hand"
    return ""
