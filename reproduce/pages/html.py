"""Our Markdown as HTML, whose tables name their lines and columns for screen readers."""

from __future__ import annotations

import html
import re

from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
RIGHT = ' style="text-align:right"'
NAMES = re.compile(rf"<tr>\n((?:<td>.*</td>\n)+)(?=<td{RIGHT})|<tr>\n<td>.*</td>\n")
"""Cells that name a line: those to the left before numbers to the right; the first where all are to the left."""


def to_html(text: str, name: str = "Table") -> str:
    """`text` as HTML, its headings a level lower. A table scrolls in a frame of this name that the keyboard reaches.
    HTML in the text is text, but for <br> and the tint of a cell."""
    made = re.sub(r"(</?h)(\d)", lambda h: f"{h[1]}{int(h[2]) + 1}", PARSER.render(text))
    made = made.replace("&lt;br&gt;", "<br>").replace(' style="text-align:left"', "")
    made = re.sub(r"&lt;!--tint (\d)--&gt;", r'<i class="tint\1"></i>', made)
    made = re.sub(r"<th(?=[ >])", '<th scope="col"', re.sub(r"<th[^>]*></th>", "<td></td>", made))
    made = NAMES.sub(lambda cells: re.sub(r"<td>(.+)</td>", r'<th scope="row">\1</th>', cells[0]), made)
    frame = f'<div class="wide" role="group" aria-label="{html.escape(name)}" tabindex="0"><table>'
    return made.replace(RIGHT, ' class="n"').replace("<table>", frame).replace("</table>", "</table></div>")
