r"""A `Table` as GitHub Markdown, as tidy CSV, and as LaTeX to `\input`, in documents of one column or of two.

In LaTeX a table is a float over both columns, or over one where it fits; one that is wide lies on its side, and one
that is long has several parts. What is still wider than the page is shrunk to it; notes are comments. It needs the
packages booktabs, graphicx and rotating.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape

from reproduce.report.entries import DASH, Text
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
        content = escape(line(text), quote=False)
        return f"<{tag}{options}>{f'<b>{content}</b>' if bold else content}</{tag}>"

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


# --- LaTeX ------------------------------------------------------------------------------------------------------------

COLUMN = 3.4
"""Inches of the narrowest of `FLOATS`."""
NARROW = 17
"""Headings of columns are broken at this many characters."""
BETWEEN = r"\addlinespace[2pt]"
"""Between groups of rows, or rows of several lines."""
FLOATS = (("table", 72, 46), ("table*", 150, 48), ("sidewaystable*", 10**6, 30))
"""Environments: how many characters of a table fit beside each other, and lines below each other, with room for its
signs. A table takes the first that is wide enough, shrunk by a quarter at the most."""

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\N{EM DASH}": "---", "\N{EN DASH}": "--",
    "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "α": r"$\alpha$", "β": r"$\beta$", "η": r"$\eta$", "κ": r"$\kappa$", "λ": r"$\lambda$", "μ": r"$\mu$",
    "ξ": r"$\xi$", "Σ": r"$\sum$", "∇": r"$\nabla$", "‖": r"$\|$", "²": "$^2$", "ₘ": "$_m$",
    "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip


def tex(text: str) -> str:
    """`text` in one line with all that means something to LaTeX escaped."""
    return "".join(TEX.get(sign, sign) for sign in re.sub(r"`([^`]*)`", r"\1", line(text)))


def latex(table: Table, width: float = 0.0) -> str:
    """The table with its caption and signs; a comment if there is nothing in it. width: of a column of text in inches,
    which the table is set in, its columns in as many parts as that needs."""
    first = f"% {table.artifact.id}, {table.scale} scale; needs booktabs, graphicx and rotating"
    if not table.body:
        return f"{first}\n% no numbers\n"
    name, fits, most = FLOATS[0] if width else next(f for f in FLOATS if _width(table) <= f[1])
    pieces, parts = _pieces(table, int(fits * width / COLUMN)) if width else [table], []
    for piece in pieces:
        rows = [piece.lines(i) for i in range(len(piece.rows))]
        each = most // max(map(len, rows))
        parts += [(piece, rows[i : i + each]) for i in range(0, len(rows), each)]
    below = [*table.caption[1:], *(f"{sign}: {meaning}" for sign, meaning in table.signs)]
    lines = [first]
    for number, (piece, part) in enumerate(parts, 1):
        again = "" if number == 1 else r"\addtocounter{table}{-1}"
        caption = tex(table.artifact.title.rstrip(".") + ("" if again else f". {table.caption[0].rstrip('.')}"))
        of = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        labelled = rf"\label{{tab:{re.sub('[/_]', '-', table.artifact.id)}-{table.scale}}}" if number == 1 else ""
        lines += [
            rf"\begin{{{name}}}[tp]",
            r"\footnotesize\centering\setlength{\tabcolsep}{3pt}\setlength{\belowcaptionskip}{5pt}",
            rf"{again}\caption{{{caption}{of}.}}{labelled}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            *_tabular(piece, part),
            *[rf"}}\par\smallskip\raggedright {' '.join(map(tex, below))}" if number == len(parts) else "}"],
            rf"\end{{{name}}}",
        ]
    return "\n".join([*lines, *(f"% {line(note)}" for note in table.notes)]) + "\n"


def _pieces(table: Table, fits: int) -> Iterator[Table]:
    """The table in pieces of neighbouring columns that are so many characters wide, or of one column."""
    first = 0
    for end in range(1, len(table.columns) + 1):
        piece = _columns(table, first, end)
        if end == len(table.columns):
            yield piece
        elif _width(_columns(table, first, end + 1)) > fits:
            yield piece
            first = end


def _columns(table: Table, first: int, end: int) -> Table:
    body = {(i, j - first): entry for (i, j), entry in table.body.items() if first <= j < end}
    return replace(table, columns=table.columns[first:end], body=body)


def _tabular(table: Table, rows: Sequence[Sequence[Sequence[Text]]]) -> list[str]:
    """Rows of lines, with the headings; labels of levels but the last are said where they change."""
    last, stubs = len(table.artifact.rows) - 1, len(table.stubs)
    before: Sequence[Text] = []
    body = []
    for labelled, *more in rows:
        same = next((d for d in range(last) if labelled[: d + 1] != before[: d + 1]), last)
        between = BETWEEN if before and (table.kinds or (last and same == 0)) else ""
        body += [between + _row([*[""] * same, *map(_set, labelled[same:])]), *(_row(map(_set, line)) for line in more)]
        before = labelled
    heads = []
    for level in table.heads[:-1]:
        at, cells, rules = stubs + 1, [""] * stubs, ""
        for text, count in level:
            cells.append(rf"\multicolumn{{{count}}}{{c}}{{{_heading(text)}}}")
            rules += rf"\cmidrule(lr){{{at}-{(at := at + count) - 1}}}"
        heads += [_row(cells), rules]
    heads.append(_row(map(_heading, _names(table))))
    columns = zip(*(line[stubs:] for row in rows for line in row), strict=True)
    sides = "".join("l" if _words([text.text for text in column]) else "r" for column in columns)
    begin = rf"\begin{{tabular}}{{@{{}}{'l' * stubs}{sides}@{{}}}}"
    return [begin, r"\toprule", *heads, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _words(texts: Sequence[str]) -> bool:
    """Tells whether all `texts` are words, which are aligned left; numbers have no letters."""
    filled = [text for text in texts if text and text[0] != DASH]
    return bool(filled) and all(re.search("[A-Za-z]{2}|∇", text) for text in filled)


def _set(text: Text) -> str:
    return rf"\textbf{{{tex(text.text)}}}" if text.bold else tex(text.text)


def _names(table: Table) -> list[str]:
    """The lowest headings of all columns."""
    return [*table.stubs, *(text for text, _ in table.heads[-1])]


def _width(table: Table) -> int:
    """Characters beside each other, the space between columns included."""
    columns = zip(_names(table), *(line for i in range(len(table.rows)) for line in table.lines(i)), strict=True)
    parts = ([*textwrap.wrap(name, NARROW), *(text.text for text in texts)] for name, *texts in columns)
    return sum(2 + max(map(len, texts), default=0) for texts in parts)


def _heading(text: str) -> str:
    """A heading, broken into lines if it is long."""
    lines = [tex(line) for line in textwrap.wrap(text, NARROW)]
    return "".join(lines) if len(lines) < 2 else "\\shortstack{" + r" \\ ".join(lines) + "}"
