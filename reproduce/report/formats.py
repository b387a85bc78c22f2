"""A `Table` as GitHub Markdown, as tidy CSV and as LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from reproduce.report.names import heading, pretty
from reproduce.report.tables import Labels, Table

# Beyond this many places a table is split into one section per value of its first row column.
LARGE = 200
# A LaTeX table wider than this (in characters) or longer (in rows) is split; a page in 8 pt holds about as much.
WIDE, LONG = 96, 26
# Headings of LaTeX columns are broken at this many characters.
NARROW = 17

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\N{EM DASH}": "---", "\N{EN DASH}": "--",
    "†": r"\textsuperscript{\dag}", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$", "→": r"$\to$", "≈": r"$\approx$",
    "∞": r"$\infty$", "√": r"$\surd$", "·": r"$\cdot$", "…": r"\dots{}", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "η": r"$\eta$", "κ": r"$\kappa$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "ν": r"$\nu$", "σ": r"$\sigma$", "τ": r"$\tau$", '"': "''",
    **{mark: rf"\textsuperscript{{{letter}}}" for mark, letter in zip("ᵃᵇᶜᵈᵉᶠᵍʰ", "abcdefgh", strict=True)},
}  # fmt: skip


def csv(table: Table) -> str:
    """One row per cell, numbers in full precision."""
    return str(table.frame.to_csv(index=False, lineterminator="\n"))


def markdown(table: Table) -> str:
    """A GitHub table: our number, below it the paper's in parentheses and the difference."""
    out = [f"## {_md(table.title)}", "", " ".join(map(_md, table.caption)), ""]
    for section, rows in _sections(table, LARGE):
        names = table.row_names[1:] if section else table.row_names
        if section:
            out += [f"### {_md(heading(table.row_names[0], table.names))}: {_md(pretty(section, table.names))}", ""]
        heads = [heading(n, table.names) for n in names]
        tops = ["<br>".join(_md(_column(c, n, table)) for c, n in _levels(labels, table)) for labels in table.columns]
        out += ["| " + " | ".join([*map(_md, heads), *tops]) + " |"]
        out += ["|" + "|".join([" :--- "] * len(names) + [" ---: "] * len(table.columns)) + "|"]
        for i in rows:
            labels = table.rows[i][1:] if section else table.rows[i]
            cells = [_md_entry(table, i, j) for j in range(len(table.columns))]
            out += ["| " + " | ".join([*(_md(pretty(x, table.names)) for x in labels), *cells]) + " |"]
        out += [""]
    out += [f"- {_md(note)}" for note in table.notes]
    return "\n".join(out).rstrip("\n") + "\n"


def latex(table: Table) -> str:
    r"""Tables for `\input` in a document with booktabs: our number, below it the paper's and the difference."""
    out = [f"% {table.id}, {table.scale} scale"]
    parts = [
        (section, chunk, block)
        for section, rows in _sections(table, LARGE)
        for chunk in _chunks(rows)
        for block in _blocks(table, chunk, bool(section))
    ]
    for k, (section, rows, block) in enumerate(parts):
        where = f" {heading(table.row_names[0], table.names)}: {pretty(section, table.names)}." if section else ""
        of = f" Part {k + 1} of {len(parts)}." if len(parts) > 1 else ""
        title = table.title.rstrip(".") + "." + where + of + " " + table.caption[0]
        out += [
            r"\begin{table}[htbp]", r"\centering", rf"\caption{{{tex(title)}}}",
            rf"\label{{tab:{table.id.replace('/', '-').replace('_', '-')}{f'-{k + 1}' if k else ''}}}",
            r"\footnotesize", r"\setlength{\tabcolsep}{3pt}",
            *_tabular(table, rows, block, bool(section)),
        ]  # fmt: skip
        if k == len(parts) - 1:
            notes = [*table.caption[1:], *table.notes]
            out += [r"\par\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize {' '.join(map(tex, notes))}}}"]
        out += [r"\end{table}"]
    return "\n".join(out) + "\n"


def tex(text: str) -> str:
    """`text` with everything that means something to LaTeX escaped."""
    return "".join(TEX.get(c, c) for c in text)


def _tabular(table: Table, rows: Sequence[int], block: Sequence[int], section: bool) -> list[str]:
    names = table.row_names[1:] if section else table.row_names
    width = len(names)
    out = [rf"\begin{{tabular}}{{@{{}}{'l' * width}{'c' * len(block)}@{{}}}}", r"\toprule"]
    for level in range(len(table.column_names)):
        heads = [table.columns[j][: level + 1] for j in block]
        last = level == len(table.column_names) - 1
        line = [tex(heading(n, table.names)) if last else "" for n in names]
        rules, at = [], 0
        while at < len(heads):
            span = next((k for k in range(at, len(heads)) if heads[k] != heads[at]), len(heads)) - at
            text = _stack(_column(heads[at][-1], table.column_names[level], table))
            line.append(text if last and span == 1 else rf"\multicolumn{{{span}}}{{c}}{{{text}}}")
            rules.append(rf"\cmidrule(lr){{{width + at + 1}-{width + at + span}}}")
            at += span
        out += [" & ".join(line) + r" \\"] + ([] if last else ["".join(rules)])
    out += [r"\midrule"]
    before: Labels = ()
    for i in rows:
        labels = table.rows[i][1:] if section else table.rows[i]
        same = next((d for d, (a, b) in enumerate(zip(labels, before, strict=False)) if a != b), len(before))
        if before and same < width - 1:
            out += [r"\addlinespace"]
        stub = ["" if before and d < same else tex(pretty(x, table.names)) for d, x in enumerate(labels)]
        entries = [table.body.get((i, j)) for j in block]
        out += [" & ".join([*stub, *(tex(e.ours) if e else "" for e in entries)]) + r" \\"]
        below = [tex(f"{e.paper} {e.difference}".strip()) if e else "" for e in entries]
        if any(below):
            out += [" & ".join([""] * width + below) + r" \\"]
        before = labels
    return [*out, r"\bottomrule", r"\end{tabular}"]


def _sections(table: Table, large: int) -> list[tuple[str, list[int]]]:
    """(value of the first row column, its rows); one nameless section for a table of ordinary size."""
    rows = range(len(table.rows))
    if len(table.row_names) < 2 or len(table.rows) * len(table.columns) <= large:
        return [("", list(rows))]
    heads = list(dict.fromkeys(labels[0] for labels in table.rows))
    return [(head, [i for i in rows if table.rows[i][0] == head]) for head in heads]


def _chunks(rows: Sequence[int]) -> list[Sequence[int]]:
    return [rows[k : k + LONG] for k in range(0, len(rows), LONG)] or [rows]


def _blocks(table: Table, rows: Sequence[int], section: bool) -> list[list[int]]:
    """The columns in groups that fit the width of a page, cut between the headings of the first level if possible."""

    def width(j: int) -> int:
        entries = [e for e in (table.body.get((i, j)) for i in rows) if e]
        texts = [*(e.ours for e in entries), *(f"{e.paper} {e.difference}" for e in entries)]
        head = textwrap.wrap(_column(table.columns[j][-1], table.column_names[-1], table), NARROW)
        return 2 + max(map(len, [*head, *texts]))

    first = 1 if section else 0
    stub = sum(
        2 + max(len(pretty(x, table.names)) for x in [table.row_names[d], *(table.rows[i][d] for i in rows)])
        for d in range(first, len(table.row_names))
    )
    room = WIDE - stub
    groups: list[list[int]] = []
    for j, labels in enumerate(table.columns):
        if groups and table.columns[groups[-1][0]][0] == labels[0] and len(labels) > 1:
            groups[-1].append(j)
        else:
            groups.append([j])
    blocks: list[list[int]] = []
    for group in groups:
        pieces = [group] if sum(map(width, group)) <= room else [[j] for j in group]
        for k, piece in enumerate(pieces):
            # A group that had to be cut starts a block of its own, so that its heading stands over it alone.
            fresh = not blocks or (len(pieces) > 1 and k == 0)
            if fresh or sum(map(width, [*blocks[-1], *piece])) > room:
                blocks.append(list(piece))
            else:
                blocks[-1] += piece
    return blocks


def _levels(labels: Labels, table: Table) -> list[tuple[str, str]]:
    return list(zip(labels, table.column_names, strict=True))


def _column(label: str, name: str, table: Table) -> str:
    """A column heading; a bare number says what it is a number of."""
    text = pretty(label, table.names)
    number = re.fullmatch(r"[\d.,/]+", text) is not None
    if not number:
        return heading(label, table.names)
    title = pretty(name, table.names)
    return f"{title} = {text}" if len(title) < 3 else f"{heading(name, table.names)} {text}"


def _stack(text: str) -> str:
    """A column heading in LaTeX, broken into lines if it is long."""
    lines = [tex(line) for line in textwrap.wrap(text, NARROW)] or [""]
    return lines[0] if len(lines) == 1 else r"\shortstack{" + r" \\ ".join(lines) + "}"


def _md(text: str) -> str:
    return re.sub(r"([|*\\`])", r"\\\1", text).replace("<", "&lt;").replace("\n", " ")


def _md_entry(table: Table, i: int, j: int) -> str:
    entry = table.body.get((i, j))
    if entry is None:
        return ""
    below = f"{entry.paper} {entry.difference}".strip()
    return _md(entry.ours) + (f"<br>{_md(below)}" if below else "")
