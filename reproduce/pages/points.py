"""Our numbers over the printed ones, as the page's script draws them: a point for each, with what it says of itself."""

from __future__ import annotations

from typing import Any

from reproduce.errors import UserError
from reproduce.pages import agreement
from reproduce.pages.short import about
from reproduce.text import counted
from reproduce.verdicts import words


def points(scale: str) -> dict[str, Any]:
    """`panels`, one for each paper and unit, with the shares of agreement at paper scale, and `points`: panel, printed,
    ours, is it what the paper proposes?, what it is, where it stands. At other scales, with other data, they are leads.
    No panels where nothing is rendered."""
    try:
        found = agreement.numbers(scale)
    except UserError:
        return {"panels": [], "points": []}
    plain = scale == "paper"
    rows = found if plain else agreement.leads(found).assign(own=True)
    panels: list[dict[str, Any]] = []
    made: list[list[Any]] = []
    for (paper, unit), mine in rows.groupby(["paper", "unit"], sort=False):
        said = f"{mine['agrees'].mean():.0%} of {len(mine)} agree" if plain else f"{len(mine)} leads"
        panels.append({"title": f"{about(paper).name}: {said}", "unit": unit, "log": plain and unit != "%"})
        for row in mine.to_dict("records"):
            against = "" if plain else f" minus {row['series_other']}"
            text = words.named(f"{row['setting']} {row['series']}{against}, {counted(row['seeds'], 'seed')}")
            numbers = (float(f"{row[side]:.4g}") for side in ("printed", "ours"))
            made.append([len(panels) - 1, *numbers, int(row["own"]), text, f"{paper}-{row['table']}"])
    band = {"points": agreement.POINTS, "share": agreement.SHARE} if plain else None
    return {"panels": panels, "points": made, "band": band}
