"""Verdicts on claims, from cells: the numbers of a run support a claim, refute it, or leave it open.

A check names numbers (one per setting and seed, `reproduce.verdicts.forms`) and the region where they must lie; the
interval over the seeds decides (`reproduce.verdicts.judging`). `docs/claims.md` gives the rules.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pandas as pd

from reproduce.declare.paper import Metric
from reproduce.verdicts.claims import Check, parts, quantifier, quantity
from reproduce.verdicts.forms import Evidence, evidence, units_of
from reproduce.verdicts.judging import INF, Judgement, Part, Region, Unit, counts, decide, level_at, shown
from reproduce.verdicts.observations import NotRun, average
from reproduce.verdicts.scope import lacking

SUPPORTED, PARTLY, REFUTED = "supported", "supported where run", "refuted"
"""PARTLY: all settings that were run support the claim, and it speaks of more. One counterexample refutes, whatever
else is missing."""
DEPENDS, INCONCLUSIVE, NOT_RUN = "depends on an unstated choice", "inconclusive", "not run"
ON_SUBSTITUTE = {
    SUPPORTED: "supported on substitute data", PARTLY: "supported where run on substitute data",
    REFUTED: "not supported on substitute data",
}  # fmt: skip
"""The verdicts that rest on substitute data, which neither support nor refute the paper."""
JUDGED = (SUPPORTED, PARTLY, ON_SUBSTITUTE[SUPPORTED], ON_SUBSTITUTE[PARTLY], REFUTED, ON_SUBSTITUTE[REFUTED], DEPENDS,
          INCONCLUSIVE)  # fmt: skip
VERDICTS = (*JUDGED, NOT_RUN)
SIGNS = dict(zip(VERDICTS, "✓◐✓◐✗✗◇?–", strict=True))
SHARE = "fraction"
"""The quantifier that counts settings, and the unit of its number."""


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
class Outcome:
    """A verdict with its evidence.

    measured: the deciding number. settings, seeds: on how many settings (comparisons in them) the verdict rests, and
    the fewest and the most seeds that one of them has. quantity: what it is about, of `judging.QUANTITIES`. each: all
    settings, with their intervals. under: of what DEPENDS, alternative -> its deciding number.
    """

    verdict: str
    reason: str = ""
    measured: Measured | None = None
    settings: int = 0
    seeds: tuple[int, int] = (0, 0)
    quantity: str = ""
    each: tuple[Unit, ...] = field(default=(), repr=False)
    under: tuple[tuple[str, Measured], ...] = ()


def evaluate(
    check: Check, cells: pd.DataFrame, metrics: Mapping[str, Metric], needed: Sequence[pd.DataFrame] = (), look: int = 1
) -> Outcome:
    """The outcome of a checked `check` (see `claims.load_claims`) on observations.

    needed: frames of settings that should be there; those that the check asks for and the cells lack are missing.
    look: see `judging.level_at`.
    """
    checks = parts(check)
    outcomes = [_part(part, cells, metrics, needed, len(checks), look) for part in checks]
    return _of_parts(outcomes) if len(outcomes) > 1 else outcomes[0]


def _of_parts(outcomes: Sequence[Outcome]) -> Outcome:
    verdicts = [o.verdict for o in outcomes]
    weakest = next(v for v in (REFUTED, INCONCLUSIVE, NOT_RUN, PARTLY, SUPPORTED) if v in verdicts)
    index = verdicts.index(weakest)
    ran = [o for o in outcomes if o.verdict != NOT_RUN]
    seeds = [n for o in ran for n in o.seeds]
    tally, reason = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts), outcomes[index].reason
    return replace(
        outcomes[index] if weakest != NOT_RUN or not ran else ran[0],
        verdict=PARTLY if weakest == NOT_RUN and ran else weakest,
        reason=f"{len(outcomes)} parts: {tally}" + f"; part {index + 1}: {reason}" * bool(reason),
        settings=sum(o.settings for o in ran),
        seeds=(min(seeds, default=0), max(seeds, default=0)),
        quantity=", ".join(dict.fromkeys(o.quantity for o in ran)),
        each=tuple(u for o in ran for u in o.each),
    )


def under_readings(about: str, outcomes: Mapping[str, Outcome]) -> Outcome:
    """One outcome from those under each alternative of an unstated choice. DEPENDS where one supports the claim and
    another refutes it; INCONCLUSIVE where one is and the others agree.

    Alternatives without cells do not count; the deciding number is that of the first that counts (the first
    inconclusive one, or the first whose settings are not all run).
    """
    ran = {name: o for name, o in outcomes.items() if o.verdict != NOT_RUN}
    if not ran or len(outcomes) == 1:
        return next(iter(outcomes.values()))
    listing = _listed(outcomes)
    first = next(iter(ran.values()))
    verdicts = {o.verdict for o in ran.values()}
    if REFUTED in verdicts and verdicts & {SUPPORTED, PARTLY}:
        each = tuple((name, o.measured) for name, o in ran.items() if o.measured)
        return replace(first, verdict=DEPENDS, reason=f"unstated choice: {about}. {listing}", under=each)
    if INCONCLUSIVE in verdicts and len(verdicts) > 1:
        wide = next(o for o in ran.values() if o.verdict == INCONCLUSIVE)
        return replace(wide, reason=f"inconclusive under one alternative of {about}. {listing}")
    weakest = next((o for o in ran.values() if o.verdict == PARTLY), first)
    agree = f"under each of {len(ran)} alternatives of {about}" if len(ran) > 1 else f"under one alternative of {about}"
    return replace(weakest, reason=f"{agree}. {listing}")


def beside_reading(declared: Outcome, read: Outcome) -> Outcome:
    """A verdict, which never follows a fit, beside that under the alternative fitted to published numbers: DEPENDS
    where the claim is refuted under one of the two alone."""
    if NOT_RUN in (declared.verdict, read.verdict):
        return declared
    both = {"as declared": declared, "fitted to published numbers": read}
    if (declared.verdict == REFUTED) == (read.verdict == REFUTED):
        return replace(declared, reason=_listed(both))
    under = tuple((name, o.measured) for name, o in both.items() if o.measured)
    reason = f"unstated choice: the source of the published numbers. {_listed(both)}"
    return replace(declared, verdict=DEPENDS, reason=reason, under=under)


def _listed(outcomes: Mapping[str, Outcome]) -> str:
    """The verdict under each alternative, with its reason."""
    return "; ".join(", ".join(filter(None, (f"{name}: {o.verdict}", o.reason))) for name, o in outcomes.items())


def _part(
    check: Check,
    cells: pd.DataFrame,
    metrics: Mapping[str, Metric],
    needed: Sequence[pd.DataFrame],
    among: int,
    look: int,
) -> Outcome:
    try:
        data = evidence(check, cells, metrics)
        if data.rows.empty:
            raise NotRun("no setting has all the numbers that it needs")
        data.missing = list(dict.fromkeys([*data.missing, *(m for w in needed for m in lacking(check, cells, w))]))
        rows = _mean_per_seed(data) if quantifier(check)[0] == "mean" else data.rows
        units = units_of(data, rows, quantity(check), level_at(look))
        outcome = _decide(data, Part(tuple(units), quantifier(check), among, bool(data.missing), look))
        about = ", ".join(dict.fromkeys(u.quantity for u in units))
        return replace(outcome, quantity=about, each=tuple(units))
    except NotRun as reason:
        return Outcome(NOT_RUN, reason=str(reason))


def _decide(data: Evidence, part: Part) -> Outcome:
    """Judge the units under the quantifier of the check."""
    each, (name, low, high), units = part.units, part.quantifier, data.rows["unit"].nunique()
    random = sum(u.random for u in each)
    decisive, together = ("for", "against") if name == "any" else ("against", "for")
    errors = {side: [u.error(side, part.level, random) for u in each] for side in ("for", "against")}
    yes, no = decide(part, *errors.values())
    verdict = "for" if yes else "against" if no else INCONCLUSIVE
    partly = part.partly and (name, verdict) not in (("all", "against"), ("any", "for"))
    if counted := name == SHARE:
        tally = f"{units} settings, {name} asked for: {low:g} {'or more' if high == INF else f'to {high:g}'}"
        tally += f" ({_sides(each)})"
        judged, by_holm = [_counted(part, verdict, *errors.values())], list[Unit]()
    else:
        first = sorted(range(len(each)), key=errors[decisive].__getitem__)[: shown(part, errors[decisive])]
        judged, by_holm = list(each), [each[i] for i in sorted(first)]
    leaning = [u for u in judged if u.judged.says == decisive]
    if not counted:
        tally = _tally(name, units, each, f"; {len(by_holm)} {decisive} by Holm" if leaning else "")
    against_it = by_holm if verdict == decisive else [u for u in judged if u.judged.says != together]
    deciding = _deciding(against_it or judged, best=name == "any")
    j, missing, measured = deciding.judged, _lacking(data.missing), _measured(deciding, data, name)
    seeds = [u.judged.n for u in each if u.judged.n]
    verdicts = {"for": PARTLY if partly else SUPPORTED, "against": REFUTED, INCONCLUSIVE: INCONCLUSIVE}
    return Outcome(
        verdicts[verdict],
        "; ".join(filter(None, [missing, tally, j.reason])),
        None if math.isnan(j.value) else measured,
        units,
        (min(seeds, default=0), max(seeds, default=0)),
    )


def _measured(u: Unit, data: Evidence, name: str) -> Measured:
    """The number of a setting, NaN if nothing is known of it; ratios from their logarithms."""
    j, back = u.judged, exp if data.log and name != SHARE else float
    low, high = (None if end is None else back(end) for end in (j.low, j.high))
    unit = SHARE if name == SHARE else "" if data.log else data.units.get(u.name, data.unit)
    exact = u.quantity == "every seed" or not j.n  # a number of settings has an interval where one of them has seeds
    region = (back(u.region.low), back(u.region.high))
    what = SHARE if name == SHARE else data.what
    return Measured(what, unit, u.name, back(j.value), low, high, region, u.region.strict, exact, j.n)


def exp(value: float) -> float:
    """A ratio from its logarithm."""
    return math.exp(value) if value < 700 else INF


def _lacking(missing: list[str]) -> str:
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return f"incomplete, lacks {', '.join(missing[:4])}{more}" if missing else ""


def _tally(name: str, units: int, judged: Sequence[Unit], corrected: str) -> str:
    if name == "mean" or units == 1:
        return f"mean over {units} settings" if name == "mean" else ""
    intervals, text = sum(u.random for u in judged), f"{units} settings: {_sides(judged)}"
    return text if intervals < 2 else f"{text} ({intervals / 40:.2g} expected by chance{corrected})"


def _sides(judged: Sequence[Unit]) -> str:
    """ "8 for, 1 against, 23 inconclusive"."""
    says = [u.judged.says for u in judged]
    return ", ".join(f"{says.count(s)} {s}" for s in ("for", "against", INCONCLUSIVE))


def _mean_per_seed(data: Evidence) -> pd.DataFrame:
    """The mean over all units per seed. Only seeds that have every unit count: otherwise it would be about different
    settings."""
    complete = data.rows.groupby("seed")["unit"].transform("size") == data.rows["unit"].nunique()
    if not complete.any():
        raise NotRun("no seed has a number for every setting")
    means = average(data.rows[complete].assign(unit=""), ["unit", "seed"], data.log)
    return means.fillna({"low": -INF, "high": INF})


def _counted(part: Part, says: str, inside: Sequence[float], outside: Sequence[float]) -> Unit:
    """The share of units inside their regions, of which the claim wants `least` to `most`: at least so many
    as are shown to be inside, at most those that are not shown to be outside; between them, how many means are.

    Not the share of each seed: noise draws that towards one half, whatever is true.
    """
    units, (_, least, most) = part.units, part.quantifier
    *_, within, beyond = counts(part, inside, outside)
    likely = sum(u.region.holds(u.judged.value) for u in units)
    low, high, value = (k / len(units) for k in (within, len(units) - beyond, likely))
    # None and all are no bounds: whoever wants at most three of eight is not near an end with none.
    region = Region(least or -INF, most if most < 1 else INF)
    counted = Unit([(low, high)], region, quantity="point")  # its ends are those of an interval
    counted.judged = Judgement(says, value, low, high, min((u.judged.n for u in units if u.random), default=0))
    return counted


def _deciding(units: Sequence[Unit], best: bool) -> Unit:
    """The unit that is farthest from fulfilling the claim (nearest, under `any`)."""
    known = [u for u in units if not math.isnan(u.slack)] or units

    def farther(a: Unit, b: Unit) -> Unit:
        return a if (a.slack <= b.slack) != best else b

    return reduce(farther, known)
