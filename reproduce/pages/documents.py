"""The documents with the results, from committed files: a page for each paper, one of all claims, and what stands
in README.

A template (Jinja: `page.md` of a paper, `docs/papers/templates/*.md`) asks `cells`, `printed`, `panel` and `minutes`
for its numbers, and `comparison` for the agreement with published numbers. A paper's page ends with its unstated
choices. What is missing or wrong of one stops that page alone.
`reproduce report --docs` writes them, and a test compares. So no sentence keeps an old number or verdict.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reproduce.declare.paper import papers, total
from reproduce.errors import UserError
from reproduce.files import read_text
from reproduce.pages import agreement, choices, overview
from reproduce.pages.page import numbers
from reproduce.pages.page_numbers import FUNCTIONS, filled, spent
from reproduce.pages.summary import SIDES, first_table, register, summary
from reproduce.runs import plan
from reproduce.text import markdown
from reproduce.verdicts import wording
from reproduce.verdicts.scope import EMPIRICAL, GENUINE, SUBSTITUTE
from reproduce.verdicts.scoreboard import Verdict, by_ground, claims, counts, scoreboard
from reproduce.verdicts.verdict import JUDGED, ON_SUBSTITUTE

TEMPLATES = Path("docs/papers/templates")
"""That of README.md is for what stands there between `<!-- results -->` and `<!-- end of results -->`; what else is
made there stands between like lines."""
README, RULES, CLAIMS = Path("README.md"), Path("docs/claims.md"), Path("docs/papers/claims.md")
Boards = Mapping[str, Sequence[Verdict]]
NOTATION = (
    "Brackets have 95 % confidence intervals; ‡ marks wider ones of verdicts. *Also* marks claims beside the question "
    "([notation](index.md), [all claims](claims.md))."
)
"""The line under a paper's summary."""


def documents() -> tuple[dict[Path, str], list[str]]:
    """Document -> what it should hold; and why others cannot be written, whose templates ask for what is not there."""
    boards: Boards = {scale: scoreboard(scale) for scale in ("paper", "reduced")}
    texts: dict[Path, str] = {CLAIMS: claims_page(boards)}
    failed: list[str] = []
    pages: list[tuple[str, str, Any]] = [(str(t), t.name, partial(rendered, t)) for t in sorted(TEMPLATES.glob("*.md"))]
    pages += [(f"{p.place}/page.md", f"{key}.md", partial(_page, key, boards)) for key, p in papers().items()]
    for template, name, render in tqdm(pages, "documents", leave=False, disable=None):
        try:
            page = Path("docs/papers", name)
            texts |= {README: _readme(render(), boards)} if name == README.name else {page: render()}
        except UserError as error:
            failed.append(f"{template}: {error}")
    texts[RULES] = with_blocks(RULES, {"both scales": both_scales(boards)})
    return texts, failed


def rendered(template: Path, **more: Any) -> str:
    """A template's text with the numbers of the working directory. UserError if it asks for what is not there."""
    functions = {f.__name__: f for f in FUNCTIONS} | more
    return re.sub(r"\n{3,}", "\n\n", filled(read_text(template), functions).strip()) + "\n"


def _summary(boards: Boards, paper: str) -> str:
    summaries = {scale: summary(paper, scale, board) for scale, board in boards.items()}
    parts = [f"**{summaries['paper'].question}**"]
    for scale, one in summaries.items():
        listed = (f"- *{label.capitalize()}:* {text}" for label, text in one.sentences.values())
        beside = f" ({register(paper)['substitute']})" if scale == "reduced" else ""
        parts += [f"**At {scale} scale{beside}: {one.word}.** The answer follows from {one.counts}.", "\n".join(listed)]
    return "\n\n".join([*parts, NOTATION])


def _page(paper: str, boards: Boards) -> str:
    """A paper's own page, and its unstated choices."""
    text = rendered(papers()[paper].file("page.md"), summary=partial(_summary, boards), comparison=agreement.section)
    listed = f"../../{papers()[paper].place}/open_choices.yaml"
    return f"{text}\n## Unstated choices\n\n{choices.section(choices.register(paper), listed)}\n"


# --- from claim to number ---------------------------------------------------------------------------------------------

INTRODUCTION = """# From claim to number

This page has all claims of the papers, table by table and figure by figure. A claim is listed at paper scale, or at
reduced scale if it is evaluated there alone. Its numbers are those that decide the verdict ([how to read
one](index.md#how-to-read-a-verdict)).

The first command trains again, in a folder of its own. The time is the CPU time of the committed runs. The command
skips panels whose data sets are missing, and says so. The second command shows the numbers behind the verdicts, which
are in the file. `reproduce replay` instead of `verify` trains only the first rounds, and compares them.
"""


def claims_page(boards: Boards) -> str:
    """Markdown: the claims of a paper by artifact, each at the first scale where it is judged, or at the first."""
    chosen = []
    for row in zip(*boards.values(), strict=True):
        judged = [*zip(boards, row, strict=True)]
        chosen.append(next((pair for pair in judged if pair[1].verdict in JUDGED), judged[0]))
    order = [a.id for a in plan.select(None)]
    chosen.sort(key=lambda pair: (order.index(pair[1].artifact), [*boards].index(pair[0])))
    text, paper = [INTRODUCTION], ""
    for (scale, artifact), pairs in groupby(chosen, key=lambda pair: (pair[0], pair[1].artifact)):
        key = artifact.partition("/")[0]
        text += [f"## {papers()[key].name}\n"] * (key != paper)
        paper = key
        text.append(_part(scale, artifact, [v for _, v in pairs]))
    return "\n".join(text)


def _part(scale: str, artifact: str, verdicts: Sequence[Verdict]) -> str:
    """The claims about an artifact at a scale."""
    output, cells = plan.outputs(scale, artifact)[0], plan.cells_file(scale, artifact)
    at = "" if scale == "paper" else f" --scale {scale}"
    anew = f"`snakemake {output} --cores 2 -d anew --config budget=1000` ({spent(plan.artifact_jobs(scale, artifact))})"
    show = f"`reproduce verify {artifact}{at}`"
    file = f"[{cells}](../../{cells})" if Path(cells).is_file() else "no numbers yet"
    head = f"### {artifact}, {scale} scale\n\n{anew}\\\n{show}: {file}\n"
    rows = []
    for v in verdicts:
        shown = numbers(v)
        rows.append([f"{v.statement} `{v.name}`", shown.get("paper", "–"), shown.get("ours", "–"), verdict_of(v)])
    return f"{head}\n{markdown(('claim', 'published', 'reproduced', 'verdict'), rows)}\n"


def verdict_of(v: Verdict) -> str:
    """A verdict, and under it what it rests on, and what else to know of it."""
    if v.verdict not in JUDGED:
        return v.verdict
    ground = "" if v.rests_on in EMPIRICAL else v.rests_on
    return f"{v.verdict}<br>" + "; ".join(filter(None, [wording.basis(v), ground, *wording.beside_print(v)]))


def _readme(results: str, boards: Boards) -> str:
    """README with its blocks anew."""
    blocks = {
        "papers": first_table(boards),
        "overview": f"[![{overview.alt(overview.tiles(boards['paper']))}]({overview.PNG})]({overview.SVG})",
        "agreement": agreement.summary(),
        "claims": claims_table(boards),
        "results": results,
    }
    return with_blocks(README, blocks)


def with_blocks(file: Path, blocks: Mapping[str, str]) -> str:
    """A document with new text after each line `<!-- NAME -->`, up to `<!-- end of NAME -->`."""
    text = read_text(file)
    for name, block in blocks.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise UserError(f"{file} must contain the lines '{begin}' and '{end}'")
        text = f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"
    return text


def claims_table(boards: Boards) -> str:
    """Markdown: how many figures and tables of each paper have numbers of ours at each scale; how many of its claims
    are evaluated, by their verdicts; and of all claims by what they rest on."""
    board, words = boards["paper"], [word for word in JUDGED if word not in ON_SUBSTITUTE.values()]
    parts: list[tuple[list[Any], Counter[str]]] = []
    for key, of in papers().items():
        verdicts, with_numbers = [v for v in board if v.paper == key], [of.with_numbers(scale) for scale in boards]
        first = [f"[{of.name}](docs/papers/{key}.md)", of.figures + of.tables, *with_numbers, len(claims(verdicts))]
        parts.append((first, counts(verdicts)))
    sums = [sum(first[k] for first, _ in parts) for k in (1, 2, 3)]
    parts += [(["all", *sums, counts(board).total()], counts(board))]
    parts += [([f"of these on {ground}", *[""] * 4], tally) for ground, tally in by_ground(board) if tally]
    lines = [[*first, sum(c[w] for w in words), *(c[w] for w in words)] for first, c in parts]
    columns = (f"with our numbers, {scale} scale" for scale in boards)
    head = ("paper", "figures and tables", *columns, "claims", "evaluated", *words)
    unrun = counts(board)["not run"]
    beyond = sum(not v.artifact.partition("/")[2].startswith(("fig", "table")) for v in claims(board))
    above = (
        f"**{total()} figures and tables of the five papers are part of this package.** One has our numbers if at "
        "least one of its panels was run; its caption says which. Claims are evaluated at paper scale. The last lines "
        f"count them by what they rest on. {unrun} claims are not run. {beyond} concern no figure or table, so that "
        "the picture above lacks them."
    )
    return f"{above}\n\n{markdown(head, lines, ':' + '-' * (len(head) - 1))}"


def both_scales(boards: Boards) -> str:
    """Markdown: the verdicts at reduced scale of the claims that are judged on the paper's data, by those there."""
    rows = zip(boards["paper"], boards["reduced"], strict=True)
    both = Counter((p.verdict, r.verdict) for p, r in rows if p.rests_on == GENUINE and r.rests_on == SUBSTITUTE)
    above, beside = ([w for w in JUDGED if any(w == pair[k] for pair in both)] for k in (0, 1))
    lines = [(r, *(str(both[p, r]) for p in above), str(sum(both[p, r] for p in above))) for r in beside]
    table = markdown(
        ("on substitute data", *(f"{p} on the paper's data" for p in above), "all"), lines, ":" + "-" * (len(above) + 1)
    )
    sentences = []
    for r in ON_SUBSTITUTE.values():
        agree, other = (sum(both[p, r] for p in SIDES[side]) for side in ("supported", "refuted"))
        agree, other = (other, agree) if r in SIDES["refuted"] else (agree, other)
        sentences += [f"*{r}* was right {agree} of {agree + other} times"] if agree + other else []
    return f"{both.total()} claims are evaluated at both scales. Where both decide, {', '.join(sentences)}.\n\n{table}"
