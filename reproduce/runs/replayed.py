"""The record of replays, results/SCALE/replay.csv: one line a job, what was compared and whether it agreed."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

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
    """Job ("fedacs/toy2d") -> its line. Of a damaged record, and for damaged lines, none, which is said: their results
    count as not replayed."""
    path = file(scale)
    try:
        return _lines(path, files.read_bytes(path)) if os.path.lexists(path) else {}
    except (OSError, UserError) as error:
        reading.say(path, getattr(error, "strerror", None) or error)
        return {}


@cache
def _lines(path: Path, content: bytes) -> dict[str, dict[str, str]]:
    try:
        rows = _rows(content)
    except reading.Unusable as error:
        reading.say(path, error)
        return {}
    jobs = Counter(row.get("job") for row in rows)
    found = {}
    for i, row in enumerate(rows):
        if jobs[row.get("job")] > 1 or not _is_line(row):
            reading.say(path, f"line {i + 2} is not the record of a replay")
        else:
            found[row["job"]] = row
    return found


def _rows(content: bytes) -> list[dict[str, str]]:
    """The lines of a record, which may be damaged each; Unusable for what is no such record."""
    try:
        rows = csv.DictReader(content.decode().splitlines())
        if tuple(rows.fieldnames or ()) == COLUMNS:
            return list(rows)
    except (UnicodeDecodeError, csv.Error):
        pass
    raise reading.Unusable("not a record of replays; restore it, or delete it and replay again")


def _is_line(row: Mapping[str, Any]) -> bool:
    texts = all(isinstance(text, str) and text.isprintable() for text in row.values())
    known = texts and row["agrees"] in ("yes", "no") and re.fullmatch(r"\w+/[\w.-]+", row["job"])
    return bool(known and re.fullmatch("[0-9]{1,9}", row["asked"]) and tuple(row) == COLUMNS)


def check(scale: str) -> None:
    """UserError if the record of a scale is none: lines that are added would replace what is in it."""
    path = file(scale)
    if path.is_file():
        try:
            _rows(path.read_bytes())
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
