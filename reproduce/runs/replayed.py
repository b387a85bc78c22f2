"""The record of replays, results/SCALE/replay.csv: one line a job, what was compared and whether it agreed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from reproduce import files
from reproduce.errors import UserError
from reproduce.store import reading

COLUMNS = (
    *("job", "result", "code", "seeds", "asked", "rounds", "rows", "deviation", "where", "tolerance"),
    *("agrees", "seconds", "processor", "instructions", "date"),
)
"""docs/architecture.md says what they hold."""


def file(scale: str) -> Path:
    """The committed record of a scale."""
    return Path(f"results/{scale}/replay.csv")


def lines(scale: str) -> dict[str, dict[str, str]]:
    """Job ("fedacs/toy2d") -> its line. Of a damaged record none, which is said: its results count as not replayed."""
    path = file(scale)
    try:
        return _lines(files.read_bytes(path)) if os.path.lexists(path) else {}
    except (OSError, UserError, reading.Unusable) as error:
        reading.say(path, getattr(error, "strerror", None) or error)
        return {}


@cache
def _lines(content: bytes) -> dict[str, dict[str, str]]:
    """Unusable for what is no record, or has a line that is none."""
    reader = csv.DictReader(content.decode(errors="replace").splitlines())
    rows, known = [*reader], tuple(reader.fieldnames or ()) == COLUMNS
    if known and all(len(row) == len(COLUMNS) and row["agrees"] in ("yes", "no") for row in rows):
        return {row["job"]: row for row in rows}
    raise reading.Unusable("not a record of replays; restore it, or delete it and replay again")


def check(scale: str) -> None:
    """UserError if the record of a scale is none: lines that are added would replace what is in it."""
    path = file(scale)
    if path.is_file():
        try:
            _lines(path.read_bytes())
        except (reading.Unusable, OSError) as error:
            raise UserError(f"{path}: {error}") from error


def add(scale: str, new: Iterable[Mapping[str, str]]) -> None:
    """Put the lines of jobs into the record, in the places of their older ones; what `check` raises."""
    check(scale)
    found, text = {**lines(scale), **{line["job"]: dict(line) for line in new}}, io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found[job] for job in sorted(found))
    files.write_text(file(scale), text.getvalue())
