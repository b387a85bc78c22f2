"""A `Table` as GitHub Markdown and as tidy CSV."""

from __future__ import annotations

import re

from reproduce.report.entries import Text
from reproduce.report.tables import Table, column_heading, label
from reproduce.text import markdown as grid

SYMBOLS = {
    r"\|": "‖", r"\nabla ": "∇", r"\sum": "Σ", r"\leq": "≤", r"\geq": "≥", r"\beta": "β", r"\kappa": "κ", r"\xi": "ξ",
    r"\,": " ", "^2": "²", "-": "\N{MINUS SIGN}",
}  # fmt: skip


def csv(table: Table) -> str:
    """One row per cell, numbers with ten digits."""
    return str(table.frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def markdown(table: Table) -> str:
    """A GitHub table, with lines of ours, of the paper, and of the difference; its signs and notes."""
    out = [f"## {md(table.artifact.title)}", "", block(" ".join(table.caption)), ""]
    stubs = [*map(md, table.stubs)]
    top, *below = _heads(table)
    body = [[*[""] * len(stubs), *(f"**{md(text)}**" if text else "" for text in line)] for line in below]
    for i, row in enumerate(table.rows):
        labels = [md(label(x, table.artifact.names)) for x in row]
        for kind, texts in table.lines(i):
            body.append([*labels, *[kind] * table.kinds, *map(_text, texts)])
            labels = [""] * len(labels)
    out += [grid([*stubs, *map(md, top)], body, ":" * len(stubs) + "-" * len(top)), ""]
    if table.signs:
        out += [grid(("sign", "meaning"), [map(md, line) for line in table.signs], ":" * 2), ""]
    out += [f"- {block(note)}" for note in table.notes]
    return "\n".join(out).rstrip("\n") + "\n"


def _text(text: Text | None) -> str:
    """A place; what GitHub cannot show is left to the page, which reads the comment."""
    if text is None:
        return ""
    said = md(text.text)
    return (f"**{said}**" if text.bold else said) + (f"<!--tint {text.tint}-->" if text.tint else "")


def _heads(table: Table) -> list[list[str]]:
    """The headings of the columns, level by level; one that stands over several columns is over the first of them."""
    levels: list[list[str]] = []
    for level, name in enumerate(table.artifact.columns):
        last = level == len(table.artifact.columns) - 1
        line, before = [], None
        for labels in table.columns:
            text = column_heading(labels[level], name, table)
            line.append(text if last or labels[: level + 1] != before else "")
            before = labels[: level + 1]
        levels.append(line)
    return levels


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
