"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims.

The page is one file with the figures inside it; tables and figures that were not made yet are named with their target.
"""

from __future__ import annotations

import argparse
import base64
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import UserError

if TYPE_CHECKING:
    from reproduce.verdicts.scoreboard import Tally, Verdict

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")


def run(args: argparse.Namespace) -> None:
    from reproduce import files, plan

    scale = plan.check_scale(args.scale)
    from reproduce.verdicts.scoreboard import coverage, scoreboard

    path = Path("report", scale, "index.html")
    files.check_writable(path)
    files.write_text(path, page(scale, scoreboard(scale), coverage(scale)))
    print(f"Written: {path}")


def page(scale: str, verdicts: Sequence[Verdict], found: Sequence[Tally]) -> str:
    """The page of a scale as HTML."""
    from jinja2 import Environment

    from reproduce import due, plan, results
    from reproduce.commands.page import TEMPLATE
    from reproduce.papers import PAPERS, artifacts
    from reproduce.verdicts.scoreboard import by_ground, headline
    from reproduce.verdicts.verdict import VERDICTS

    papers = []
    for paper in PAPERS:
        mine = [v for v in verdicts if v.artifact.split("/")[0] == paper]
        items = [
            {"artifact": a, "verdicts": [v for v in mine if v.artifact == a.id], **content(scale, a.id)}
            for a in artifacts()
            if a.paper == paper
        ]
        about = import_module(f"reproduce.papers.{paper}").__doc__ or paper
        names = {"key": paper, "title": about.splitlines()[0]}
        exists = next((c for c in found if c.paper == paper), None)
        papers.append({**names, "coverage": exists, "count": count(mine), "items": items})
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    said: dict[str, Any] = {"headline": headline(found, verdicts), "grounds": by_ground(verdicts), "names": VERDICTS}
    said["refused"] = due.refused(scale)
    return environment.from_string(TEMPLATE).render(
        scale=scale, papers=papers, total=count(verdicts), results=results.tally(plan.jobs(scale)), **said
    )


def content(scale: str, name: str) -> dict[str, str]:
    """What stands for an artifact on the page: `table` (HTML), or `image` (data URI) and `link`; or the `target`."""
    from reproduce import plan
    from reproduce.commands.markdown import to_html

    first = Path(plan.outputs(scale, name)[0])
    if not first.exists():
        return {"target": str(first)}
    if first.suffix == ".md":
        try:
            text = first.read_text(encoding="utf-8").split("\n", 1)[1]  # its title is the heading on the page already
            return {"table": to_html(text, top=2), "link": str(first.with_suffix(".csv"))}
        except (ValueError, IndexError) as error:
            raise UserError(f"{first}: not a table as it was rendered; render {name} again") from error
    image = base64.b64encode(first.with_suffix(".png").read_bytes()).decode()
    return {"image": f"data:image/png;base64,{image}", "link": str(first)}


def count(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims have each verdict."""
    return dict(Counter(v.verdict for v in verdicts))


def number(value: float) -> str:
    """Three digits; a true minus sign."""
    return f"{value:.3g}".replace("-", "−")
