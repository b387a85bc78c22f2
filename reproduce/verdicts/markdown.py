"""Markdown: all claims with their verdicts, for docs/verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduce.text import markdown as table
from reproduce.verdicts.scope import CHECK, EMPIRICAL
from reproduce.verdicts.scoreboard import HOLDS, Verdict
from reproduce.verdicts.verdict import JUDGED

SIGNS: Mapping[str, str] = {
    "reproduced": "✓", "supported where run": "◐", "contradicted": "✗", "depends": "◇", "undecided": "?",
    "not run": "–",
}  # fmt: skip


def verdicts(boards: Mapping[str, Sequence[Verdict]]) -> str:
    """A table for each paper: a line for a claim, with its verdict at each scale; checks come last."""
    papers: dict[str, list[tuple[Verdict, ...]]] = {}
    for row in zip(*boards.values(), strict=True):
        papers.setdefault(row[0].paper, []).append(row)
    head = ("claim", *(f"{scale} scale" for scale in boards))
    lines: list[str] = []
    for paper, rows in papers.items():
        rows.sort(key=lambda row: CHECK in {v.rests_on for v in row})
        lines += [f"### {paper}", "", table(head, map(line, rows)), ""]
    return "\n".join(lines)


def line(row: Sequence[Verdict]) -> list[str]:
    """A claim as cells of a table: what it says, its name, what it rests on if not on training data, its verdicts."""
    grounds = ", ".join({v.rests_on: None for v in row if v.rests_on not in ("", *EMPIRICAL)})
    return [f"{row[0].statement} `{row[0].name}`" + f" ({grounds})" * bool(grounds), *map(cell, row)]


def cell(v: Verdict) -> str:
    """A verdict, and under it the settings and seeds that it rests on, and the look: "64×3–10, look 2"."""
    if v.rests_on == CHECK:
        return HOLDS[v.verdict]
    seeds = "×" + "–".join(str(n) for n in sorted(set(v.seeds))) if any(v.seeds) else ""
    look = f", look {v.look}" * (v.look > 1)
    return f"{v.verdict}<br>{v.settings}{seeds}{look}" if v.verdict in JUDGED else SIGNS[v.verdict]
