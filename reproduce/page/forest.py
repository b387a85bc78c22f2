"""The number that decides a claim as a small drawing (SVG): as measured, with its interval, and where it should be."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

from reproduce.verdicts import words
from reproduce.verdicts.verdict import Measured

WIDTH, HEIGHT, MARGIN = 260, 46, 8


def forest(m: Measured, printed: Measured | None = None) -> str:
    """An SVG: the demanded region is tinted, its ends are lines, the interval is a bar; the paper's number is open.

    The axis is logarithmic for ratios; what is unbounded ends in an arrow. `printed` is drawn if it is the same kind of
    number. Colours come from the page, by class.
    """
    theirs = printed if printed and (printed.what, printed.unit) == (m.what, m.unit) else None
    x = _axis(m, theirs)
    low, high = x(m.region[0]), x(m.region[1])
    y = 15
    parts = [f'<rect class="zone" x="{low:.1f}" y="3" width="{max(high - low, 1):.1f}" height="24"/>']
    parts += [f'<line class="bound" x1="{x(e):.1f}" x2="{x(e):.1f}" y1="3" y2="27"/>' for e in _ends(m)]
    if m.low is not None and m.high is not None and m.low != m.high:
        parts.append(f'<line class="ci" x1="{x(m.low):.1f}" x2="{x(m.high):.1f}" y1="{y}" y2="{y}"/>')
        parts += [_stop(x(end), y, end) for end in (m.low, m.high)]
    if theirs:
        parts.append(f'<circle class="theirs" cx="{x(theirs.value):.1f}" cy="{y}" r="4.5"/>')
    parts.append(f'<circle class="ours" cx="{x(m.value):.1f}" cy="{y}" r="3.5"/>')
    parts += [_label(x(e), words.number(e)) for e in list(_ends(m))[:2]]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said(m, theirs)}">{"".join(parts)}</svg>'


def said(m: Measured, printed: Measured | None = None) -> str:
    """What the drawing shows, in words."""
    text = f"Ours: {words.measured(m)}; required: {words.required(m) or 'no bound'}"
    return text + (f"; paper: {words.amount(printed.value, printed.unit, printed.what)}" if printed else "")


class _axis:
    """From a number to a place on the drawing; numbers beyond the ends are put at the ends."""

    def __init__(self, m: Measured, printed: Measured | None) -> None:
        self.log = m.what == "ratio" and m.value > 0
        shown = [m.value, m.low, m.high, *_ends(m), *([printed.value] if printed else [])]
        known = [self._scaled(v) for v in shown if v is not None]
        finite = [v for v in known if math.isfinite(v)] or [0.0]
        pad = 0.12 * (max(finite) - min(finite)) or 0.5 * max(abs(finite[0]), 1e-9)
        self.low, self.high = min(finite) - pad, max(finite) + pad

    def __call__(self, value: float) -> float:
        inside = min(max(self._scaled(value), self.low), self.high)
        return MARGIN + (WIDTH - 2 * MARGIN) * (inside - self.low) / (self.high - self.low)

    def _scaled(self, value: float) -> float:
        if not self.log:
            return value
        return math.log(value) if value > 0 else -math.inf


def _ends(m: Measured) -> Iterable[float]:
    """The bounds of the region that are numbers, each once."""
    zero = m.what == "ratio" and m.region[0] == 0
    return dict.fromkeys(e for e in m.region if math.isfinite(e) and not (zero and e == 0))


def _stop(x: float, y: float, end: float) -> str:
    if math.isfinite(end):
        return f'<line class="ci" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4}" y2="{y + 4}"/>'
    tip = 5 if end < 0 else -5
    return f'<path class="ci" d="M{x + tip:.1f} {y - 4} L{x:.1f} {y} L{x + tip:.1f} {y + 4}"/>'


def _label(x: float, text: str) -> str:
    anchor = "start" if x < 40 else "end" if x > WIDTH - 40 else "middle"
    return f'<text x="{x:.1f}" y="41" text-anchor="{anchor}">{html.escape(text)}</text>'
