"""A `Table` as GitHub Markdown and as tidy CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from reproduce.report.entries import Text
from reproduce.report.tables import Table, label
from reproduce.text import markdown as grid

SYMBOLS = {
    r"\|": "‖", r"\nabla ": "∇", r"\sum": "Σ", r"\leq": "≤", r"\geq": "≥", r"\beta": "β", r"\kappa": "κ", r"\xi": "ξ",
    r"\,": " ", "^2": "²", "-": "\N{MINUS SIGN}",
}  # fmt: skip


def csv(table: Table) -> str:
    """One row per cell, numbers with ten digits."""
    return str(table.frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def markdown(table: Table) -> str:
    """A GitHub table, with lines of ours, of the paper, and of the difference; its signs and notes. One with headings
    of several levels is in HTML, in which they span their columns."""
    out = [f"## {md(table.artifact.title)}", "", block(" ".join(table.caption)), ""]
    levels, stubs = len(table.heads) > 1, table.stubs
    escaped, body = _escaped if levels else md, []
    for i, row in enumerate(table.rows):
        labels = [escaped(label(x, table.artifact.names)) for x in row]
        for kind, texts in table.lines(i):
            body.append([*labels, *[kind] * table.kinds, *(_text(text, levels) for text in texts)])
            labels = [""] * len(labels)
    if levels:
        out += [*_html(table, body), ""]
    else:
        heads = [text for text, _ in table.heads[0]]
        out += [grid([*map(md, [*stubs, *heads])], body, ":" * len(stubs) + "-" * len(heads)), ""]
    if table.signs:
        out += [grid(("sign", "meaning"), [map(md, line) for line in table.signs], ":" * 2), ""]
    out += [f"- {block(note)}" for note in table.notes]
    return "\n".join(out).rstrip("\n") + "\n"


def _text(text: Text | None, html: bool) -> str:
    """A place; what GitHub cannot show is left to the page, which reads the comment."""
    if text is None:
        return ""
    said, bold = (_escaped(text.text), "<b>{}</b>") if html else (md(text.text), "**{}**")
    return (bold.format(said) if text.bold else said) + (f"<!--tint {text.tint}-->" if text.tint else "")


def _escaped(text: str) -> str:
    return escape(plain(line(text)), quote=False)


def _html(table: Table, body: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in HTML, a row each."""
    stubs, last = table.stubs, table.heads[-1]
    yield from ("<table>", "<thead>")
    for level in table.heads:
        names = (_escaped(name) if level == last else "" for name in stubs)
        columns = [f"<th>{name}</th>" for name in names]
        columns += [
            f'<th colspan="{n}">{_escaped(text)}</th>' if n > 1 else f"<th>{_escaped(text)}</th>" for text, n in level
        ]
        yield "<tr>" + "".join(columns) + "</tr>"
    yield from ("</thead>", "<tbody>")
    for cells in body:
        names = (f"<td>{cell}</td>" for cell in cells[: len(stubs)])
        numbers = (f'<td align="right">{cell}</td>' for cell in cells[len(stubs) :])
        yield "".join(("<tr>", *names, *numbers, "</tr>"))
    yield from ("</tbody>", "</table>")


_ATOM = r"(?:\\[|,]|\\(?:nabla|sum|leq|geq|beta|kappa|xi)(?![A-Za-z])|[A-Za-z0-9])"
FORMULA = rf"\\\(((?:(?:{_ATOM}|[ =+(),.;:/<>-])(?:_{_ATOM})?(?:\^{_ATOM})?)*)\\\)"
r"""A formula in \( \) as declarations have them: of letters, digits and the commands in `SYMBOLS`. Anything else
between these, as a file that is read back may have it, is text."""


def plain(text: str) -> str:
    r"""`text` with its formulas in \( \) written in letters."""
    return re.sub(FORMULA, lambda found: _letters(found[1]), text)


def line(text: str) -> str:
    """`text` in one line, without signs that cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in text)


def _letters(formula: str) -> str:
    for command, letter in SYMBOLS.items():
        formula = formula.replace(command, letter)
    return formula


def md(text: str) -> str:
    """Text within a line of Markdown, or a cell of a table: nothing in it is a mark, a link, a formula or HTML."""
    text = re.sub(r"([|*\\`$])", r"\\\1", plain(line(text)))
    text = re.sub(r"\[(?=[^\]]*\]\s*[(\[:])|(?<![^\W_])_|_(?![^\W_])|~(?=~)", r"\\\g<0>", text)
    return re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;")


def block(text: str) -> str:
    """`md` of a text that a line or an item of a list begins with: it begins no list, heading or quotation."""
    return re.sub(r"^(\d*)(?=(?<=\d)[.)]|(?<!\d)[#>+=-])", r"\1\\", md(text).strip())
