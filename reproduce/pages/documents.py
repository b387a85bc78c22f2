"""The pages that say what came out: every number is read from a committed file.

A template (`docs/findings/templates/*.md`, Jinja) asks `cells`, `printed`, `panel` and `minutes` for its numbers, and
`verdict` for the word on a claim; all verdicts stand in `docs/verdicts`. `python -m reproduce findings` writes the
pages, and a test compares the two. So no sentence keeps an old number or verdict.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import UserError, unknown
from reproduce.files import read_text
from reproduce.pages import choices
from reproduce.pages.quotes import FUNCTIONS, filled
from reproduce.pages.short import first_table, short
from reproduce.papers import PAPERS
from reproduce.papers.coverage import coverage, coverage_table
from reproduce.text import markdown as grid

if TYPE_CHECKING:
    from reproduce.verdicts.scoreboard import Verdict

TEMPLATES = Path("docs/findings/templates")
"""That of README.md is for what stands there between `<!-- results -->` and `<!-- end of results -->`; what else is
made there, and the verdicts, stand between like lines."""


def pages(root: Path = Path()) -> tuple[dict[Path, str], list[str]]:
    """Page -> what it should hold; and why others cannot be written, whose templates ask for what is not there."""
    from reproduce.verdicts import scoreboard, words

    results = root / "results"
    boards = {scale: scoreboard.scoreboard(scale, results) for scale in ("paper", "reduced")}
    page = root / "docs/verdicts/index.md"
    found = {page: _between(page, {"verdicts": words.verdicts(boards)})}
    failed: list[str] = []
    said = {f"{scale}/{v.id}": v.verdict for scale, board in boards.items() for v in board}

    def in_short(paper: str, scale: str) -> str:
        return str(short(paper, scale, boards[scale]))

    def verdict(claim: str) -> str:
        if claim not in said:
            raise unknown("claim", claim, said)
        return said[claim]

    for template in sorted((root / TEMPLATES).glob("*.md")):
        try:
            text = rendered(template, short=in_short, verdict=verdict)
            first = first_table(boards["paper"]) if template.name == "README.md" else ""
        except UserError as error:
            failed.append(f"{TEMPLATES / template.name}: {error}")
            continue
        if first:
            blocks = {"papers": first, "agreement": agreement_said(root), "coverage": coverage_table()}
            blocks |= {"claims": claims_table(boards), "results": text}
            found[root / "README.md"] = _between(root / "README.md", blocks)
        else:
            found[root / "docs/findings" / template.name] = text
    registers = []
    for paper in PAPERS:
        try:
            registers.append(choices.register(paper))
        except UserError as error:
            failed.append(str(error))
    if len(registers) == len(PAPERS):
        found[root / "docs/choices.md"] = choices.page(registers)
    return found, failed


def rendered(template: Path, **more: Any) -> str:
    """A template's text with the numbers of the working directory. UserError if it asks for what is not there."""
    functions = {f.__name__: f for f in FUNCTIONS} | {"coverage": {c.paper: c for c in coverage()}, **more}
    return reflow(filled(read_text(template), functions))


def agreement_said(root: Path) -> str:
    """Markdown: how many of our numbers agree with the printed ones, paper by paper, beside what chance would give."""
    from reproduce.pages import agreement

    lines = agreement.counts("paper", root / "tables", papers=True)
    return grid(agreement.HEAD, [[cell.replace("%", " %") for cell in line] for line in lines], ":" + "-" * 8)


def claims_table(boards: Mapping[str, Sequence[Verdict]]) -> str:
    """Markdown: how many claims are judged at each scale, by what their verdicts rest on."""
    from reproduce.verdicts.scoreboard import by_ground, checked, counted
    from reproduce.verdicts.verdict import JUDGED

    rows = [(scale, *row) for scale, board in boards.items() for row in by_ground(board) if row[1] != "0"]
    total = " and ".join(f"{counted(board)} at {scale} scale" for scale, board in boards.items())
    apart = [f"At {scale} scale {checked(board)}." for scale, board in boards.items()]
    table = grid(("scale", "verdicts rest on", "judged", *JUDGED), rows, "::-" + "-" * len(JUDGED))
    return "\n".join([f"Claims of the papers that are judged: {total}.", "", table, "", *apart])


def _between(page: Path, blocks: Mapping[str, str]) -> str:
    """The page with new text after each line `<!-- NAME -->`, up to `<!-- end of NAME -->`."""
    text = read_text(page)
    for name, block in blocks.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise UserError(f"{page} must contain the lines '{begin}' and '{end}'")
        text = f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"
    return text


def reflow(text: str, width: int = 124) -> str:
    """Markdown with its paragraphs and list items filled; tables, headings, images and code stay as they are."""
    blocks = re.split(r"\n(?=\s*\n|- |\||#|!\[)|(?<=\|)\n(?!\|)", text.strip())
    return "\n".join(_filled(b, width) for b in blocks) + "\n"


def _filled(block: str, width: int) -> str:
    lead = block.lstrip("\n")
    if not lead.strip() or lead.startswith(("|", "#", "![", "    ", "```", "<!--")):
        return block
    space = "\n" * (len(block) - len(lead))
    words = textwrap.fill(
        " ".join(lead.split()), width, subsequent_indent="  " if lead.startswith("- ") else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return space + words
