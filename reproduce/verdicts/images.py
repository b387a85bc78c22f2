"""What the choice of the test images adds to the number that decides a claim: the record of a scale, and what follows.

`reproduce.pages.images` measures it, by training again what decides; here it is read and put beside the seeds.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from reproduce import files
from reproduce.report.intervals import quantile
from reproduce.store import reading
from reproduce.verdicts.judging import Region, level_at, side
from reproduce.verdicts.verdict import Measured

GROUPS = 20
"""Parts of the test set, drawn at random; each is left out once."""


@dataclass(frozen=True)
class Line:
    """Of a claim: the setting that decides, its seeds, and the standard error of its number over test images, in the
    unit of the number."""

    claim: str
    setting: str
    seeds: int
    error: float


def file(scale: str, results: Path = Path("results")) -> Path:
    """The committed record of a scale."""
    return results / scale / "images.csv"


def lines(path: Path) -> dict[str, Line]:
    """Claim -> its line. Of a damaged record none, which is said."""
    try:
        return _lines(files.read_bytes(path)) if os.path.lexists(path) else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        reading.say(path, f"not a record of test images ({error}); restore it, or delete it and run `images` again")
        return {}


@cache
def _lines(content: bytes) -> dict[str, Line]:
    rows = csv.DictReader(io.StringIO(content.decode()))
    found = [Line(r["claim"], r["setting"], int(r["seeds"]), float(r["error"])) for r in rows]
    return {line.claim: line for line in found}


def error(claim: str, m: Measured | None, path: Path) -> float | None:
    """That of the number that decides a claim; None where it was not measured of this setting with these seeds."""
    found = lines(path).get(claim)
    return found.error if found and m and (found.setting, found.seeds) == (m.setting, m.n) else None


def add(path: Path, new: Iterable[Line]) -> None:
    """Put the lines of claims into the record, in the places of their older ones."""
    found, text = {**lines(path), **{line.claim: line for line in new}}, io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(Line)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(found[claim]), "error": f"{found[claim].error:.4g}"} for claim in sorted(found))
    files.write_text(path, text.getvalue())


def with_error(m: Measured, error: float, look: int) -> tuple[tuple[float, float], str]:
    """The interval of the deciding number over seeds and test images, whose half widths are independent, and on which
    side it then is: for, against or open."""
    if m.low is None or m.high is None:
        raise ValueError("a number without an interval over seeds has none over images")
    half = quantile(level_at(look), GROUPS - 1.0) * error
    low, high = m.value - math.hypot(m.value - m.low, half), m.value + math.hypot(m.high - m.value, half)
    return (low, high), side(Region(*m.region, m.strict), low, high)
