"""Markdown, as tables and documents of this package are written in, to HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

MANY = 10
"""More columns than this are many."""


def to_html(text: str, top: int = 1, taken: Iterable[str] | None = None) -> str:
    """`text` as HTML; a heading `#` becomes <h`top`>, `##` the next lower one.

    taken: the ids of the page that a document becomes; its headings get those that links to them name (`_anchored`).
    None: a part of a page, whose headings have no ids.

    Of HTML in the text only <br> has a meaning and comments vanish. Tables scroll in a frame that the keyboard reaches;
    their heads, and the first cell of each line, are headers for screen readers.
    """
    tokens = list(_headers(_parser().parse(text)))
    if taken is not None:
        _anchored(tokens, taken)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + top - 1, 6)}"
    return str(_parser().renderer.render(tokens, _parser().options, {}))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    rules: dict[str, Callable[..., str]] = {
        "html_inline": lambda tokens, i, options, env: _own(tokens[i].content),
        "html_block": lambda tokens, i, options, env: _own(tokens[i].content),
        "table_open": lambda tokens, i, options, env: _frame(tokens, i),
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


def _frame(tokens: Sequence[Token], i: int) -> str:
    """The beginning of a table; `many` columns are set smaller in print."""
    end = next(k for k in range(i, len(tokens)) if tokens[k].type == "thead_close")
    columns = sum(token.type == "th_open" for token in tokens[i:end])
    return f'<div class="wide{" many" * (columns > MANY)}" tabindex="0"><table>\n'


def _headers(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with `scope` on the headers of tables, the first cell of every line a header, alignment as a class."""
    first = header = False
    for token in tokens:
        if token.type in ("th_open", "td_open") and "style" in token.attrs:
            style = token.attrs.pop("style")
            if style == "text-align:right":
                token.attrSet("class", "n")
        if token.type == "tr_open":
            first = True
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            header, first = first, False
            if header:
                token.tag = "th"
                token.attrSet("scope", "row")
        elif token.type == "td_close" and header:
            token.tag, header = "th", False
        yield token


def _anchored(tokens: Sequence[Token], taken: Iterable[str]) -> None:
    """Headings with the ids that GitHub gives them, which links in documents name: the words in small letters, hyphens
    for blanks, other signs dropped; one that is `taken` gets the next free number."""
    used = set(taken)
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        said = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        name = anchor = re.sub(r"[^\w -]", "", said.strip().lower()).replace(" ", "-")
        number = 0
        while anchor in used:
            number += 1
            anchor = f"{name}-{number}"
        used.add(anchor)
        token.attrSet("id", anchor)
