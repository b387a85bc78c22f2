"""Markdown as HTML, whose tables name their lines and columns for screen readers."""

from __future__ import annotations

import html
import re

from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
TAG = r'</?(?:thead|tbody|tr|th|td|b)(?: colspan="\d+"| align="right")?>'
TABLE = re.compile(rf"(?m)^(<table>\n(?:{TAG}|[^<])*</table>\n)")
RIGHT = ' style="text-align:right"'
NAMES = re.compile(rf"<tr>\n((?:<td>.*</td>\n)+)(?=<td{RIGHT})|<tr>\n<td>.*</td>\n")
"""Cells that name a line: those to the left before numbers to the right; the first where all are to the left."""


def to_html(text: str, name: str = "Table") -> str:
    """Returns `text`, which is Markdown, as HTML with its headings a level lower. A table scrolls in a frame of this
    name that the keyboard reaches. HTML in the text is escaped, but for <br> and the tables of `report.formats`."""
    parts = TABLE.split(text)
    parts[::2] = map(PARSER.render, parts[::2])
    parts[1::2] = (re.sub(r"(?<=>)(?=<t[dh]|</tr>)", "\n", table) for table in parts[1::2])  # as the parser writes them
    made = re.sub(r"(</?h)(\d)", lambda h: f"{h[1]}{int(h[2]) + 1}", "".join(parts)).replace(' align="right"', RIGHT)
    made = made.replace("&lt;br&gt;", "<br>").replace(' style="text-align:left"', "")
    made = made.replace("<th colspan", '<th scope="colgroup" colspan')
    made = re.sub(r"<th(?=>| style)", '<th scope="col"', re.sub(r"<th[^>]*></th>", "<td></td>", made))
    made = NAMES.sub(lambda cells: re.sub(r"<td>(.+)</td>", r'<th scope="row">\1</th>', cells[0]), made)
    frame = f'<div class="wide" role="group" aria-label="{html.escape(name)}" tabindex="0"><table>'
    return made.replace(RIGHT, ' class="n"').replace("<table>", frame).replace("</table>", "</table></div>")
