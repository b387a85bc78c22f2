"""A review sheet of each paper, on one printed page: question, verdict, three numbers, a figure, what was not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce import __version__
from reproduce.declare.artifact import Artifact
from reproduce.declare.paper import has_numbers, papers
from reproduce.pages.page import inlined, label, numbers, summarised, template, unrun
from reproduce.pages.summary import register
from reproduce.runs import plan
from reproduce.runs.provenance import commit
from reproduce.verdicts.scoreboard import Verdict, claims
from reproduce.verdicts.verdict import NOT_RUN

SHOWN = 3
"""Numbers on a sheet."""


def sheet(paper: str, scale: str, verdicts: Sequence[Verdict]) -> str:
    """The sheet of a paper at a scale as HTML, in one file; its address is report/SCALE/PAPER.html."""
    entry, mine = register(paper), [v for v in claims(verdicts) if v.paper == paper]
    every = sorted(mine, key=lambda v: v.id.removeprefix(f"{paper}/") not in entry["answered_by"])
    measured = [v for v in every if v.measured and v.measured.low is not None]
    firsts = [*{v.verdict: v for v in reversed(measured)}.values()][::-1]  # one of each verdict before a second
    trained = [a for a in papers()[paper].artifacts if plan.artifact_jobs(scale, a.id)]
    return template("sheet.html").render(
        paper=paper,
        scale=scale,
        about=papers()[paper],
        said=summarised(paper, scale, verdicts),
        numbers=[(v, numbers(v)) for v in [*firsts, *(v for v in measured if v not in firsts)][:SHOWN]],
        figure=_figure(trained, scale, entry["look"]),
        unrun=[label(a) for a in trained if not has_numbers(scale, a.id)],
        claims=len(mine),
        left=sum(v.verdict == NOT_RUN for v in mine),
        commit=commit(),
        version=__version__,
    )


def _figure(found: Sequence[Artifact], scale: str, look: str) -> dict[str, Any]:
    """The paper's main figure, or the first one with numbers; {} if no figure has any."""
    for a in sorted(found, key=lambda a: a.name != look.partition("/")[2]):
        png = Path(plan.outputs(scale, a.id)[0]).with_suffix(".png")
        if png.is_file() and not unrun(a, scale):
            return {"label": label(a), "title": a.title, "image": inlined(a, png)}
    return {}
