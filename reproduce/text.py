"""Plain text for people: aligned tables that fit the terminal, short numbers and durations; JSON for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

COLOURS = {"red": 31, "green": 32, "yellow": 33, "magenta": 35, "grey": 90, "bold": 1}
WIDTH = 80
"""Columns of running text, where the terminal has as many."""


def print_json(value: Any) -> None:
    """Exactly one JSON document."""
    print(json.dumps(value, indent=1, allow_nan=False))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), whole: Sequence[str] = ()
) -> None:
    """Print `rows` under `header`, the columns named in `right` flush right, within the width of the terminal, or in 80
    columns."""
    print("\n".join(table(header, rows, right, shutil.get_terminal_size().columns, whole)))


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    width: int | None = None,
    whole: Sequence[str] = (),
) -> list[str]:
    """The lines of an aligned table. Nothing is cut: where a `width` is too small, the widest columns take several
    lines, first between words, then within names, behind / _ : and -; at last the columns in `whole`, too. Numbers take
    one line."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    for parts, unbroken in ((r"\S+", whole), (NAME_PART, whole), (NAME_PART, ())):
        least = [max((len(p) for cell in c for p in re.findall(parts, cell)), default=0) for c in columns]
        fixed = [max(map(len, c[1 if n in right else 0 :]), default=0) for n, c in zip(header, columns, strict=True)]
        kept = (n in (*unbroken, *right) for n in header)
        least = [max(low, w) if k else low for k, w, low in zip(kept, fixed, least, strict=True)]
        while width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
            wide = [i for i, low in enumerate(least) if widths[i] > low]
            if not wide:
                break
            widths[max(wide, key=lambda i: widths[i])] -= 1
    lines = []
    for row in (header, *rows):
        cells = [_wrapped(cell, w) for cell, w in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            aligned = (c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(line, widths, header, strict=True))
            lines.append("  ".join(aligned).rstrip())
    return lines


NAME_PART = r"[^\s/_:-]*[/_:-]|[^\s/_:-]+"


def _wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of `width`; a name that is longer goes on in the next one behind one of its signs."""
    lines = [""]
    for word in text.split():
        parts = [word] if len(word) <= width else re.findall(NAME_PART, word)
        for i, part in enumerate(parts):
            gap = " " if i == 0 and lines[-1] else ""
            if lines[-1] and len(lines[-1] + gap + part) > width:
                lines.append(part)
            else:
                lines[-1] += gap + part
    return lines


def markdown(header: Sequence[str], rows: Iterable[Iterable[object]], sides: str = "") -> str:
    """A table of Markdown; bars in cells are escaped. sides: of every column, ":" for the left, "-" for the right
    (default: all left)."""
    rule = [" ---: " if side == "-" else " --- " for side in sides or ":" * len(header)]
    cells = ([re.sub(r"(?<!\\)\|", r"\|", str(cell)) for cell in line] for line in (header, *rows))
    first, *rest = (f"| {' | '.join(line)} |" for line in cells)
    return "\n".join([first, f"|{'|'.join(rule)}|", *rest])


def paint(text: str, colour: str) -> str:
    """`text` in a colour of `COLOURS`, where the output is a terminal that has colours and nobody set NO_COLOR."""
    plain = not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or "NO_COLOR" in os.environ
    return text if plain else f"\033[{COLOURS[colour]}m{text}\033[0m"


def running() -> int:
    """The columns of running text: `WIDTH`, or those of the terminal if it has fewer."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def fill(text: str, indent: str = "") -> str:
    """`text` in lines of `running` columns, each after `indent`."""
    return textwrap.fill(
        text.replace(" %", "\u00a0%"),
        running(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\u00a0%", " %")  # a percentage stays in one line


def short(number: float) -> str:
    """Three digits and a metric prefix: 1.23M, 45.6G."""
    for prefix in ("", "k", "M", "G", "T", "P", "E"):
        if abs(number) < 999.5 or prefix == "E":
            break
        number /= 1000
    return f"{number:.3g}{prefix}"


def counted(number: int, what: str) -> str:
    """1 run, 2 runs, 1,000 runs."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def named_seeds(numbers: Iterable[int]) -> str:
    """seed 3; seeds 0, 1, 2."""
    found = list(map(str, numbers))
    return f"seed{'s' * (len(found) != 1)} {', '.join(found)}"


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
