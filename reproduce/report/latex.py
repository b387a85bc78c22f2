r"""A `Table` as LaTeX to `\input`: one environment per table, for A4 paper with margins of 2 cm or more room.

A table that is longer than a page is a `longtable` that breaks between groups of rows; one that is wider lies on its
side. Needs the packages booktabs, longtable and pdflscape.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reproduce.report.entries import Entry
from reproduce.report.formats import FORMULA, line, plain
from reproduce.report.names import heading
from reproduce.report.tables import Labels, Table, column_heading, label

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
    """How a table is set: size of the letters, how many of them fit beside each other, on its side or not, what stands
    in the lines of an entry."""

    size: str
    wide: int
    side: bool
    lines: Callable[[Entry], tuple[str, ...]]


def two(entry: Entry) -> tuple[str, ...]:
    """Ours; the paper's and the difference."""
    return entry.ours, f"{entry.paper} {entry.difference}".strip()


def three(entry: Entry) -> tuple[str, ...]:
    """Ours; the paper's; the difference."""
    return entry.ours, entry.paper, entry.difference


SHAPES = (
    Shape("footnotesize", 106, False, two), Shape("footnotesize", 106, False, three),
    Shape("scriptsize", 178, True, two), Shape("scriptsize", 178, True, three), Shape("tiny", 210, True, three),
)  # fmt: skip
"""From the best to the last resort; the first that fits is taken."""


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
    first = f"% {table.id}, {table.scale} scale; needs booktabs, longtable and pdflscape"
    if not table.body:
        return f"{first}\n% no numbers\n"
    shape = next((s for s in SHAPES if _width(table, s) <= s.wide), SHAPES[-1])
    groups = list(_groups(table, shape))
    caption = tex(f"{table.title.rstrip('.')}. {table.caption[0]}")
    named = rf"\caption{{{caption}}}\label{{tab:{table.id.replace('/', '-').replace('_', '-')}}}"
    spec = f"@{{}}{'l' * len(table.row_names)}{'c' * len(table.columns)}@{{}}"
    notes = " ".join(tex(note) for note in (*table.caption[1:], *table.notes))
    long = shape.side or sum(len(line) for group in groups for line in group) > PAGE
    made = _long if long else _short
    lines = made(spec, named, _head(table), [line for group in groups for line in _joined(group)], notes)
    small = [rf"\{shape.size}", r"\setlength{\tabcolsep}{3pt}"]
    around = "landscape" if shape.side else "group" if long else "table"
    begin, end = (r"\begingroup", r"\endgroup") if around == "group" else (rf"\begin{{{around}}}", rf"\end{{{around}}}")
    return "\n".join([first, begin, *small, *lines, end]) + "\n"


def _short(spec: str, named: str, head: list[str], body: list[str], notes: str) -> list[str]:
    """A table of one page."""
    below = [r"\par\smallskip", rf"\parbox{{\linewidth}}{{{notes}}}"] if notes else []
    table = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule", *head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return [r"\centering", named, *table, *below]


def _long(spec: str, named: str, head: list[str], body: list[str], notes: str) -> list[str]:
    """A table that may go on over several pages, each with the headings."""
    top = [r"\toprule", *head, r"\midrule"]
    return [
        r"\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{spec}}}",
        rf"{named} \\",
        *top,
        r"\endfirsthead",
        *top,
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
        *body,
        r"\end{longtable}",
        rf"\noindent {notes}\par",
    ]


def _head(table: Table) -> list[str]:
    """The headings, a line per level of the columns, equal ones above each other's columns."""
    width, out = len(table.row_names), []
    for level, name in enumerate(table.column_names):
        heads = [labels[: level + 1] for labels in table.columns]
        last = level == len(table.column_names) - 1
        line = [_stack(heading(n, table.names)) if last else "" for n in table.row_names]
        rules, at = [], 0
        while at < len(heads):
            span = next((k for k in range(at, len(heads)) if heads[k] != heads[at]), len(heads)) - at
            text = _stack(column_heading(heads[at][-1], name, table))
            line.append(text if last and span == 1 else rf"\multicolumn{{{span}}}{{c}}{{{text}}}")
            rules.append(rf"\cmidrule(lr){{{width + at + 1}-{width + at + span}}}")
            at += span
        out += [_begun(" & ".join(line)) + r" \\"] + ([] if last else ["".join(rules)])
    return out


def _groups(table: Table, shape: Shape) -> Iterator[list[list[str]]]:
    """Per group of rows that agree in all but the last label, per row: its lines."""
    width, group, before = len(table.row_names), list[list[str]](), Labels()
    for i, labels in enumerate(table.rows):
        if before and labels[:-1] != before[:-1]:
            yield group
            group = []
        same = width - 1 if group else 0  # a page may begin with a group: its first row has all labels
        stub = ["" if d < same else tex(label(x, table.names)) for d, x in enumerate(labels)]
        entries = [table.body.get((i, j)) for j in range(len(table.columns))]
        lines = list(zip(*(shape.lines(e) if e else ("",) * 3 for e in entries), strict=False))
        used = [k for k, line in enumerate(lines) if k == 0 or any(line)]
        rows = [_begun(" & ".join([*(stub if k == 0 else [""] * width), *map(tex, lines[k])])) for k in used]
        group.append(rows)
        before = labels
    yield group


def _begun(row: str) -> str:
    r"""A line that may come after \\, which takes a bracket or a star there for its own."""
    return "{}" + row if row.startswith(("[", "*")) else row


def _joined(group: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a group, which a page does not part, and a little room after it."""
    lines = [line for row in group for line in row]
    room = [r"\addlinespace"] if len(group) > 1 else []
    return [*(rf"{line} \\*" for line in lines[:-1]), rf"{lines[-1]} \\", *room]


def _width(table: Table, shape: Shape) -> int:
    """Characters beside each other, the space between columns included."""

    def most(texts: Sequence[str]) -> int:
        return 2 + max(map(len, texts), default=0)

    stubs = [most([*textwrap.wrap(heading(n, table.names), NARROW), *(label(r[d], table.names) for r in table.rows)])
             for d, n in enumerate(table.row_names)]  # fmt: skip
    columns = []
    for j, labels in enumerate(table.columns):
        entries = [table.body.get((i, j)) for i in range(len(table.rows))]
        head = textwrap.wrap(column_heading(labels[-1], table.column_names[-1], table), NARROW)
        columns.append(most([*head, *(plain(line) for e in entries if e for line in shape.lines(e))]))
    return sum(stubs) + sum(columns)


def _stack(text: str) -> str:
    """A heading, broken into lines if it is long."""
    lines = [_begun(tex(part)) for part in textwrap.wrap(text, NARROW)] or [""]
    return lines[0] if len(lines) == 1 else r"\shortstack{" + r" \\ ".join(lines) + "}"
