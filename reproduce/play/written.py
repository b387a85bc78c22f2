"""Numbers as they are written: seeds and grids on the command line; numbers and intervals in print."""

from __future__ import annotations

import math
import re

from reproduce.errors import UserError


def seeds(text: str) -> tuple[int, ...]:
    """The seeds of "0-4" or "0,2,7-9"; UserError for what is none."""
    found: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part)
        if ends is None:
            raise UserError(f"seeds '{text}': use whole numbers and ranges, such as 0-4 or 0,2,7")
        low, high = int(ends[1]), int(ends[2] or ends[1])
        if high - low >= 10_000:
            raise UserError(f"seeds '{text}': these are too many")
        found += range(low, high + 1)
    if not found or len(set(found)) < len(found) or max(found) >= 2**32:
        raise UserError(f"seeds '{text}': use different numbers, from 0 to 2^32 - 1")
    return tuple(found)


def grid(text: str) -> tuple[float, ...]:
    """The numbers of "0.1,1,10"; UserError for what is none."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"grid '{text}': use numbers and commas, such as 0.1,1,10") from None


def number(value: float) -> str:
    """Two decimals, three digits of what is small; a true minus sign; "" for none."""
    if math.isnan(value):
        return ""
    value = round(value, 9) + 0.0  # sums in another order differ in their last bits
    text = f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"
    return text.replace("-", "−")


def span(low: float, high: float) -> str:
    """An interval, "" without one."""
    return "" if math.isnan(low) else f"{number(low)} to {number(high)}"
