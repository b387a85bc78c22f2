"""The scoreboard as Markdown, for docs/verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reproduce.papers import artifacts
from reproduce.report.formats import md
from reproduce.verdicts import words
from reproduce.verdicts.scoreboard import Tally, Verdict, by_ground, headline
from reproduce.verdicts.verdict import VERDICTS

SIGNS: Mapping[str, str] = {
    "reproduced": "✓", "contradicted": "✗", "depends": "◇", "inconclusive": "?", "not run": "–",
}  # fmt: skip


def scoreboard(scale: str, verdicts: Iterable[Verdict], found: Sequence[Tally] = ()) -> str:
    """Coverage, verdicts by what they rest on and by paper, then a table per paper; what did not run by its reason."""
    verdicts = list(verdicts)
    by_paper: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_paper.setdefault(v.id.split("/")[0], []).append(v)
    lines = [f"# Verdicts at {scale} scale", "", f"Printed by `python -m reproduce verify {scale} --markdown`."]
    lines += [*headline(found, verdicts), "", *_totals(by_paper, found), ""]
    lines += _table(("rests on", "judged", *VERDICTS[:-1]), by_ground(verdicts), left=1)
    for paper, mine in by_paper.items():
        lines += ["", f"## {paper}", ""]
        judged = sorted((v for v in mine if v.verdict != "not run"), key=lambda v: VERDICTS.index(v.verdict))
        head = ("verdict", "claim", "ours", "required", "the paper's number", "remarks")
        lines += _table(head, map(row, judged), left=len(head)) if judged else []
        lines += ["" for _ in judged[:1]] + _idle(mine)
    return "\n".join(lines) + "\n"


def row(v: Verdict) -> tuple[str, ...]:
    """A judged claim as cells of a table."""
    names = {a.id: a.names for a in artifacts()}.get(v.artifact, {})

    def said(setting: str, text: str) -> str:
        return md(f"{words.named(setting, names)}: {text}" if setting else text)

    ours = said(v.measured.setting, words.measured(v.measured)) if v.measured else ""
    printed = said(v.printed.setting, words.measured(v.printed)) if v.printed else ""
    own = {"fails": "fails on the paper's own numbers"}.get(v.paper_numbers, "")
    remarks = "; ".join(filter(None, [words.named(f"{v.covers}; {v.reason}".strip("; "), names), own]))
    claim = f"{v.statement} `{v.id.split('/', 1)[1]}`"
    wanted = words.required(v.measured) if v.measured else ""
    return (f"{SIGNS[v.verdict]} {v.verdict}<br>{v.rests_on}", claim, ours, md(wanted), printed, md(remarks))


def _totals(by_paper: Mapping[str, Sequence[Verdict]], found: Sequence[Tally]) -> list[str]:
    of = {c.paper: (str(c.has), str(c.made), str(c.run)) for c in found}
    rows = []
    for paper, mine in by_paper.items():
        counts = Counter(v.verdict for v in mine)
        rows.append((paper, *of.get(paper, ("", "", "")), str(len(mine)), *(str(counts[name]) for name in VERDICTS)))
    return _table(("paper", "figures and tables", "made", "with numbers", "claims", *VERDICTS), rows, left=1)


def _idle(verdicts: Iterable[Verdict]) -> list[str]:
    """One item per reason for which claims were not judged."""
    by_reason: dict[str, list[str]] = {}
    for v in verdicts:
        if v.verdict == "not run":
            by_reason.setdefault(v.reason, []).append(f"`{v.id.split('/', 1)[1]}`")
    return [f"- Not run, {md(reason)}: {', '.join(names)}" for reason, names in by_reason.items()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """A table whose first `left` columns are flush left, the others right."""
    marks = [" --- " if i < left else " ---: " for i in range(len(head))]
    cells = [[re.sub(r"(?<!\\)\|", r"\|", cell) for cell in line] for line in (head, *rows)]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    return [lines[0], f"|{'|'.join(marks)}|", *lines[1:]]
