"""Markdown, as our tables are written in, to HTML: what names lines and columns are headers for screen readers."""

from __future__ import annotations

import html
import re

from markdown_it import MarkdownIt

MANY = 10
"""More columns than this are set smaller in print."""
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
RIGHT = ' style="text-align:right"'
HEADING = re.compile(rf"<tr>\n(?:<td(?:{RIGHT})?>(?:<strong>.+</strong>)?</td>\n)+</tr>\n")
"""A lower line of headings: all that it says is bold."""


def to_html(text: str, name: str = "Table") -> str:
    """`text` as HTML, its headings a level lower. A table scrolls in a frame that the keyboard reaches, which has the
    name of the heading above it, else `name`. HTML in the text is text, but for <br> and the tint of a cell."""
    made = re.sub(r"(</?h)(\d)", lambda h: f"{h[1]}{int(h[2]) + 1}", PARSER.render(text))
    made = made.replace("&lt;br&gt;", "<br>").replace(' style="text-align:left"', "")
    made = re.sub(r"&lt;!--tint (\d)--&gt;", r'<i class="tint\1"></i>', made)
    parts = re.split(r"(<table>.*?</table>)", made, flags=re.DOTALL)
    for i in range(1, len(parts), 2):
        if above := re.findall(r"<h\d>(.+)</h\d>", "".join(parts[:i])):
            name = re.sub(r"<.*?>", "", above[-1])
        parts[i] = _framed(parts[i], name)
    return "".join(parts)


def _framed(table: str, name: str) -> str:
    head, _, body = table.partition("</thead>\n<tbody>\n")
    while lower := HEADING.match(body):
        heads = re.sub(r"<td([^>]*)><strong>(.+)</strong></td>", r"<th\1>\2</th>", lower[0])
        head, body = head + heads, body[lower.end() :]
    many = " many" * (head.partition("</tr>")[0].count("</th>") > MANY)
    # Empty places beside a heading belong to it.
    spans = r"<th([^>]*)>(.+)</th>((?:\n<th[^>]*></th>)+)"
    head = re.sub(spans, lambda h: f'<th{h[1]} colspan="{h[3].count("</th>") + 1}">{h[2]}</th>', head)
    head = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", head)
    head = re.sub(r"<th(?=[ >])", '<th scope="col"', head)
    # Those to the left before numbers to the right name a line; the first one does where all are to the left.
    body = re.sub(rf"<tr>\n((?:<td>.*</td>\n)+)(?=<td{RIGHT})|<tr>\n<td>.*</td>\n", lambda row: _header(row[0]), body)
    text = f"{head}</thead>\n<tbody>\n{body}".replace(RIGHT, ' class="n"')
    return f'<div class="wide{many}" role="group" aria-label="{html.escape(name)}" tabindex="0">{text}</div>'


def _header(cells: str) -> str:
    """Cells that say something as headers of their line."""
    return re.sub(r"<td>(.+)</td>", r'<th scope="row">\1</th>', cells)
