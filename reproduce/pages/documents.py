"""The documents that say what came out, from committed files: a page for each paper, one of all claims, and what stands
in README.

A template (`docs/papers/templates/*.md`, Jinja) asks `cells`, `printed`, `panel` and `minutes` for its numbers. A
paper's page goes on with tables of its agreement with the print, of its open choices and of its claims.
`reproduce report --docs` writes them, and a test compares. So no sentence keeps an old number or verdict.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import UserError
from reproduce.files import read_text
from reproduce.pages import agreement, by_claim, choices
from reproduce.pages.quotes import FUNCTIONS, filled
from reproduce.pages.short import SIDES, first_table, short
from reproduce.papers import PAPERS
from reproduce.papers.coverage import coverage, coverage_table
from reproduce.text import counted, markdown
from reproduce.verdicts.scope import CHECK, EMPIRICAL
from reproduce.verdicts.verdict import JUDGED

if TYPE_CHECKING:
    from reproduce.verdicts.scoreboard import Verdict

TEMPLATES = Path("docs/papers/templates")
"""That of README.md is for what stands there between `<!-- results -->` and `<!-- end of results -->`; what else is
made there stands between like lines."""
Boards = Mapping[str, Sequence["Verdict"]]


def documents() -> tuple[dict[Path, str], list[str]]:
    """Document -> what it should hold; and why others cannot be written, whose templates ask for what is not there."""
    from tqdm import tqdm

    from reproduce.verdicts.scoreboard import scoreboard

    boards: Boards = {scale: scoreboard(scale) for scale in ("paper", "reduced")}
    found: dict[Path, str] = {by_claim.FILE: by_claim.page(boards)}
    failed: list[str] = []
    for template in tqdm(sorted(TEMPLATES.glob("*.md")), "documents", leave=False, disable=None):
        try:
            text = rendered(template, short=partial(_in_short, boards))
            if template.name == "README.md":
                found[Path("README.md")] = _readme(text, boards)
            else:
                tables = _tables(template.stem, boards) if template.stem in PAPERS else ""
                found[Path("docs/papers", template.name)] = text + tables
        except UserError as error:
            failed.append(f"{template}: {error}")
    return found, failed


def rendered(template: Path, **more: Any) -> str:
    """A template's text with the numbers of the working directory. UserError if it asks for what is not there."""
    functions = {f.__name__: f for f in FUNCTIONS} | {"coverage": {c.paper: c for c in coverage()}, **more}
    return reflow(filled(read_text(template), functions))


def _in_short(boards: Boards, paper: str) -> str:
    said = {scale: short(paper, scale, board) for scale, board in boards.items()}
    answers = [f"**At {scale} scale:** {one}" for scale, one in said.items()]
    return "\n\n".join([f"**{said['paper'].question}**", *answers])


def _tables(paper: str, boards: Boards) -> str:
    """What every paper's page ends with."""
    parts = [
        ("Beside the printed numbers", agreement.section(paper)),
        ("What the paper leaves open", choices.section(choices.register(paper))),
        ("Claims", claims_list(paper, boards)),
    ]
    return "".join(f"\n## {head}\n\n{text}\n" for head, text in parts if text)


def claims_list(paper: str, boards: Boards) -> str:
    """Markdown: what is judged of a paper's claims, with the verdict at each scale; of the checks those that fail."""
    rows = [row for row in zip(*boards.values(), strict=True) if row[0].paper == paper]
    checks = [row for row in rows if CHECK in {v.rests_on for v in row}]
    claims = [row for row in rows if row not in checks]
    asked = [row for row in claims if any(v.verdict in JUDGED for v in row)]
    odd = [row for row in checks if any(v.verdict not in (*SIDES["holds"], "not run") for v in row)]
    said = [f"Not run at either scale: {counted(len(claims) - len(asked), 'claim')}."] * (len(claims) > len(asked))
    said += [
        f"Of {counted(len(checks), 'check')}, true or false whatever is trained, {len(odd)} fail at a scale."
    ] * bool(checks)
    table = markdown(("claim", *(f"{scale} scale" for scale in boards)), map(_line, [*asked, *odd]))
    return "\n".join([table, "", *said])


def _line(row: Sequence[Verdict]) -> list[str]:
    """What a claim says, its name, what it rests on if not on training data, its verdicts."""
    grounds = ", ".join({v.rests_on: None for v in row if v.rests_on not in ("", *EMPIRICAL)})
    return [f"{row[0].statement} `{row[0].name}`" + f" ({grounds})" * bool(grounds), *map(_cell, row)]


def _cell(v: Verdict) -> str:
    """A verdict, and under it settings×seeds and the look: "64×3–10, look 2"."""
    if v.verdict not in JUDGED:
        return "–"
    seeds = "×" + "–".join(str(n) for n in sorted(set(v.seeds))) if any(v.seeds) else ""
    return f"{v.verdict}<br>{v.settings}{seeds}" + f", look {v.look}" * (v.look > 1)


def _readme(results: str, boards: Boards) -> str:
    """README with new text after each line `<!-- NAME -->`, up to `<!-- end of NAME -->`."""
    counts = [[cell.replace("%", " %") for cell in line] for line in agreement.counts("paper", papers=True)]
    blocks = {
        "papers": first_table(boards["paper"]),
        "agreement": markdown(agreement.HEAD, counts, ":" + "-" * 8),
        "coverage": coverage_table(),
        "claims": claims_table(boards),
        "results": results,
    }
    text = read_text(Path("README.md"))
    for name, block in blocks.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise UserError(f"README.md must contain the lines '{begin}' and '{end}'")
        text = f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"
    return text


def claims_table(boards: Boards) -> str:
    """Markdown: how many claims are judged at each scale, by what their verdicts rest on."""
    from reproduce.verdicts.scoreboard import by_ground, checked
    from reproduce.verdicts.scoreboard import counted as of_all

    rows = [(scale, *row) for scale, board in boards.items() for row in by_ground(board) if row[1] != "0"]
    total = " and ".join(f"{of_all(board)} at {scale} scale" for scale, board in boards.items())
    apart = [f"At {scale} scale {checked(board)}." for scale, board in boards.items()]
    table = markdown(("scale", "verdicts rest on", "judged", *JUDGED), rows, "::-" + "-" * len(JUDGED))
    return "\n".join([f"Claims of the papers that are judged: {total}.", "", table, "", *apart])


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
