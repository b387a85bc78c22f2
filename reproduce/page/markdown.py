"""Markdown, as tables and documents of this package are written in, to HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from reproduce.page.tables import marked, said

MANY = 10
"""More columns than this are many."""


def to_html(text: str, top: int = 1, taken: Iterable[str] | None = None, name: str = "Table") -> str:
    """`text` as HTML; a heading `#` becomes <h`top`>, `##` the next lower one.

    taken: the ids of the page that a document becomes; its headings get those that links to them name (`_anchored`).
    None: a part of a page, whose headings have no ids. name: of tables without a heading above them.

    Of HTML in the text only <br> has a meaning and comments vanish. Tables scroll in a frame that the keyboard reaches.
    """
    tokens = list(marked(_parser().parse(text), name))
    if taken is not None:
        _anchored(tokens, taken)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + top - 1, 6)}"
    return str(_parser().renderer.render(tokens, _parser().options, {}))


def first_heading(text: str) -> tuple[int, str] | None:
    """The level and the words of the first heading."""
    for token, inline in pairwise(_parser().parse(text)):
        if token.type == "heading_open":
            return int(token.tag[1]), said(inline)
    return None


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    rules: dict[str, Callable[..., str]] = {
        "html_inline": lambda tokens, i, options, env: _own(tokens[i].content),
        "html_block": lambda tokens, i, options, env: _own(tokens[i].content),
        "table_open": lambda tokens, i, options, env: _frame(tokens[i]),
        "table_close": lambda tokens, i, options, env: "</table></div>\n",
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, _method(rule))
    return parser


def _method(rule: Callable[..., str]) -> Callable[..., str]:
    def render(self: Any, *arguments: Any) -> str:
        return rule(*arguments)

    return render


def _own(text: str) -> str:
    if text.strip() in ("<br>", "<br/>"):
        return "<br>"
    return "" if text.strip().startswith("<!--") else html.escape(text, quote=False)


def _frame(table: Token) -> str:
    """The beginning of a table; `many` columns are set smaller in print."""
    many = " many" * (table.meta["columns"] > MANY)
    name = html.escape(table.meta["name"])
    return f'<div class="wide{many}" role="group" aria-label="{name}" tabindex="0"><table>\n'


def _anchored(tokens: Sequence[Token], taken: Iterable[str]) -> None:
    """Headings with the ids that GitHub gives them, which links in documents name: the words in small letters, hyphens
    for blanks, other signs dropped; one that is `taken` gets the next free number."""
    used = set(taken)
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        name = anchor = re.sub(r"[^\w -]", "", said(inline).strip().lower()).replace(" ", "-")
        number = 0
        while anchor in used:
            number += 1
            anchor = f"{name}-{number}"
        used.add(anchor)
        token.attrSet("id", anchor)
