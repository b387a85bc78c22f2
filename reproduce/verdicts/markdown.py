"""Markdown: the scoreboard for docs/verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reproduce.report.formats import md
from reproduce.text import markdown as table
from reproduce.verdicts import words
from reproduce.verdicts.scoreboard import HOLDS, Tally, Verdict, by_ground, checked, checks, claims, headline
from reproduce.verdicts.verdict import JUDGED, VERDICTS

SIGNS: Mapping[str, str] = {
    "reproduced": "✓", "supported where run": "◐", "contradicted": "✗", "depends": "◇", "undecided": "?",
    "not run": "–",
}  # fmt: skip


def scoreboard(scale: str, verdicts: Iterable[Verdict], found: Sequence[Tally] = ()) -> str:
    """Coverage, verdicts by what they rest on and by paper, then a table per paper; what did not run by its reason, and
    the checks, which are no claims."""
    by_paper: dict[str, list[Verdict]] = {}
    for v in (verdicts := list(verdicts)):
        by_paper.setdefault(v.paper, []).append(v)
    tallies = {c.paper: (str(c.has), str(c.made), str(c.run)) for c in found}
    totals = []
    for paper, mine in by_paper.items():
        counts = Counter(v.verdict for v in claims(mine))
        judged = (str(counts[name]) for name in VERDICTS)
        totals.append((paper, *tallies.get(paper, ("", "", "")), str(counts.total()), *judged))
    lines = [f"# Verdicts at {scale} scale", "", f"Printed by `python -m reproduce verify {scale} --markdown`."]
    lines += [*headline(found, verdicts), ""]
    columns = ("paper", "figures and tables", "made", "with numbers", "claims", *VERDICTS)
    lines += [table(columns, totals, ":" + "-" * (len(columns) - 1)), ""]
    lines += [table(("rests on", "judged", *JUDGED), by_ground(verdicts), ":-" + "-" * len(JUDGED))]
    for paper, mine in by_paper.items():
        lines += ["", f"## {paper}", ""]
        rows = [row(v) for v in sorted(claims(mine), key=lambda v: VERDICTS.index(v.verdict)) if v.verdict in JUDGED]
        head = ("verdict", "claim", "ours", "required", "the paper's number", "remarks")
        lines += [table(head, rows), ""] if rows else []
        idle: dict[str, list[str]] = {}
        for v in (v for v in claims(mine) if v.verdict == "not run"):
            why = f"Not {'asked' if v.unasked else 'run'}, {md(v.reason)}"
            idle.setdefault(why, []).append(f"`{v.name}`")
        lines += [f"- {why}: {', '.join(names)}" for why, names in idle.items()]
        if own := checks(mine):
            said = [(HOLDS[v.verdict], f"{v.statement} `{v.name}`", md(v.note)) for v in own]
            lines += ["", f"{checked(own)}.", "", table(("check", "statement", "remarks"), said)]
    return "\n".join(lines) + "\n"


def row(v: Verdict) -> tuple[str, ...]:
    """A judged claim as cells of a table."""
    ours, printed = (md(words.deciding(m, v.names)) for m in (v.measured, v.printed))
    own = {"fails": "fails on the paper's own numbers"}.get(v.paper_numbers, "")
    said = f"{v.covers}; {v.reason}".strip("; ") + f"; would decide it: {v.decides}" * bool(v.decides)
    remarks = "; ".join(filter(None, [words.named(said, v.names), own]))
    claim = f"{v.statement} `{v.name}`"
    verdict = "<br>".join(filter(None, [f"{SIGNS[v.verdict]} {v.verdict}", v.rests_on, words.basis(v)]))
    return (verdict, claim, ours, md(words.demanded(v)), printed, md(remarks))
