"""From cells to verdicts: what the numbers of a run say about a claim.

A check names numbers (one per setting and seed, `reproduce.verdicts.forms`) and the region where they must lie; the
interval over the seeds decides (`reproduce.report.intervals`). `docs/claims.md` gives the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.report.intervals import INF, Judgement, Observation, Region, enough, judge
from reproduce.verdicts.checks import parts, quantifier
from reproduce.verdicts.claims import Metric
from reproduce.verdicts.forms import Evidence, evidence
from reproduce.verdicts.observations import ENDS, NotRun, average
from reproduce.verdicts.scope import lacking

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("reproduced", "contradicted", "depends", "inconclusive", "not run")
LEVEL = 0.95


@dataclass(frozen=True)
class Measured:
    """The deciding number, before a margin is taken off, and the region where the claim wants it; ratios as ratios.

    what: lead, ratio, difference, value, ...; unit: that of the metric. setting: which of several, "" if there is one.
    low, high: the 95 % interval, None if unknown. exact: the number needs no interval. strict: the region's ends do
    not belong to it.
    """

    what: str
    unit: str
    setting: str
    value: float
    low: float | None
    high: float | None
    region: tuple[float, float]
    strict: bool
    exact: bool
    n: int


@dataclass(frozen=True)
class Prospect:
    """What an inconclusive claim would become with about so many seeds, if means and spreads stayed as they are; now:
    how many the setting has that asks for them."""

    verdict: str
    seeds: int
    now: int


@dataclass(frozen=True)
class Outcome:
    """A verdict with its evidence.

    effect: by how much the deciding number lies inside (positive) or outside (negative) the region that the claim
    demands, so a margin is already taken off; in `unit`. interval: its 95 % interval, None if unknown (too few seeds).
    n: number of seeds, 0 for a number that needs none. measured: the deciding number itself. prospect: whether more
    seeds would decide what is inconclusive, as far as these tell. open_because: what keeps a claim open, if not
    the deciding interval itself: settings that are missing, or how many there are.
    """

    verdict: str
    effect: float | None = None
    unit: str = ""
    interval: tuple[float, float] | None = None
    n: int = 0
    reason: str = ""
    measured: Measured | None = None
    prospect: Prospect | None = None
    open_because: str = ""


def evaluate(
    check: Mapping[str, Any],
    cells: pd.DataFrame,
    metrics: Mapping[str, Metric],
    wanted: Sequence[pd.DataFrame] = (),
) -> Outcome:
    """The outcome of a checked `check` (see `claims.load_claims`) on observations.

    wanted: frames of settings that should be there; those that the check asks for and the cells lack are missing.
    """
    asked = parts(check)
    outcomes = [_part(part, cells, metrics, wanted, len(asked)) for part in asked]
    if len(outcomes) == 1:
        return outcomes[0]
    verdicts = [o.verdict for o in outcomes]
    verdict = next(v for v in ("contradicted", "inconclusive", "not run", "reproduced") if v in verdicts)
    index = verdicts.index(verdict)
    worst = outcomes[index]
    tally = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    reason = f"{len(outcomes)} parts: {tally}; part {index + 1}: {worst.reason}"
    if verdict == "not run" and set(verdicts) != {"not run"}:
        return Outcome("inconclusive", reason=reason, prospect=_prospect_of_parts(outcomes))
    return replace(worst, reason=reason, prospect=_prospect_of_parts(outcomes) if verdict == "inconclusive" else None)


def under_readings(about: str, outcomes: Mapping[str, Outcome]) -> Outcome:
    """One outcome from those under each reading of what the paper leaves open: `depends` where one reproduces the claim
    and another contradicts it; `inconclusive` where one is open and the others agree.

    Readings without cells do not count; effect and interval are those of the first that counts (the first open one).
    """
    ran = {name: o for name, o in outcomes.items() if o.verdict != "not run"}
    if not ran or len(outcomes) == 1:
        return next(iter(outcomes.values()))
    said = "; ".join(f"{name}: {o.verdict}, {o.reason}" for name, o in outcomes.items())
    first = next(iter(ran.values()))
    verdicts = {o.verdict for o in ran.values()}
    if {"reproduced", "contradicted"} <= verdicts:
        return replace(first, verdict="depends", reason=f"depends on: {about}. {said}", prospect=None, open_because="")
    if len(verdicts) > 1:
        undecided = next(o for o in ran.values() if o.verdict == "inconclusive")
        return replace(undecided, reason=f"open under one reading of {about}. {said}", prospect=None)
    agree = f"under each of {len(ran)} readings of {about}" if len(ran) > 1 else f"under one reading of {about}"
    return replace(first, reason=f"{agree}. {said}", prospect=first.prospect if len(ran) == 1 else None)


def _part(
    check: Mapping[str, Any],
    cells: pd.DataFrame,
    metrics: Mapping[str, Metric],
    wanted: Sequence[pd.DataFrame],
    of_parts: int,
) -> Outcome:
    try:
        found, region, unit = evidence(check, cells, metrics)
        if found.rows.empty:
            raise NotRun("no setting has all the numbers that it needs")
    except NotRun as reason:
        return Outcome("not run", reason=str(reason))
    if check.get("is") != "absent":
        found.missing = list(dict.fromkeys([*found.missing, *(m for w in wanted for m in lacking(check, cells, w))]))
    return _decide(found, region, unit, check, 1 - (1 - LEVEL) / of_parts)


@dataclass(eq=False)
class _Unit:
    """One setting: the observations of its seeds, the region where they must lie, and their resolution."""

    name: str
    seeds: list[Observation]
    region: Region
    point: bool
    exact: bool
    step: float

    @property
    def random(self) -> bool:
        return not self.point and not self.exact

    @cached_property
    def says(self) -> Judgement:
        return self.at(LEVEL)

    def at(self, level: float) -> Judgement:
        return judge(self.seeds, self.region, point=self.point, exact=self.exact, level=level, step=self.step)

    def enough(self, level: float) -> int | None:
        return enough(self.seeds, self.region, level, self.step)


def _units(found: Evidence, rows: pd.DataFrame, region: Region, exact: bool) -> list[_Unit]:
    seeds: dict[str, list[Observation]] = {}
    random = set()
    for name, seed, low, high in zip(*(rows[c].tolist() for c in ("unit", "seed", *ENDS)), strict=True):
        seeds.setdefault(str(name), []).append((low, high))
        random |= {str(name)} if seed != -1 else set()
    steps = dict.fromkeys(seeds, 0.0)
    if found.what != "share" and not found.log:  # shares are yes or no, and logarithms of whole numbers on no grid
        for _, group in (rows if "metric" in rows else rows.assign(metric="")).groupby("metric", sort=False):
            steps |= dict.fromkeys(map(str, group["unit"].unique()), _step(group))
    return [_Unit(name, ends, region, name not in random, exact, steps[name]) for name, ends in seeds.items()]


def _decide(found: Evidence, region: Region, unit: str, check: Mapping[str, Any], level: float) -> Outcome:
    """Judge the units under the quantifier of the check. One setting that decides for all must do so at the
    family-wise `level` (Holm), because one of many falls out by chance."""
    name, low, high = quantifier(check)
    units = found.rows["unit"].nunique()
    rows = _mean_per_seed(found) if name == "mean" else found.rows
    judged, each = _units(found, rows, region, bool(check.get("exact"))), ""
    if name in ("fraction", "count"):
        each = f" ({_sides(judged)})"
        judged, unit = [_counted(judged, name, low, high, level)], "fraction" if name == "fraction" else "settings"
    says = [u.says.says for u in judged]
    alone, together = ("for", "against") if name == "any" else ("against", "for")
    holds_out = _holm(judged, alone, level)
    verdict = alone if holds_out else together if set(says) == {together} else "open"
    if found.missing:
        verdict = _incomplete(verdict, name)
    against_it = [u for u in judged if u.says.says != together]
    deciding = _deciding(holds_out if verdict == alone else against_it or judged, best=name == "any")
    tally = _tally(name, low, high, units, judged, f"{len(holds_out)} {alone}" if alone in says else "", each)
    lacking = _lacking(found.missing)
    words = [lacking, tally, _words(deciding, found, name)]
    j = deciding.says
    interval = None if j.slack_low is None or j.slack_high is None else (j.slack_low, j.slack_high)
    result = {"for": "reproduced", "against": "contradicted", "open": "inconclusive"}[verdict]
    effect = None if math.isnan(j.slack) else j.slack
    why = "; ".join(filter(None, words))
    several = name not in ("fraction", "count")  # more seeds of which settings would decide, nobody can say
    prospect = _prospect(judged, name, level, bool(found.missing)) if verdict == "open" and several else None
    measured = _measured(deciding, found, name, unit)
    clear = interval and not interval[0] <= 0 <= interval[1] and alone in says and not holds_out and units > 1
    not_holm = f"not among all {units} settings by Holm" if clear else ""
    because = ", ".join(filter(None, [lacking, not_holm])) if verdict == "open" else ""
    return Outcome(result, effect, unit, interval, j.n, why, measured, prospect, because)


def _prospect(units: Sequence[_Unit], name: str, level: float, incomplete: bool) -> Prospect | None:
    """One setting on the wrong side (the right one, under `any`) ends it once it stands out among all; otherwise the
    last of those that are open does."""
    random = [u for u in units if u.random]
    side = -1 if name == "any" else 1
    family = 1 - (1 - level) / max(len(random), 1)
    alone = [(u.enough(family), u.says.n) for u in random if u.region.holds(u.says.value) == (side < 0)]
    sooner = [(n, now) for n, now in alone if n]
    if sooner and (not incomplete or name in ("all", "any")):
        return Prospect("contradicted" if side > 0 else "reproduced", *min(sooner))
    later = [(u.enough(LEVEL), u.says.n) for u in random if u.says.says == "open"]
    certain = all(u.random or u.says.says == ("for" if side > 0 else "against") for u in units)
    decided = [(n, now) for n, now in later if n]
    if incomplete or alone or not later or len(decided) < len(later) or not certain:
        return None
    return Prospect("reproduced" if side > 0 else "contradicted", *max(decided))


def _prospect_of_parts(outcomes: Sequence[Outcome]) -> Prospect | None:
    """A part that would be contradicted decides; otherwise all others must be reproduced."""
    doubtful = [o.prospect for o in outcomes if o.verdict == "inconclusive"]
    against = [p for p in doubtful if p and p.verdict == "contradicted"]
    if against:
        return min(against, key=lambda p: p.seeds)
    if None in doubtful or any(o.verdict == "not run" for o in outcomes):
        return None
    return max((p for p in doubtful if p), key=lambda p: p.seeds)


def _measured(u: _Unit, found: Evidence, name: str, unit: str) -> Measured | None:
    """The number of a setting; None if nothing is known of it."""
    j, what = u.says, name if name in ("fraction", "count") else found.what
    if math.isnan(j.value):
        return None

    def back(value: float) -> float:
        return _exp(value) if found.log and what == found.what else value

    low, high = (None if end is None else back(end) for end in (j.low, j.high))
    region = (back(u.region.low), back(u.region.high))
    unit = "" if unit == "log ratio" else unit
    exact = u.exact or not j.n  # a number of settings has an interval where one of them has seeds
    return Measured(what, unit, u.name, back(j.value), low, high, region, u.region.strict, exact, j.n)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else INF


def _step(rows: pd.DataFrame) -> float:
    """The smallest difference between two different numbers: their resolution; 0 if all are equal."""
    numbers = np.unique(rows[ENDS].to_numpy())
    numbers = numbers[np.isfinite(numbers)]
    gaps = np.diff(numbers)
    gaps = gaps[gaps > 1e-9 * max(1.0, *np.abs(numbers))] if len(gaps) else gaps
    return float(gaps.min()) if len(gaps) else 0.0


def _holm(units: Sequence[_Unit], side: str, level: float) -> list[_Unit]:
    """The units on one side when all are judged together: Holm's step-down procedure for those that have intervals."""
    found = [u for u in units if not u.random and u.says.says == side]
    left = [u for u in units if u.random]
    while new := [u for u in left if u.at(1 - (1 - level) / len(left)).says == side]:
        found += new
        left = [u for u in left if u not in new]
    return [u for u in units if u in found]


def _incomplete(verdict: str, name: str) -> str:
    """What is left of a verdict if settings that the claim names have no rows: one counterexample, or one example."""
    if (name, verdict) in (("all", "against"), ("any", "for")):
        return verdict
    return "open"


def _lacking(missing: list[str]) -> str:
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return f"incomplete, lacks {', '.join(missing[:4])}{more}" if missing else ""


def _tally(
    name: str, low: float, high: float, units: int, judged: Sequence[_Unit], corrected: str, each: str = ""
) -> str:
    if name in ("fraction", "count"):
        return f"{units} settings, {name} asked for: {low:g} " + ("or more" if high == INF else f"to {high:g}") + each
    if name == "mean":
        return f"mean over {units} settings"
    if units == 1:
        return ""
    intervals, text = sum(u.random for u in judged), f"{units} settings: {_sides(judged)}"
    if intervals < 2:
        return text
    return f"{text} (by chance {intervals / 40:.2g}{f'; {corrected} by Holm' if corrected else ''})"


def _sides(judged: Sequence[_Unit]) -> str:
    """ "8 for, 1 against, 23 open"."""
    says = [u.says.says for u in judged]
    return ", ".join(f"{says.count(s)} {s}" for s in ("for", "against", "open"))


def _mean_per_seed(found: Evidence) -> pd.DataFrame:
    """The mean over all units per seed. Only seeds that have every unit count: otherwise it would be about different
    settings."""
    import pandas as pd

    units = found.rows["unit"].nunique()
    result = []
    for seed, group in found.rows.groupby("seed", sort=False):
        if len(group) == units:
            ends = average(group.assign(unit=""), ["unit"], found.log)[ENDS].iloc[0].tolist()
            low, high = [(-INF, INF)[k] if math.isnan(v) else v for k, v in enumerate(ends)]
            result.append({"unit": "", "seed": seed, "low": low, "high": high})
    if not result:
        raise NotRun("no seed has a number for every setting")
    return pd.DataFrame(result)


def _counted(units: Sequence[_Unit], name: str, least: float, most: float, level: float) -> _Unit:
    """The number (or fraction) of units inside their regions, of which the claim wants `least` to `most`: at least so
    many as are shown to be inside, at most those that are not shown to be outside; between them, how many means are.

    Shown are what Holm finds, and the number that the claim itself asks for where `_at_least` does. Not the share of
    each seed: noise draws that towards one half, whatever is true.
    """
    n = len(units)
    scale = n if name == "fraction" else 1
    few, many = math.ceil(least * scale - 1e-9), math.floor(min(most * scale, n) + 1e-9)
    asked = {"for": (few, many + 1), "against": (n - many, n - few + 1)}
    inside, outside = (
        max(len(_holm(units, side, level)), *(k for k in numbers if k <= n and _at_least(units, k, side, level)), 0)
        for side, numbers in asked.items()
    )
    likely = sum(u.region.holds(u.says.value) for u in units)
    low, high, value = (k / scale for k in (inside, n - outside, likely))
    # None and all are no bounds: whoever wants at most three of eight is not near an end with none.
    region = Region(least or -INF, most if most < n / scale else INF)
    says = "for" if region.contains(low, high) else "against" if region.excludes(low, high) else "open"
    random = [u.says.n for u in units if u.random]
    slack = region.slack(value), *region.slack_range(low, high)
    found = _Unit("", [(low, high)], region, point=True, exact=False, step=0.0)  # its ends are those of an interval
    found.says = Judgement(says, value, low, high, *slack, min(random, default=0))
    return found


def _at_least(units: Sequence[_Unit], k: int, side: str, level: float) -> bool:
    """Are `k` units, or more, on one side? The partial conjunction of Benjamini and Heller (2008) with Bonferroni's
    bound: each by itself for all of them, as `all` asks; Holm's first step for one, as `any` does."""
    left = [u for u in units if u.random]
    k -= sum(not u.random and u.says.says == side for u in units)
    if not 0 < k <= len(left):
        return k <= 0
    return sum(u.at(1 - (1 - level) / (len(left) - k + 1)).says == side for u in left) >= k


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
        if math.isinf(value) or (log and value > 700):
            return "unbounded" if value > 0 else "0" if log else "-unbounded"
        return f"{math.exp(value) if log else value:.4g}"

    text = f"{what} {number(j.value)}" if not math.isnan(j.value) else f"{what} unknown"
    if j.low is not None and j.high is not None and j.low != j.high:
        text += f" ({number(j.low)} to {number(j.high)})"
    seeds = "" if j.n == 0 else f", {j.n} seed{'s' * (j.n > 1)}"
    why = f" ({j.why})" if j.why and j.why != "one seed" else ""
    return (f"{u.name}: " if u.name else "") + text + seeds + why
