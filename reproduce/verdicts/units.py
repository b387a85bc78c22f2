"""The settings of a comparison, with what else decides: resolution, spreads of other settings, ends of a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.verdicts.forms import Evidence
from reproduce.verdicts.judging import INF, NO_INFORMATION, Unit
from reproduce.verdicts.observations import ENDS, SURE, resolution
from reproduce.verdicts.spreads import Prior, of_settings

if TYPE_CHECKING:
    import pandas as pd


def units_of(found: Evidence, rows: pd.DataFrame, exact: bool, level: float) -> list[Unit]:
    """The settings, which tell of each other's spread where they are of one metric, data set and network; level: of
    their intervals."""
    steps: dict[str, float] = {}
    priors: dict[str, Prior | None] = {}
    if found.log and "step" in rows:
        steps = {str(name): float(step) for name, step in rows.groupby("unit")["step"].max().items()}
    elif not found.log:
        for _, group in (rows if "metric" in rows else rows.assign(metric="")).groupby("metric", sort=False):
            steps |= dict.fromkeys(group["unit"].unique(), resolution(group, found.unit))
    share = found.what == "share"
    if not exact and not share:
        plain = rows.assign(low=rows["low"].where(rows["low"] == rows["high"], INF), all=0)
        for _, group in plain.groupby([c for c in ("metric", "dataset", "model") if c in plain] or "all", sort=False):
            numbers = group.pivot(index="unit", columns="seed", values="low")
            priors |= dict.fromkeys(numbers.index, of_settings(numbers.to_numpy()))
    found_units = []
    for name, mine in rows.groupby("unit", sort=False):
        sure = (float(mine[SURE[0]].min()), float(mine[SURE[1]].max())) if SURE[0] in mine else NO_INFORMATION
        ends = list(mine[ENDS].itertuples(index=False, name=None))
        point, key = not (mine["seed"] != -1).any(), str(name)
        found_units.append(
            Unit(ends, found.region, key, point, exact, steps.get(key, 0.0), share, priors.get(key), sure, level)
        )
    return found_units
