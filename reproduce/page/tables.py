"""Tables of Markdown, which has one line of headings and no headers of lines, as HTML knows them: a heading spans its
columns, and what names a line or a column is marked for screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from markdown_it.token import Token

BOLD = re.compile(r"\*\*.+\*\*")


@dataclass(frozen=True)
class Cell:
    """Its opening, its text and its end."""

    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        return self.tokens[1].content

    def header(self, scope: str) -> Cell:
        """Make it a header, if it says anything."""
        self.tokens[0].tag = self.tokens[-1].tag = "th" if self.text else "td"
        if self.text:
            self.tokens[0].attrSet("scope", scope)
        return self

    def over(self, columns: int = 1, lines: int = 1) -> Cell:
        """Make it stand over several columns or lines."""
        for name, count in (("colspan", columns), ("rowspan", lines)):
            if count > 1:
                self.tokens[0].attrSet(name, str(count))
        if columns > 1:
            self.tokens[0].attrSet("class", "over")
        return self


Line = list[Cell]


def marked(tokens: Sequence[Token], name: str) -> Iterator[Token]:
    """The tokens with headers in their tables. `meta` of a table's first has its `columns` and its `name`: the heading
    above it, `name` where there is none."""
    inside: list[Token] = []
    for token, after in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "heading_open":
            name = said(after)
        if token.type == "table_open" or inside:
            inside.append(token)
        else:
            yield token
        if token.type == "table_close":
            yield from _table(inside, name)
            inside = []


def said(inline: Token) -> str:
    """The words of a text without its marks."""
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


def _table(tokens: Sequence[Token], name: str) -> Iterator[Token]:
    lines = list(_lines(tokens))
    labels = _labels(lines[0])
    below = list(takewhile(lambda line: _is_heading(line, labels), lines[1:]))
    for line in lines:
        for cell in line:
            _align(cell.tokens[0])
    opening, closing = tokens[0], tokens[-1]
    opening.meta = {"columns": len(lines[0]), "name": name}
    yield opening
    yield from _part("thead", list(_heads([lines[0], *below], labels)))
    yield from _part("tbody", [_body(line, labels) for line in lines[1 + len(below) :]])
    yield closing


def _lines(tokens: Sequence[Token]) -> Iterator[Line]:
    line: Line = []
    for i, token in enumerate(tokens):
        if token.type in ("th_open", "td_open"):
            line.append(Cell(tuple(tokens[i : i + 3])))
        elif token.type == "tr_close":
            yield line
            line = []


def _labels(line: Line) -> int:
    """How many columns name the lines: in our tables those to the left before numbers to the right, else the first."""
    styles = [cell.tokens[0].attrs.get("style") for cell in line]
    left = len(list(takewhile(lambda style: style == "text-align:left", styles)))
    return left if 0 < left < len(line) else 1


def _is_heading(line: Line, labels: int) -> bool:
    """Is it a lower line of headings? It has no labels, and all it says is bold."""
    texts = [cell.text for cell in line[labels:] if cell.text]
    return not any(cell.text for cell in line[:labels]) and bool(texts) and all(map(BOLD.fullmatch, texts))


def _heads(lines: Sequence[Line], labels: int) -> Iterator[Line]:
    """The headings: those of labels over all lines, others over the empty ones behind them, but for the last line."""
    for depth, line in enumerate(lines):
        heads = [cell.over(lines=len(lines)).header("col") for cell in line[:labels]] if depth == 0 else []
        last = depth == len(lines) - 1
        starts = [i for i in range(labels, len(line)) if last or line[i].text or i == labels]
        for i, end in pairwise([*starts, len(line)]):
            _plain(line[i].tokens[1])
            heads.append(line[i].over(columns=end - i).header("col" if last else "colgroup"))
        yield heads


def _body(line: Line, labels: int) -> Line:
    return [*(cell.header("row") for cell in line[:labels]), *line[labels:]]


def _plain(inline: Token) -> None:
    """A heading needs no bold print."""
    if BOLD.fullmatch(inline.content):
        inline.children = [child for child in inline.children or () if not child.type.startswith("strong")]


def _align(opening: Token) -> None:
    """Alignment as a class."""
    if opening.attrs.pop("style", "") == "text-align:right":
        opening.attrSet("class", "n")


def _part(tag: str, lines: Sequence[Line]) -> Iterator[Token]:
    if not lines:
        return
    yield Token(f"{tag}_open", tag, 1, block=True)
    for line in lines:
        yield Token("tr_open", "tr", 1, block=True)
        for cell in line:
            yield from cell.tokens
        yield Token("tr_close", "tr", -1, block=True)
    yield Token(f"{tag}_close", tag, -1, block=True)
