r"""A `Table` as LaTeX to `\input`, set by pandas: one environment per table, for A4 paper with margins of 2 cm or more.

A table that is longer than a page is a `longtable`, whose rows have all their labels; one that is wider lies on its
side. Needs the packages booktabs, longtable and pdflscape.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from reproduce.report.entries import Entry
from reproduce.report.formats import FORMULA, line, plain
from reproduce.report.names import heading
from reproduce.report.tables import Table, column_heading, label

# Headings of columns are broken at this many characters; so many lines fit on an upright page.
NARROW, PAGE = 17, 48

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\N{EM DASH}": "---", "\N{EN DASH}": "--",
    "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "→": r"$\to$", "≈": r"$\approx$", "∞": r"$\infty$", "√": r"$\surd$", "·": r"$\cdot$", "…": r"\dots{}",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "η": r"$\eta$", "κ": r"$\kappa$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "ν": r"$\nu$", "σ": r"$\sigma$", "τ": r"$\tau$", '"': "''", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    **{mark: rf"\textsuperscript{{{letter}}}" for mark, letter in zip("ᵃᵇᶜᵈᵉᶠᵍʰ", "abcdefgh", strict=True)},
}  # fmt: skip


ACCENTS = tuple("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030b\u030c\u0327")
"""Of letters that LaTeX sets."""


@dataclass(frozen=True)
class Shape:
    """How a table is set: size of the letters, how many of them fit beside each other, on its side or not, and whether
    the difference has a line of its own below ours and the paper's."""

    size: str
    wide: int
    side: bool
    three: bool

    def lines(self, entry: Entry | None) -> list[str]:
        """The lines of an entry."""
        if entry is None:
            return []
        below = [entry.paper, entry.difference] if self.three else [f"{entry.paper} {entry.difference}".strip()]
        return [entry.ours, *filter(None, below)]


SHAPES = (
    Shape("footnotesize", 106, False, False), Shape("footnotesize", 106, False, True),
    Shape("scriptsize", 178, True, False), Shape("scriptsize", 178, True, True), Shape("tiny", 210, True, True),
)  # fmt: skip
"""From the best to the last resort; the first that fits is taken."""

Column = tuple[str, list[list[str]]]
"""A heading, and of each row the lines of its cell; plain text."""


def tex(text: str) -> str:
    r"""`text` in one line with everything that means something to LaTeX escaped, except formulas in \( \) (`FORMULA`).

    A sign that LaTeX has no letter for is named by its number.
    """
    found, at = list[str](), 0
    for formula in [*re.finditer(FORMULA, text), None]:
        found += map(_letter, line(text[at : formula.start() if formula else None]))
        if formula:
            found.append(formula[0])
            at = formula.end()
    return "".join(found)


def _letter(sign: str) -> str:
    """One sign: escaped, as it is, or its number. LaTeX sets ASCII, and Latin letters with one accent."""
    base = unicodedata.normalize("NFD", sign)
    known = sign.isascii() or sign in "ßæøåœÆØÅŒ" or (base[0].isascii() and base[1:] in ACCENTS)
    return TEX.get(sign) or (sign if known else f"(U+{ord(sign):04X})")


def latex(table: Table) -> str:
    """The table with its caption and notes; a comment if there is nothing in it."""
    import pandas as pd

    first = f"% {table.id}, {table.scale} scale; needs booktabs, longtable and pdflscape"
    if not table.body:
        return f"{first}\n% no numbers\n"
    shape = next((s for s in SHAPES if _width(_columns(table, s)) <= s.wide), SHAPES[-1])
    columns = _columns(table, shape)
    cells = list(zip(*(found for _, found in columns), strict=True))
    long = shape.side or sum(max(map(len, row)) for row in cells) > PAGE
    rows = [[_stack("lines", lines) for lines in row] for row in cells]
    for i in reversed(range(1, 0 if long else len(rows))):  # a page of a long table may begin with any row
        for d in range(len(table.row_names) - 1):
            if table.rows[i][: d + 1] == table.rows[i - 1][: d + 1]:
                rows[i][d] = ""
    heads = [
        [""] * len(table.row_names) + [_heading(column_heading(at[d], name, table)) for at in table.columns]
        for d, name in enumerate(table.column_names[:-1])
    ]
    heads.append([_heading(text) for text, _ in columns])
    style = pd.DataFrame(rows, columns=heads if len(heads) > 1 else heads[0]).style.hide(axis="index")
    made = style.to_latex(
        column_format=f"@{{}}{'l' * len(table.row_names)}{'c' * len(table.columns)}@{{}}",
        hrules=True,
        multicol_align="c",
        environment="longtable" if long else None,
    )
    return "\n".join([first, *_around(table, shape, long, _ruled(made.strip(), table))]) + "\n"


def _around(table: Table, shape: Shape, long: bool, made: str) -> list[str]:
    """The environment of the table, with its caption and notes."""
    caption = tex(f"{table.title.rstrip('.')}. {table.caption[0]}")
    named = rf"\caption{{{caption}}}\label{{tab:{table.id.replace('/', '-').replace('_', '-')}}}"
    notes = " ".join(tex(note) for note in (*table.caption[1:], *table.notes))
    start = [
        rf"\{shape.size}\setlength{{\tabcolsep}}{{3pt}}",
        r"\def\lines#1{\begin{tabular}[t]{@{}c@{}}#1\end{tabular}}",
    ]
    if not long:
        below = [r"\par\smallskip", rf"\parbox{{\linewidth}}{{{notes}}}"] if notes else []
        return [r"\begin{table}", *start, r"\centering", named, made, *below, r"\end{table}"]
    begin, rest = made.split("\n", 1)
    around = (r"\begin{landscape}", r"\end{landscape}") if shape.side else (r"\begingroup", r"\endgroup")
    wide = r"\setlength{\LTcapwidth}{\linewidth}"
    return [around[0], *start, wide, begin, rf"{named} \\", rest, rf"\noindent {notes}\par", around[1]]


def _columns(table: Table, shape: Shape) -> list[Column]:
    """The columns of the table, those of labels first."""
    stubs = [
        (heading(name, table.names), [[label(row[d], table.names)] for row in table.rows])
        for d, name in enumerate(table.row_names)
    ]
    entries = [
        (
            column_heading(labels[-1], table.column_names[-1], table),
            [shape.lines(table.body.get((i, j))) for i in range(len(table.rows))],
        )
        for j, labels in enumerate(table.columns)
    ]
    return [*stubs, *entries]


def _width(columns: Sequence[Column]) -> int:
    """Characters beside each other, the space between columns included."""
    parts = (
        [*textwrap.wrap(text, NARROW), *(plain(line) for cell in cells for line in cell)] for text, cells in columns
    )
    return sum(2 + max(map(len, lines), default=0) for lines in parts)


def _ruled(made: str, table: Table) -> str:
    """A rule under each heading that stands over columns, below its line."""
    for level in reversed(range(len(table.column_names) - 1)):
        at, rules = len(table.row_names), ""
        for _, group in groupby(labels[: level + 1] for labels in table.columns):
            rules += rf"\\cmidrule(lr){{{at + 1}-{(at := at + len(list(group)))}}}"
        made = re.sub(rf"(\\toprule\n(?:.*\n){{{level + 1}}})", rf"\1{rules}\n", made)
    return made


def _heading(text: str) -> str:
    """A heading, broken into lines if it is long."""
    return _stack("shortstack", textwrap.wrap(text, NARROW))


def _stack(command: str, lines: Sequence[str]) -> str:
    r"""Lines of plain text in one cell; what begins one may come after \\, which takes a bracket or a star."""
    made = ["{}" + text if text.startswith(("[", "*")) else text for text in map(tex, lines)]
    return "".join(made) if len(made) < 2 else "\\" + command + "{" + r" \\ ".join(made) + "}"
