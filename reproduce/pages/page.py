"""The page of a scale: one HTML file, with the figures, the style and a script inside it, that asks no other host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.verdicts.scoreboard import Verdict


def page(
    scale: str,
    verdicts: Sequence[Verdict],
    others: Sequence[str] = (),
    home: str = "",
    **more: Any,
) -> str:
    """The page as HTML. others: scales whose pages lie beside this one. home: where the documents begin, on a site.
    more: `address` of `contents`, where they lie beside the page."""
    from jinja2 import Environment, FileSystemLoader

    from reproduce.pages.agreement import PICTURE
    from reproduce.pages.contents import across, contents, inlined
    from reproduce.pages.origin import CITED
    from reproduce.runs import due, plan, results
    from reproduce.verdicts.scope import CHECK
    from reproduce.verdicts.scoreboard import by_ground, claims, headline
    from reproduce.verdicts.verdict import ON_STAND_IN, SIGNS, VERDICTS

    shown, folder = contents(scale, verdicts, **more), FileSystemLoader(Path(__file__).parent)
    total = Counter(v.verdict for v in claims(verdicts))
    environment = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    like = {seen: word for word, seen in ON_STAND_IN.items()}
    environment.filters["css"] = lambda verdict: str(like.get(verdict, verdict)).replace(" ", "-")
    return environment.get_template("page.html").render(
        scale=scale,
        papers=shown,
        total=total,
        statements=len(verdicts),
        check=CHECK,
        results=results.tally(plan.jobs(scale)),
        headline=headline(scale, verdicts),
        refused=[*due.refused(scale), *(i.refused for paper in shown for i in paper.items if i.refused)],
        grounds=by_ground(verdicts),
        verdicts=[word for word in VERDICTS if total[word] or word == VERDICTS[-1]],
        signs=SIGNS,
        reasons=CITED,
        agreement=inlined(None, PICTURE) if scale == "paper" and PICTURE.is_file() else "",
        across=across(scale),
        others=others,
        home=home,
        base="../../",
    )
