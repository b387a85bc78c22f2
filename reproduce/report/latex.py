r"""A `Table` as LaTeX to `\input`, in documents of one column or of two, set by pandas.

A table is a float over both columns, or over one where it fits; one that is wide lies on its side, and one that is long
has several parts. What is still wider than the page is shrunk to it; notes beyond `MOST` words are comments. Needs the
packages booktabs, graphicx and rotating; with colortbl, or xcolor and its option table, far differences are grey.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import accumulate, groupby

from reproduce.report.entries import DASH, Text
from reproduce.report.formats import FORMULA, line, plain
from reproduce.report.names import heading
from reproduce.report.tables import Table, column_heading, label

# Headings of columns are broken at this many characters.
NARROW = 17
MOST = 60
"""Words of the notes that are set below a table."""
BETWEEN = r"\addlinespace[2pt]"
"""Between groups of rows, or rows of several lines."""
FLOATS = (("table", 72, 52, 56), ("table*", 150, 54, 118), ("sidewaystable*", 10**6, 36, 175))
"""Environments: how many characters of a table fit beside each other, lines below each other, and characters into a
line of its notes. A table takes the first that is wide enough, shrunk by a quarter at the most."""

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


def tex(text: str) -> str:
    r"""`text` in one line with everything that means something to LaTeX escaped, except formulas in \( \) (`FORMULA`).

    A sign that LaTeX has no letter for is named by its number.
    """
    text, found, at = re.sub(r"`([^`]*)`", r"\1", text), list[str](), 0
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
    first = f"% {table.id}, {table.scale} scale; needs booktabs, graphicx and rotating"
    if not table.body:
        return f"{first}\n% no numbers\n"
    rows = [_lines(table, i) for i in range(len(table.rows))]
    wide = _width(table, [line for row in rows for line in row])
    short, more = _short(table.notes)
    notes = [*table.caption[1:], *(f"{sign}: {meaning}" for sign, meaning in table.signs), *short]
    size = sum(map(len, (*notes, table.caption[0])))
    name, _, most, across = next(f for f in FLOATS if wide <= f[1] and (f[0] != "table" or size < 1200))
    below = -(-size // across)
    parts = _parts([len(row) for row in rows], most, below)
    made = [first]
    for number, part in enumerate(parts, 1):
        again = "" if number == 1 else r"\addtocounter{table}{-1}"
        caption = tex(table.title.rstrip(".") + ("" if again else f". {table.caption[0].rstrip('.')}"))
        of = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        labelled = rf"\label{{tab:{re.sub('[/_]', '-', table.id)}}}" if number == 1 else ""
        last = [rf"\par\smallskip\raggedright {' '.join(map(tex, notes))}"] if number == len(parts) else []
        made += [
            rf"\begin{{{name}}}[tp]",
            r"\footnotesize\centering\setlength{\tabcolsep}{3pt}\setlength{\belowcaptionskip}{5pt}",
            r"\providecommand{\cellcolor}[2][]{}",
            rf"{again}\caption{{{caption}{of}.}}{labelled}",
            _fitted(_tabular(table, [rows[i] for i in part])),
            *last,
            rf"\end{{{name}}}",
        ]
    return "\n".join([*made, *(f"% {line(note)}" for note in more)]) + "\n"


def _short(notes: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first of the `notes`, of `MOST` words together, and the others."""
    words = accumulate(len(note.split()) for note in notes)
    many = sum(count <= MOST for count in words)
    return list(notes[:many]), list(notes[many:])


def _lines(table: Table, i: int) -> list[list[Text]]:
    """The lines of row `i` of the table: its labels, in the first of them, what the line is, and its texts."""
    labels = [Text(label(name, table.names)) for name in table.rows[i]]
    nothing = Text("")
    return [
        [
            *(labels if number == 0 else [nothing] * len(labels)),
            *[Text(kind)] * table.kinds,
            *(t or nothing for t in texts),
        ]
        for number, (kind, texts) in enumerate(table.lines(i))
    ]


def _parts(sizes: Sequence[int], most: int, below: int) -> list[list[int]]:
    """The rows of each part, of `most` lines at the most; where what stands `below` them has no room, the last part is
    halved."""
    parts, filled = list[list[int]]([[]]), 0
    for row, size in enumerate(sizes):
        if filled + size > most:
            parts, filled = [*parts, []], 0
        parts[-1].append(row)
        filled += size
    half = len(parts[-1]) // 2
    return [*parts[:-1], parts[-1][:half], parts[-1][half:]] if half and filled + below > most else parts


def _fitted(text: str) -> str:
    return r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%" + f"\n{text}}}"


def _tabular(table: Table, rows: Sequence[Sequence[Sequence[Text]]]) -> str:
    """Rows of lines, with the headings; labels of levels but the last are said where they change."""
    import pandas as pd

    last = len(table.row_names) - 1
    before: list[Text] = []
    body, apart = list[list[str]](), list[int]()
    for labelled, *more in rows:
        same = next((d for d in range(last) if labelled[: d + 1] != before[: d + 1]), last)
        if body and (table.kinds or (last and same == 0)):
            apart.append(len(body))
        body += [[""] * same + [_set(text) for text in labelled[same:]], *([*map(_set, line)] for line in more)]
        before = list(labelled)
    first = [*(heading(name, table.names) for name in table.row_names), *[""] * table.kinds]
    heads = [
        [""] * len(first) + [_heading(column_heading(at[d], name, table)) for at in table.columns]
        for d, name in enumerate(table.column_names[:-1])
    ]
    names = [column_heading(at[-1], table.column_names[-1], table) for at in table.columns]
    heads.append([_heading(text) for text in (*first, *names)])
    style = pd.DataFrame(body, columns=heads if len(heads) > 1 else heads[0]).style.hide(axis="index")
    sides = ("l" if _words(texts) else "r" for texts in _columns(rows, len(first)))
    layout = f"@{{}}{'l' * len(first)}{''.join(sides)}@{{}}"
    made = style.to_latex(column_format=layout, hrules=True, multicol_align="c").strip().split("\n")
    for at in reversed(apart):
        made.insert(made.index(r"\midrule") + 1 + at, BETWEEN)
    return _ruled("\n".join(made), table)


def _columns(rows: Sequence[Sequence[Sequence[Text]]], first: int) -> list[tuple[str, ...]]:
    """What stands in each column but the `first`."""
    return list(zip(*([text.text for text in line[first:]] for row in rows for line in row), strict=True))


def _words(texts: Sequence[str]) -> bool:
    """Are all `texts` words, which stand at the left? Numbers have no letters."""
    said = [text for text in texts if text and text[0] != DASH]
    return bool(said) and all(re.search(r"[A-Za-z]{2}|\\", text) for text in said)


def _set(text: Text) -> str:
    said = rf"\textbf{{{tex(text.text)}}}" if text.bold else tex(text.text)
    said = "{}" + said if said.startswith(("[", "*")) else said  # after \\, which takes a bracket or a star
    return (rf"\cellcolor[gray]{{{('', '.92', '.8')[text.tint]}}}" if text.tint else "") + said


def _width(table: Table, lines: Sequence[Sequence[Text]]) -> int:
    """Characters beside each other, the space between columns included."""
    stubs = [*(heading(name, table.names) for name in table.row_names), *[""] * table.kinds]
    names = [*stubs, *(column_heading(at[-1], table.column_names[-1], table) for at in table.columns)]
    parts = ([*textwrap.wrap(n, NARROW), *(plain(line[c].text) for line in lines)] for c, n in enumerate(names))
    return sum(2 + max(map(len, texts), default=0) for texts in parts)


def _ruled(made: str, table: Table) -> str:
    """A rule under each heading that stands over columns, below its line."""
    for level in reversed(range(len(table.column_names) - 1)):
        at, rules = len(table.row_names) + table.kinds, ""
        for _, group in groupby(labels[: level + 1] for labels in table.columns):
            rules += rf"\\cmidrule(lr){{{at + 1}-{(at := at + len(list(group)))}}}"
        made = re.sub(rf"(\\toprule\n(?:.*\n){{{level + 1}}})", rf"\1{rules}\n", made)
    return made


def _heading(text: str) -> str:
    """A heading, broken into lines if it is long."""
    lines = [tex(line) for line in textwrap.wrap(text, NARROW)]
    return "".join(lines) if len(lines) < 2 else "\\shortstack{" + r" \\ ".join(lines) + "}"
