"""The Markdown that `report.formats` writes, as HTML: headings, tables, lists, paragraphs, emphasis, code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby


def to_html(text: str, top: int = 1) -> str:
    """`text` as HTML; a heading `#` becomes <h`top`>, `##` the next lower one, and so on."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(part for kind, group in groupby(lines, _kind) for part in _block(kind, list(group), top))


def _kind(line: str) -> str:
    for kind, pattern in (("heading", r"#+ "), ("table", r"\|"), ("list", r"[-*] "), ("blank", r"$")):
        if re.match(pattern, line):
            return kind
    return "text"


def _block(kind: str, lines: Sequence[str], top: int) -> Iterator[str]:
    if kind == "heading":
        for line in lines:
            marks, text = line.split(" ", 1)
            level = min(top + len(marks) - 1, 6)
            yield f"<h{level}>{_inline(text)}</h{level}>"
    elif kind == "table":
        yield from _table(lines)
    elif kind == "list":
        yield "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"
    elif kind == "text":
        yield f"<p>{_inline(' '.join(lines))}</p>"


def _table(lines: Sequence[str]) -> Iterator[str]:
    head, rule, *body = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    right = [mark.endswith(":") and not mark.startswith(":") for mark in rule]
    yield '<div class="wide"><table>'
    yield "<thead>" + _row("th", head, right) + "</thead>"
    yield "<tbody>" + "\n".join(_row("td", cells, right) for cells in body) + "</tbody></table></div>"


def _row(tag: str, cells: Sequence[str], right: Sequence[bool]) -> str:
    aligned = (f'<{tag} class="n">' if r else f"<{tag}>" for r in right)
    return "<tr>" + "".join(f"{a}{_inline(cell)}</{tag}>" for a, cell in zip(aligned, cells, strict=True)) + "</tr>"


def _inline(text: str) -> str:
    """Everything but <br> is text: a `<` in it has no meaning, entities keep theirs."""
    text = re.sub(r"<(?!br>)", "&lt;", text)
    text = re.sub(r"(?<!\\)`(.+?)(?<!\\)`", r"<code>\1</code>", text)
    text = re.sub(r"(?<!\\)\*\*(.+?)(?<!\\)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<!\\)\*(.+?)(?<!\\)\*", r"<em>\1</em>", text)
    return re.sub(r"\\([|*\\`])", r"\1", text)
