"""Numbers, intervals and tables as they are printed."""

from __future__ import annotations

import math
from collections.abc import Sequence


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


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; all columns but the first are flush right."""
    rule = "|" + "|".join([" :--- ", *[" ---: "] * (len(head) - 1)]) + "|"
    rows = (f"| {' | '.join(c.replace('|', ' ') for c in line)} |" for line in lines)
    return [f"| {' | '.join(head)} |", rule, *rows]
