"""HTML: our Markdown, whose tables name their lines and columns for screen readers; a claim's number as a drawing."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable

from markdown_it import MarkdownIt

from reproduce.verdicts import wording
from reproduce.verdicts.verdict import Measured

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
TAG = r'</?(?:thead|tbody|tr|th|td|b)(?: colspan="\d+"| align="right")?>|<!--tint \d-->'
TABLE = re.compile(rf"(?m)^(<table>\n(?:{TAG}|[^<])*</table>\n)")
RIGHT = ' style="text-align:right"'
NAMES = re.compile(rf"<tr>\n((?:<td>.*</td>\n)+)(?=<td{RIGHT})|<tr>\n<td>.*</td>\n")
"""Cells that name a line: those to the left before numbers to the right; the first where all are to the left."""


def to_html(text: str, name: str = "Table") -> str:
    """Returns `text`, which is Markdown, as HTML with its headings a level lower. A table scrolls in a frame of this
    name that the keyboard reaches. HTML in the text is escaped, but for <br>, the tint of a cell and the tables of
    `report.formats`."""
    parts = TABLE.split(text)
    parts[::2] = map(PARSER.render, parts[::2])
    parts[1::2] = (re.sub(r"(?<=>)(?=<t[dh]|</tr>)", "\n", table) for table in parts[1::2])  # as the parser writes them
    made = re.sub(r"(</?h)(\d)", lambda h: f"{h[1]}{int(h[2]) + 1}", "".join(parts)).replace(' align="right"', RIGHT)
    made = made.replace("&lt;br&gt;", "<br>").replace(' style="text-align:left"', "")
    made = re.sub(r"(?:&lt;|<)!--tint (\d)--(?:&gt;|>)", r'<i class="tint\1"></i>', made)
    made = made.replace("<th colspan", '<th scope="colgroup" colspan')
    made = re.sub(r"<th(?=>| style)", '<th scope="col"', re.sub(r"<th[^>]*></th>", "<td></td>", made))
    made = NAMES.sub(lambda cells: re.sub(r"<td>(.+)</td>", r'<th scope="row">\1</th>', cells[0]), made)
    frame = f'<div class="wide" role="group" aria-label="{html.escape(name)}" tabindex="0"><table>'
    return made.replace(RIGHT, ' class="n"').replace("<table>", frame).replace("</table>", "</table></div>")


WIDTH, HEIGHT, MARGIN, MIDDLE = 260, 46, 8, 15


def forest(m: Measured, printed: Measured | None = None) -> str:
    """An SVG: the demanded region is tinted, its ends are lines, the interval is a bar; the paper's number is open.

    The axis is logarithmic for ratios; what is unbounded ends in an arrow. `printed` is drawn if it is the same kind of
    number. Colours come from the page, by class.
    """
    theirs = printed if printed and (printed.what, printed.unit) == (m.what, m.unit) else None
    x = _axis(m, theirs)
    low, high = x(m.region[0]), x(m.region[1])
    parts = [f'<rect class="zone" x="{low:.1f}" y="3" width="{max(high - low, 1):.1f}" height="24"/>']
    parts += [_line("bound", x(e), x(e), 3, 27) for e in _ends(m)]
    if m.low is not None and m.high is not None and m.low != m.high:
        parts += [_line("ci", x(m.low), x(m.high), MIDDLE, MIDDLE), _stop(x(m.low), m.low), _stop(x(m.high), m.high)]
    if theirs:
        parts.append(f'<circle class="theirs" cx="{x(theirs.value):.1f}" cy="{MIDDLE}" r="4.5"/>')
    parts.append(f'<circle class="ours" cx="{x(m.value):.1f}" cy="{MIDDLE}" r="3.5"/>')
    for end in _ends(m)[:2]:
        anchor = "start" if x(end) < 40 else "end" if x(end) > WIDTH - 40 else "middle"
        parts.append(f'<text x="{x(end):.1f}" y="41" text-anchor="{anchor}">{html.escape(wording.number(end))}</text>')
    said = f"Ours: {wording.measured(m)}; required: {wording.required(m)}"
    said += f"; paper: {wording.amount(theirs.value, theirs.unit, theirs.what)}" if theirs else ""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


def _axis(m: Measured, printed: Measured | None) -> Callable[[float], float]:
    """A function from a number to its place on the drawing; numbers beyond the ends are put at the ends."""
    log = m.what == "ratio" and m.value > 0

    def scaled(value: float) -> float:
        return value if not log else math.log(value) if value > 0 else -math.inf

    shown = [m.value, m.low, m.high, *_ends(m), printed.value if printed else None]
    finite = [s for v in shown if v is not None and math.isfinite(s := scaled(v))] or [0.0]
    pad = 0.12 * (max(finite) - min(finite)) or 0.5 * max(abs(finite[0]), 1e-9)
    low, high = min(finite) - pad, max(finite) + pad
    return lambda value: MARGIN + (WIDTH - 2 * MARGIN) * (min(max(scaled(value), low), high) - low) / (high - low)


def _ends(m: Measured) -> list[float]:
    """The bounds of the region that are numbers, each once."""
    zero = m.what == "ratio" and m.region[0] == 0
    return list(dict.fromkeys(e for e in m.region if math.isfinite(e) and not (zero and e == 0)))


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1}" y2="{y2}"/>'


def _stop(x: float, end: float) -> str:
    if math.isfinite(end):
        return _line("ci", x, x, MIDDLE - 4, MIDDLE + 4)
    tip = x + math.copysign(5, -end)
    return f'<path class="ci" d="M{tip:.1f} {MIDDLE - 4} L{x:.1f} {MIDDLE} L{tip:.1f} {MIDDLE + 4}"/>'
