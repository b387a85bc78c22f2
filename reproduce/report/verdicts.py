"""From cells to verdicts: what the numbers of a run say about a claim.

A check names numbers (one per setting and seed, `reproduce.report.forms`) and the region where they must lie; the
interval over the seeds decides (`reproduce.report.intervals`). `docs/claims.md` gives the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from reproduce.report.claims import Metric, parts, quantifier
from reproduce.report.forms import Evidence, evidence
from reproduce.report.intervals import INF, Judgement, Region, judge
from reproduce.report.observations import ENDS, NotRun

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("reproduced", "contradicted", "inconclusive", "not run")


@dataclass(frozen=True)
class Outcome:
    """A verdict with its evidence.

    effect: by how much the deciding number lies inside (positive) or outside (negative) the region that the claim
    demands, so a margin is already taken off; in `unit`. interval: its 95 % interval, None if unknown (a single seed).
    n: number of seeds, 0 for a number that needs none.
    """

    verdict: str
    effect: float | None = None
    unit: str = ""
    interval: tuple[float, float] | None = None
    n: int = 0
    reason: str = ""


def evaluate(check: Mapping[str, Any], cells: pd.DataFrame, metrics: Mapping[str, Metric]) -> Outcome:
    """The outcome of a checked `check` (see `claims.load_claims`) on observations."""
    outcomes = [_part(part, cells, metrics) for part in parts(check)]
    if len(outcomes) == 1:
        return outcomes[0]
    verdicts = [o.verdict for o in outcomes]
    for verdict in ("contradicted", "inconclusive", "not run", "reproduced"):
        if verdict not in verdicts:
            continue
        index = verdicts.index(verdict)
        worst = outcomes[index]
        tally = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
        reason = f"{len(outcomes)} parts: {tally}; part {index + 1}: {worst.reason}"
        if verdict == "not run" and set(verdicts) != {"not run"}:
            return Outcome("inconclusive", reason=reason)
        return Outcome(verdict, worst.effect, worst.unit, worst.interval, worst.n, reason)
    raise AssertionError("a check has at least one part")


def _part(check: Mapping[str, Any], cells: pd.DataFrame, metrics: Mapping[str, Metric]) -> Outcome:
    try:
        return _decide(*evidence(check, cells, metrics), check)
    except NotRun as reason:
        return Outcome("not run", reason=str(reason))


@dataclass
class _Unit:
    name: str
    says: Judgement


def _decide(found: Evidence, region: Region, unit: str, check: Mapping[str, Any]) -> Outcome:
    """Judge the units under the quantifier of the check."""
    name, low, high = quantifier(check)
    exact = bool(check.get("exact"))
    rows = found.rows
    units = len(rows["unit"].unique())
    if name in ("fraction", "count", "mean"):
        rows, region, unit = _per_seed(rows, region, name, low, high, unit)
    judged = []
    for label, group in rows.groupby("unit", sort=False):
        seeds = list(map(tuple, group[ENDS].to_numpy().tolist()))
        judged.append(_Unit(str(label), judge(seeds, region, point=bool((group["seed"] == -1).all()), exact=exact)))
    says = [u.says.says for u in judged]
    if name == "any":
        verdict = "for" if "for" in says else "against" if set(says) == {"against"} else "open"
    else:
        verdict = "against" if "against" in says else "for" if set(says) == {"for"} else "open"
    if found.missing:
        verdict = _incomplete(verdict, name)
    deciding = _deciding([u for u in judged if u.says.says == verdict] or judged, best=name == "any")
    words = [_lacking(found.missing), _tally(name, low, high, units, says), _words(deciding, found, name)]
    j = deciding.says
    interval = None if j.slack_low is None or j.slack_high is None else (j.slack_low, j.slack_high)
    result = {"for": "reproduced", "against": "contradicted", "open": "inconclusive"}[verdict]
    return Outcome(
        result, None if math.isnan(j.slack) else j.slack, unit, interval, j.n, "; ".join(filter(None, words))
    )


def _incomplete(verdict: str, name: str) -> str:
    """What is left of a verdict if settings that the claim names have no rows: one counterexample, or one example."""
    if (name, verdict) in (("all", "against"), ("any", "for")):
        return verdict
    return "open"


def _lacking(missing: list[str]) -> str:
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return f"incomplete, no rows for {', '.join(missing[:4])}{more}" if missing else ""


def _tally(name: str, low: float, high: float, units: int, says: list[str]) -> str:
    if name in ("fraction", "count"):
        return f"{units} settings, {name} asked for: {low:g} " + ("or more" if high == INF else f"to {high:g}")
    if name == "mean":
        return f"mean over {units} settings"
    if units == 1:
        return ""
    return f"{units} settings: " + ", ".join(f"{says.count(s)} {s}" for s in ("for", "against", "open"))


def _per_seed(
    rows: pd.DataFrame, region: Region, name: str, low: float, high: float, unit: str
) -> tuple[pd.DataFrame, Region, str]:
    """One number per seed over all units: their mean, or the fraction or count of those inside the region.

    Only seeds that have every unit count: otherwise the statistic would be about different settings.
    """
    import pandas as pd

    units = rows["unit"].nunique()
    result = []
    for seed, group in rows.groupby("seed", sort=False):
        if len(group) != units:
            continue
        seeds = list(map(tuple, group[ENDS].to_numpy().tolist()))
        if name == "mean":
            ends = [sum(s[k] for s in seeds) / units for k in (0, 1)]
            ends = [(-INF, INF)[k] if math.isnan(v) else v for k, v in enumerate(ends)]
        else:
            certain = sum(region.contains(*s) for s in seeds)
            possible = sum(not region.excludes(*s) for s in seeds)
            ends = [v / units if name == "fraction" else float(v) for v in (certain, possible)]
        result.append({"unit": "", "seed": seed, "low": ends[0], "high": ends[1]})
    if not result:
        raise NotRun("no seed has a number for every setting")
    if name == "mean":
        return pd.DataFrame(result), region, unit
    return pd.DataFrame(result), Region(low, high), "fraction" if name == "fraction" else "settings"


def _deciding(units: list[_Unit], best: bool) -> _Unit:
    """The unit that is farthest from fulfilling the claim (nearest, under `any`)."""
    known = [u for u in units if not math.isnan(u.says.slack)] or units

    def farther(a: _Unit, b: _Unit) -> _Unit:
        return a if (a.says.slack <= b.says.slack) != best else b

    return reduce(farther, known)


def _words(u: _Unit, found: Evidence, name: str) -> str:
    """The deciding number in words: 'dataset mnist, a ahead of b: lead 3.2 (1.1 to 5.3), 3 seeds'."""
    j = u.says
    what = name if name in ("fraction", "count") else found.what
    log = found.log and what not in ("fraction", "count")

    def number(value: float) -> str:
        return f"{math.exp(min(value, 700)) if log else value:.4g}"

    text = f"{what} {number(j.value)}" if not math.isnan(j.value) else f"{what} unknown"
    if j.low is not None and j.high is not None and j.low != j.high:
        text += f" ({number(j.low)} to {number(j.high)})"
    seeds = "" if j.n == 0 else f", {j.n} seed{'s' * (j.n > 1)}"
    why = f" ({j.why})" if j.why and j.why != "one seed" else ""
    return (f"{u.name}: " if u.name else "") + text + seeds + why
