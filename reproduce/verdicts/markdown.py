"""Markdown: the scoreboard for docs/verdicts, and what cells hold for docs/claims.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reproduce.papers import artifacts
from reproduce.report.formats import md
from reproduce.verdicts import words
from reproduce.verdicts.claims import ClaimsFile
from reproduce.verdicts.scoreboard import Tally, Verdict, by_ground, headline
from reproduce.verdicts.verdict import JUDGED, VERDICTS

SIGNS: Mapping[str, str] = {
    "reproduced": "✓", "supported where run": "◐", "contradicted": "✗", "depends": "◇", "undecided": "?",
    "not run": "–",
}  # fmt: skip


def scoreboard(scale: str, verdicts: Iterable[Verdict], found: Sequence[Tally] = ()) -> str:
    """Coverage, verdicts by what they rest on and by paper, then a table per paper; what did not run by its reason."""
    by_paper: dict[str, list[Verdict]] = {}
    for v in (verdicts := list(verdicts)):
        by_paper.setdefault(v.id.split("/")[0], []).append(v)
    tallies = {c.paper: (str(c.has), str(c.made), str(c.run)) for c in found}
    totals = []
    for paper, mine in by_paper.items():
        counts = Counter(v.verdict for v in mine)
        judged = (str(counts[name]) for name in VERDICTS)
        totals.append((paper, *tallies.get(paper, ("", "", "")), str(len(mine)), *judged))
    lines = [f"# Verdicts at {scale} scale", "", f"Printed by `python -m reproduce verify {scale} --markdown`."]
    lines += [*headline(found, verdicts), ""]
    lines += [*table(("paper", "figures and tables", "made", "with numbers", "claims", *VERDICTS), totals, left=1), ""]
    lines += table(("rests on", "judged", *JUDGED), by_ground(verdicts), left=1)
    for paper, mine in by_paper.items():
        lines += ["", f"## {paper}", ""]
        rows = [row(v) for v in sorted(mine, key=lambda v: VERDICTS.index(v.verdict)) if v.verdict in JUDGED]
        head = ("verdict", "claim", "ours", "required", "the paper's number", "remarks")
        lines += [*table(head, rows, left=len(head)), ""] if rows else []
        idle: dict[str, list[str]] = {}
        for v in (v for v in mine if v.verdict == "not run"):
            idle.setdefault(v.reason, []).append(f"`{v.id.split('/', 1)[1]}`")
        lines += [f"- Not run, {md(reason)}: {', '.join(names)}" for reason, names in idle.items()]
    return "\n".join(lines) + "\n"


def row(v: Verdict) -> tuple[str, ...]:
    """A judged claim as cells of a table."""
    names = {a.id: a.names for a in artifacts()}.get(v.artifact, {})

    def of_setting(setting: str, text: str) -> str:
        return md(f"{words.named(setting, names)}: {text}" if setting else text)

    ours = of_setting(v.measured.setting, words.measured(v.measured)) if v.measured else ""
    printed = of_setting(v.printed.setting, words.measured(v.printed)) if v.printed else ""
    own = {"fails": "fails on the paper's own numbers"}.get(v.paper_numbers, "")
    said = f"{v.covers}; {v.reason}".strip("; ") + f"; would decide it: {v.decides}" * bool(v.decides)
    remarks = "; ".join(filter(None, [words.named(said, names), own]))
    claim = f"{v.statement} `{v.id.split('/', 1)[1]}`"
    wanted = words.required(v.measured) if v.measured else ""
    verdict = "<br>".join(filter(None, [f"{SIGNS[v.verdict]} {v.verdict}", v.rests_on, words.basis(v)]))
    return (verdict, claim, ours, md(wanted), printed, md(remarks))


def demands(files: Iterable[ClaimsFile]) -> str:
    """Per paper: what the cells of each artifact hold, and what each metric is."""
    lines = []
    for file in files:
        rows = []
        for name, cells in file.artifacts.items():
            columns = [f"`{column}`: {', '.join(values)}" for column, values in cells.columns.items()]
            columns += [f"labels: {', '.join(f'`{label}`' for label in cells.labels)}"] if cells.labels else []
            metrics = ", ".join(f"`{m}`" + "*" * (m in cells.points) for m in cells.metrics)
            rows.append((name, "; ".join(columns) or "none", ", ".join(cells.algorithms), metrics, cells.reduced))
        head = ("artifact", "setting columns (values at paper scale)", "algorithms", "metrics", "smaller scales")
        lines += [f"### {file.paper}", "", *table(head, rows, left=len(head)), ""]
        head_of_metrics = ("metric", "unit", "better", "definition")
        metrics_of = [(f"`{m.name}`", m.unit, m.better, m.text.replace("|", "&#124;")) for m in file.metrics.values()]
        lines += [*table(head_of_metrics, metrics_of, left=4), ""]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """A table whose first `left` columns are flush left, the others right."""
    marks = [" --- " if i < left else " ---: " for i in range(len(head))]
    cells = [[re.sub(r"(?<!\\)\|", r"\|", cell) for cell in line] for line in (head, *rows)]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    return [lines[0], f"|{'|'.join(marks)}|", *lines[1:]]
