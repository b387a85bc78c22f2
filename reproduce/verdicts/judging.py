"""Intervals over seeds, and whether they lie in the region that a claim demands.

An observation is an interval [low, high] of one number per seed: a plain value has low = high, a censored one has an
end at infinity, and a diverged run is infinitely bad. A region is where the number must lie if the claim is true. The
interval of the quantity that the claim is about (`QUANTITIES`) decides: inside the region (for), outside (against), or
neither (inconclusive). Which quantity that is follows from the check, never from what the runs show.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from scipy.stats import binomtest, quantile_test

from reproduce.report.metrics import agree, t_interval

INF = math.inf
LEVEL = 0.95
QUANTITIES = ("mean", "median", "share", "every seed", "point")
"""The quantities over seeds: their mean (t-interval), their median (order statistics, of any distribution), the share
of which a statement is true (Clopper and Pearson), each by itself, or the one number that all of them have."""


def level_at(look: int) -> float:
    """The level of an interval at the k-th look, which is the k-th number of seeds with which a claim is judged because
    it was inconclusive with fewer. Each look may err half as often as the one before: all together less than
    twice as often as the first, however often seeds are added."""
    return 1 - (1 - LEVEL) / 2 ** (look - 1)


EPS = 1e-9
"""Slack within which a bound counts as met: decimal fractions of the tables are not binary ones."""

Observation = tuple[float, float]
"""The smallest and the largest value that a number can have."""

NO_INFORMATION: Observation = (-INF, INF)


@dataclass(frozen=True)
class Region:
    """The numbers that fulfil a claim: from `low` to `high`; `strict` leaves the ends out."""

    low: float = -INF
    high: float = INF
    strict: bool = False

    def slack(self, value: float) -> float:
        """Distance to the nearest end: positive inside, negative outside, infinite without ends."""
        return min(value - self.low if self.low > -INF else INF, self.high - value if self.high < INF else INF)

    def holds(self, value: float) -> bool:
        slack = self.slack(value)
        return slack > EPS if self.strict else slack >= -EPS

    def slack_range(self, low: float, high: float) -> Observation:
        """Smallest and largest slack of the values from `low` to `high`; slack is concave, so the ends decide."""
        ends = (self.slack(low), self.slack(high))
        middle = (self.low + self.high) / 2
        bounded = self.low > -INF and self.high < INF
        return min(ends), self.slack(middle) if bounded and low < middle < high else max(ends)

    def contains(self, low: float, high: float) -> bool:
        """Tells whether every value from `low` to `high` satisfies the claim."""
        return self.holds(low) and self.holds(high)

    def excludes(self, low: float, high: float) -> bool:
        """Tells whether none of them does."""
        best = self.slack_range(low, high)[1]
        return best <= EPS if self.strict else best < -EPS


@dataclass(frozen=True)
class Judgement:
    """The outcome of the seeds for one setting.

    `says` is `for`, `against` or `inconclusive`. `value` is the mean (or median) over seeds of the number
    itself, `low` and `high` its interval (None: unknown, too few seeds). `n` counts seeds; 0 means that the
    number needs none.
    """

    says: str
    value: float
    low: float | None
    high: float | None
    n: int
    reason: str = ""


def median_interval(values: Sequence[float], level: float = LEVEL) -> Observation:
    """The interval of the median between two order statistics: the inversion of the sign test, exact for every
    distribution, infinite values included. Unbounded if the values are too few (fewer than six at 95 %)."""
    low, high = map(float, quantile_test(values).confidence_interval(level))
    return -INF if math.isnan(low) else low, INF if math.isnan(high) else high


def share_interval(values: Sequence[float], level: float = LEVEL) -> Observation:
    """The interval of Clopper and Pearson for a share, of answers yes (1) and no (0). It excludes one half where the
    sign test rejects."""
    interval = binomtest(round(sum(values)), len(values)).proportion_ci(level)
    return float(interval.low), float(interval.high)


@dataclass(eq=False)
class Unit:
    """One setting: its observations, one per seed, and the region where they must lie.

    quantity: one of `QUANTITIES`; those of a point and of every seed decide without an interval, so one seed can refute
    or support them. step: what the numbers are multiples of; 0: unknown. within: where the end of a scale keeps the
    number, whatever the noise. level: of its interval.
    """

    seeds: list[Observation]
    region: Region
    name: str = ""
    quantity: str = "mean"
    step: float = 0.0
    within: Observation = NO_INFORMATION
    level: float = LEVEL

    @property
    def random(self) -> bool:
        return self.quantity not in ("every seed", "point")

    @cached_property
    def judged(self) -> Judgement:
        return self.at(self.level)

    @property
    def slack(self) -> float:
        """The distance of its value into the region; negative outside, NaN if nothing is known of it."""
        return math.nan if math.isnan(self.judged.value) else self.region.slack(self.judged.value)

    def error(self, side: str, family: float, most: int) -> float:
        """The smallest error of an interval that lies on a side: a part, of `most` at most, of that of a level for all;
        else its own; 1 for none."""
        if self.judged.says != side or not self.random:
            return float(self.judged.says != side)
        errors = [(1 - family) / parts for parts in range(most, 0, -1)]
        first = bisect_left(errors, True, key=lambda error: self.at(1 - error).says == side)
        return [*errors, 1 - self.level][first]

    def at(self, level: float) -> Judgement:
        """The outcome of its observations, by the interval of that level."""
        seeds, region = self.seeds, self.region
        if not seeds:
            raise ValueError("a judgement needs at least one seed")
        n = 0 if self.quantity == "point" else len(seeds)
        if not self.random:
            return _seed_by_seed(seeds, region, n)
        if n == 1:
            return Judgement("inconclusive", _centre(*seeds[0]), None, None, n)
        value, (low, high), remark = self._interval(level)
        if self.within != NO_INFORMATION:
            low, high, remark = max(low, self.within[0]), min(high, self.within[1]), ""
        if (low, high) == NO_INFORMATION:
            return Judgement("inconclusive", value, None, None, n, remark or f"no interval of {n} seeds")
        return Judgement(side(region, low, high), value, low, high, n, remark)

    def _interval(self, level: float) -> tuple[float, Observation, str]:
        """The quantity, its interval, and a remark. The lower end is that of the low ends of the observations, the
        upper one that of their high ends."""
        ends = [[seed[k] for seed in self.seeds] for k in (0, 1)]
        if self.quantity == "share":
            return _mean(ends[0]), share_interval(ends[0], level), ""
        if self.quantity == "median":
            low, high = (median_interval(end, level)[k] for k, end in enumerate(ends))
            return _centre(*map(median, ends)), (low, high), ""
        bounded = [k for k in (0, 1) if all(map(math.isfinite, ends[k]))]
        alike = self.step == 0 and any(agree(ends[k]) for k in bounded)
        diverged = sum(low == high and math.isinf(low) for low, high in self.seeds)
        remark = f"{diverged} of {len(self.seeds)} with a diverged run" if diverged else ""
        remark = remark or ("the seeds agree exactly" if alike else "" if len(bounded) == 2 else "bounds only")
        interval = [
            t_interval(end, level, self.step)[k] if k in bounded and not alike else (-INF, INF)[k]
            for k, end in enumerate(ends)
        ]
        return _centre(*map(_mean, ends)), (interval[0], interval[1]), remark


def side(region: Region, low: float, high: float) -> str:
    return "for" if region.contains(low, high) else "against" if region.excludes(low, high) else "inconclusive"


def _seed_by_seed(seeds: Sequence[Observation], region: Region, n: int) -> Judgement:
    """Two bounds (both runs censored) say nothing about an identity: such seeds are left out if others speak."""
    seeds = [s for s in seeds if s != NO_INFORMATION] or seeds
    low, high = min(seeds, key=lambda s: region.slack_range(*s))
    says = "for" if all(region.contains(*s) for s in seeds) else "inconclusive"
    if any(region.excludes(*s) for s in seeds):
        says = "against"
    return Judgement(says, _centre(low, high), low, high, n)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values)


def _centre(low: float, high: float) -> float:
    """The middle of an observation's interval, the finite end of a bound, or NaN if there is none."""
    if math.isinf(low) and math.isinf(high):
        return low if low == high else math.nan
    return high if math.isinf(low) else low if math.isinf(high) else (low + high) / 2


# --- many settings together -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One part of a claim as it is judged: settings, quantifier, the number of parts; partly: settings are missing.
    look: see `level_at`."""

    units: tuple[Unit, ...]
    quantifier: tuple[str, float, float]
    parts: int
    partly: bool
    look: int = 1

    @property
    def single(self) -> float:
        """The level of one interval."""
        return level_at(self.look)

    @property
    def level(self) -> float:
        """The confidence level of all intervals of the part together."""
        return 1 - (1 - self.single) / self.parts


def decide(part: Part, inside: Sequence[float], outside: Sequence[float]) -> tuple[bool, bool]:
    """Tells whether a part of a claim is decided for, and against it.

    One setting that decides for all must do so at the family-wise level (Holm), because one of many falls out by
    chance. One counterexample to `all`, or one example of `any`, needs no other settings; else what is missing may turn
    what is against the claim. inside, outside [setting]: the smallest error of a setting's interval that lies inside
    its region, and outside.
    """
    name, whole, single = part.quantifier[0], not part.partly, 1 - part.single
    if name == "fraction":
        n, (fewest, many, within, beyond) = len(part.units), counts(part, inside, outside)
        return within >= fewest and (many >= n or beyond >= n - many), (beyond > n - fewest or within > many) and whole
    if name == "any":
        return shown(part, inside) > 0, all(error <= single for error in outside) and whole
    against = shown(part, outside) > 0
    return all(error <= single for error in inside), against and (whole or name != "mean")


def counts(part: Part, inside: Sequence[float], outside: Sequence[float]) -> tuple[int, int, int, int]:
    """The fewest and the most settings that a share asks for, and how many are shown inside, and outside."""
    (_, least, most), n = part.quantifier, len(part.units)
    fewest, many = math.ceil(least * n - EPS), math.floor(min(most * n, n) + EPS)
    return fewest, many, shown(part, inside, (fewest, many + 1)), shown(part, outside, (n - many, n - fewest + 1))


def shown(part: Part, errors: Sequence[float], numbers: Sequence[int] = ()) -> int:
    """The number of settings shown to be on a side, by their errors: by Holm's step-down procedure, and each of
    `numbers` by the partial conjunction of Benjamini and Heller (2008) with Bonferroni's bound: each by itself for
    all of them, as `all` asks; Holm's first step for one, as `any` does."""
    sure = sum(error < 0.5 for u, error in zip(part.units, errors, strict=True) if not u.random)
    ordered = sorted(error for u, error in zip(part.units, errors, strict=True) if u.random)
    k = len(ordered)
    holds = [error <= (1 - part.level) / (k - i) for i, error in enumerate(ordered)]
    count = sure + (holds.index(False) if False in holds else k)
    return max([count, *(number for number in numbers if 0 < number - sure <= k and holds[number - sure - 1])])
