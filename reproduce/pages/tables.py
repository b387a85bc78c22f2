"""Markdown, as tables and findings are written in, to HTML. Markdown has one line of headings and no headers of lines:
here a heading spans its columns, and what names a line or a column is a header for screen readers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from markdown_it import MarkdownIt
from markdown_it.token import Token

MANY = 10
"""More columns than this are set smaller in print."""
BOLD = re.compile(r"<strong>(.+)</strong>")
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


@dataclass(frozen=True)
class Cell:
    """A cell's HTML, and whether it is a number, flush right."""

    html: str
    right: bool

    def write(self, scope: str = "", columns: int = 1, lines: int = 1) -> str:
        """The cell over so many columns and lines; with a `scope` a header, if it says anything."""
        tag = "th" if scope and self.html else "td"
        text = BOLD.fullmatch(self.html) if scope.startswith("col") else None
        given = {
            "class": " ".join(["n"] * self.right + ["over"] * (columns > 1)),
            "scope": scope if tag == "th" else "",
            "colspan": columns if columns > 1 else "",
            "rowspan": lines if lines > 1 else "",
        }
        attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
        return f"<{tag}{attributes}>{text[1] if text else self.html}</{tag}>"


def to_html(text: str, top: int = 1, name: str = "Table") -> str:
    """`text` as HTML; a heading `#` becomes <h`top`>, `##` the next lower one. name: of tables without a heading above.

    Of HTML in the text only <br> and the tint of a cell have a meaning, and comments vanish.
    Tables scroll in a frame that the keyboard
    reaches.
    """
    tokens, made, start = PARSER.parse(text), [], 0
    for i, token in enumerate(tokens):
        if token.type.startswith("heading"):
            token.tag = f"h{min(int(token.tag[1]) + top - 1, 6)}"
        if token.type == "heading_open":
            name = "".join(c.content for c in tokens[i + 1].children or () if c.type in ("text", "code_inline"))
        for html_token in (token, *(token.children or ())):
            if html_token.type.startswith("html"):
                html_token.content = _own(html_token.content.strip())
        if token.type == "table_open":
            made.append(_render(tokens[start:i]))
            start = i
        elif token.type == "table_close":
            made.append(_table(tokens[start:i], name))
            start = i + 1
    return "".join([*made, _render(tokens[start:])])


def _own(text: str) -> str:
    if text in ("<br>", "<br/>"):
        return "<br>"
    if tint := re.fullmatch(r"<!--tint (\d)-->", text):  # of a table: a cell that is far from the paper's
        return f'<i class="tint{tint[1]}"></i>'
    return "" if text.startswith("<!--") else html.escape(text, quote=False)


def _render(tokens: Sequence[Token]) -> str:
    return str(PARSER.renderer.render(tokens, PARSER.options, {}))


def _table(tokens: Sequence[Token], name: str) -> str:
    lines = list(_lines(tokens))
    labels = _labels(lines[0])
    lower = list(takewhile(lambda line: _is_heading(line, labels), lines[1:]))
    heads = list(_heads([lines[0], *lower], labels))
    body = [
        [cell.write("row" if i < labels else "") for i, cell in enumerate(line)] for line in lines[1 + len(lower) :]
    ]
    parts = [
        f"<{part}>\n" + "".join(f"<tr>{''.join(cells)}</tr>\n" for cells in rows) + f"</{part}>\n"
        for part, rows in (("thead", heads), ("tbody", body))
        if rows
    ]
    frame = f'class="wide{" many" * (len(lines[0]) > MANY)}" role="group" aria-label="{html.escape(name)}"'
    return f'<div {frame} tabindex="0"><table>\n{"".join(parts)}</table></div>\n'


def _lines(tokens: Sequence[Token]) -> Iterator[list[Cell]]:
    line: list[Cell] = []
    for opening, inline in pairwise(tokens):
        if opening.type in ("th_open", "td_open"):
            line.append(Cell(_render([inline]), opening.attrs.get("style") == "text-align:right"))
        elif inline.type == "tr_close":
            yield line
            line = []


def _labels(line: Sequence[Cell]) -> int:
    """How many columns name the lines: in our tables those to the left before numbers to the right, else the first."""
    left = len(list(takewhile(lambda cell: not cell.right, line)))
    return left if 0 < left < len(line) else 1


def _is_heading(line: Sequence[Cell], labels: int) -> bool:
    """Is it a lower line of headings? It has no labels, and all it says is bold."""
    texts = [cell.html for cell in line[labels:] if cell.html]
    return not any(cell.html for cell in line[:labels]) and bool(texts) and all(map(BOLD.fullmatch, texts))


def _heads(lines: Sequence[Sequence[Cell]], labels: int) -> Iterator[list[str]]:
    """The headings: those of labels over all lines, others over the empty ones behind them, but for the last line."""
    for depth, line in enumerate(lines):
        last = depth == len(lines) - 1
        heads = [cell.write("col", lines=len(lines)) for cell in line[:labels]] if depth == 0 else []
        starts = [i for i in range(labels, len(line)) if last or line[i].html or i == labels]
        for i, end in pairwise([*starts, len(line)]):
            heads.append(line[i].write("col" if last else "colgroup", columns=end - i))
        yield heads
