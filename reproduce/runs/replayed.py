"""The record of replays, results/SCALE/replay.csv: one line a job, what was compared and whether it agreed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from reproduce import files
from reproduce.errors import UserError

COLUMNS = (
    *("job", "result", "code", "seeds", "asked", "rounds", "rows", "deviation", "where", "tolerance"),
    *("agrees", "seconds", "processor", "instructions", "date"),
)
"""docs/architecture.md says what they hold."""


def file(scale: str) -> Path:
    """The committed record of a scale."""
    return Path(f"results/{scale}/replay.csv")


def lines(scale: str) -> dict[str, dict[str, str]]:
    """Job ("fedacs/toy2d") -> its line; UserError for a file that is no record."""
    path = file(scale)
    return _lines(path, path.read_bytes()) if os.path.lexists(path) else {}


@cache
def _lines(path: Path, content: bytes) -> dict[str, dict[str, str]]:
    reader = csv.DictReader(content.decode(errors="replace").splitlines())
    rows, known = [*reader], tuple(reader.fieldnames or ()) == COLUMNS
    if known and all(len(row) == len(COLUMNS) and row["agrees"] in ("yes", "no") for row in rows):
        return {row["job"]: row for row in rows}
    raise UserError(f"{path}: not a record of replays; restore it, or delete it and replay again")


def add(scale: str, line: Mapping[str, str]) -> None:
    """Put the line of a job into the record, in the place of its older one; what `lines` raises."""
    found, text = {**lines(scale), line["job"]: line}, io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found[job] for job in sorted(found))
    files.write_text(file(scale), text.getvalue())
