"""A `Table` as GitHub Markdown and as tidy CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from reproduce.report.entries import Text
from reproduce.report.tables import Table
from reproduce.text import markdown as grid


def csv(table: Table) -> str:
    """One row per cell, numbers with ten digits."""
    return str(table.frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def markdown(table: Table) -> str:
    """A GitHub table, with lines of ours, of the paper, and of the difference; its signs and notes. One with headings
    of several levels is in HTML, in which they span their columns."""
    out = [f"## {md(table.artifact.title)}", "", block(" ".join(table.caption)), ""]
    lines = [line for i in range(len(table.rows)) for line in table.lines(i)]
    if len(table.heads) > 1:
        out += [*_html(table, lines), ""]
    else:
        heads = [*table.stubs, *(text for text, _ in table.heads[0])]
        body = ([f"**{md(t.text)}**" if t.bold else md(t.text) for t in line] for line in lines)
        sides = ":" * len(table.stubs) + "-" * len(table.heads[0])
        out += [grid([*map(md, heads)], body, sides), ""]
    if table.signs:
        out += [grid(("sign", "meaning"), [map(md, line) for line in table.signs], ":" * 2), ""]
    out += [f"- {block(note)}" for note in table.notes]
    return "\n".join(out).rstrip("\n") + "\n"


def _html(table: Table, lines: Sequence[Sequence[Text]]) -> Iterator[str]:
    """The lines of a table in HTML, a row each."""

    def cell(text: str, tag: str, options: str = "", bold: bool = False) -> str:
        said = escape(line(text), quote=False)
        return f"<{tag}{options}>{f'<b>{said}</b>' if bold else said}</{tag}>"

    stubs, heads = len(table.stubs), table.heads
    yield from ("<table>", "<thead>")
    for level in heads:
        names = (cell(name if level is heads[-1] else "", "th") for name in table.stubs)
        spans = (cell(text, "th", f' colspan="{n}"' if n > 1 else "") for text, n in level)
        yield "".join(("<tr>", *names, *spans, "</tr>"))
    yield from ("</thead>", "<tbody>")
    for row in lines:
        cells = (cell(t.text, "td", ' align="right"' if k >= stubs else "", t.bold) for k, t in enumerate(row))
        yield "".join(("<tr>", *cells, "</tr>"))
    yield from ("</tbody>", "</table>")


def line(text: str) -> str:
    """`text` in one line, without signs that cannot be printed."""
    return "".join(c if c.isprintable() or c == "\N{NO-BREAK SPACE}" else " " for c in text)


def md(text: str) -> str:
    """Text within a line of Markdown, or a cell of a table: nothing in it is a mark, a link or HTML."""
    text = re.sub(r"([|*\\`$])", r"\\\1", line(text))
    text = re.sub(r"\[(?=[^\]]*\]\s*[(\[:])|(?<![^\W_])_|_(?![^\W_])|~(?=~)", r"\\\g<0>", text)
    return re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;")


def block(text: str) -> str:
    """`md` of a text that a line or an item of a list begins with: it begins no list, heading or quotation."""
    return re.sub(r"^(\d*)(?=(?<=\d)[.)]|(?<!\d)[#>+=-])", r"\1\\", md(text).strip())
