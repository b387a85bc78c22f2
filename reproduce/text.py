"""Plain text for people: aligned tables that fit the terminal, short numbers and durations; JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """Exactly one JSON document."""
    print(json.dumps(value, indent=1, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print `rows` under `header`, the columns named in `right` flush right; a terminal's width is kept to."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(table(header, rows, right, width)))


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), width: int | None = None
) -> list[str]:
    """The lines of an aligned table; with a `width`, the widest columns are cut (with an ellipsis) until it fits."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    while width is not None and sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in (header, *rows):
        cells = [_cut(cell, w) for cell, w in zip(row, widths, strict=True)]
        aligned = (c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(cells, widths, header, strict=True))
        lines.append("  ".join(aligned).rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def short(number: float) -> str:
    """Three digits and a metric prefix: 1.23M, 45.6G."""
    for prefix in ("", "k", "M", "G", "T", "P", "E"):
        if abs(number) < 999.5 or prefix == "E":
            break
        number /= 1000
    return f"{number:.3g}{prefix}"


def duration(seconds: float) -> str:
    """Two units at most: 45 s, 12 min, 3 h 20 min, 5 d 4 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
