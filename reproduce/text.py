"""Plain text for people: aligned tables that fit the terminal, short numbers and durations; JSON for programs."""

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


def print_json(value: Any) -> None:
    """Exactly one JSON document."""
    print(json.dumps(value, indent=1, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print `rows` under `header`, the columns named in `right` flush right. Nothing is cut: where the terminal, or 80
    columns, are too narrow, the widest columns of several words take several lines."""
    columns = [*zip(header, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    words = [max(map(len, " ".join(column).split())) for column in columns]
    room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
    while sum(widths) > room and (
        loose := [i for i, name in enumerate(header) if widths[i] > words[i] and name not in right]
    ):
        widths[max(loose, key=widths.__getitem__)] -= 1
    for row in (header, *rows):
        cells = [textwrap.wrap(c, w, break_on_hyphens=False) for c, w in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            aligned = (c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(line, widths, header, strict=True))
            print("  ".join(aligned).rstrip())


def markdown(header: Sequence[str], rows: Iterable[Iterable[object]], sides: str = "") -> str:
    """A table of Markdown; bars in cells are escaped. sides: of every column, ":" for the left, "-" for the right
    (default: all left)."""
    rule = [" ---: " if side == "-" else " --- " for side in sides or ":" * len(header)]
    cells = ([re.sub(r"(?<!\\)\|", r"\|", str(cell)) for cell in line] for line in (header, *rows))
    first, *rest = (f"| {' | '.join(line)} |" for line in cells)
    return "\n".join([first, f"|{'|'.join(rule)}|", *rest])


def spelled(path: object) -> str:
    """The name of a file as text; of one that is not in UTF-8 the odd bytes are spelled out."""
    return os.fsencode(str(path)).decode(errors="backslashreplace")


def paint(text: str, colour: str) -> str:
    """`text` in a colour of `COLOURS`, where the output is a terminal that has colours and nobody set NO_COLOR."""
    plain = not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or "NO_COLOR" in os.environ
    return text if plain else f"\033[{COLOURS[colour]}m{text}\033[0m"


def fill(text: str, indent: str = "") -> str:
    """`text` in lines of 80 columns, or those of the terminal if it has fewer, each after `indent`."""
    width = min(80, shutil.get_terminal_size().columns)
    wrapper = textwrap.TextWrapper(width, indent, indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text)


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


def counted_seeds(fewest: int, most: int) -> str:
    """1 seed, 3 seeds, 3 to 10 seeds."""
    return f"{fewest} to {most} seeds" if fewest < most else counted(most, "seed")


def named_seeds(numbers: Iterable[int]) -> str:
    """seed 3; seeds 0, 1, 2."""
    names = list(map(str, numbers))
    return f"seed{'s' * (len(names) != 1)} {', '.join(names)}"


def duration(seconds: float) -> str:
    """Two units at most: 45 s, 12 min, 3 h 20 min, 5 d 4 h, 1.5 years."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h" if hours < 366 * 24 else f"{hours / (365.25 * 24):.1f} years"
