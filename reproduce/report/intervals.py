"""Intervals over seeds, and whether they lie in the region that a claim demands.

An observation is an interval [low, high] of one number per seed: a plain value has low = high, a censored one has an
end at infinity, and a diverged run is infinitely bad. A region is where the number must lie if the claim is true. The
t-interval of the mean over seeds decides: inside the region (for), outside (against), or neither (open).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

INF = math.inf
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
        """Does every value from `low` to `high` fulfil the claim?"""
        return self.holds(low) and self.holds(high)

    def excludes(self, low: float, high: float) -> bool:
        """Does none of them?"""
        best = self.slack_range(low, high)[1]
        return best <= EPS if self.strict else best < -EPS


@dataclass(frozen=True)
class Judgement:
    """What the seeds say about one setting.

    `says` is `for`, `against` or `open`. `value` is the mean over seeds of the number itself, `low` and `high` its 95 %
    interval (None: unknown, a single seed); `slack` is the distance to the region's end, positive inside, `slack_low`
    and `slack_high` its interval. `n` counts seeds; 0 means that the number needs none.
    """

    says: str
    value: float
    low: float | None
    high: float | None
    slack: float
    slack_low: float | None
    slack_high: float | None
    n: int
    why: str = ""


def t_interval(values: Sequence[float], level: float = 0.95) -> Observation:
    """The t-interval of the mean of at least two finite values."""
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two values")
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = _quantile(level, n - 1) * spread / math.sqrt(n)
    return mean - half, mean + half


def judge(seeds: Sequence[Observation], region: Region, *, point: bool = False, exact: bool = False) -> Judgement:
    """What the observations of one setting, one per seed, say about `region`.

    point: the number is the same for every seed (a closed form, a count): it decides without an interval.
    exact: the statement must hold for every seed by itself (an identity), so one seed can refute or support it.
    """
    if not seeds:
        raise ValueError("a judgement needs at least one seed")
    n = 0 if point else len(seeds)
    if point or exact:
        return _seed_by_seed(seeds, region, n)
    if n == 1:
        return Judgement(
            "open", value := _centre(*seeds[0]), None, None, _slack(region, value), None, None, n, "one seed"
        )
    good = INF if region.high == INF else -INF if region.low == -INF else None  # the infinity that fulfils the region
    for end in (-INF, INF):
        if end != good and (end, end) in seeds:
            if good is not None and (good, good) in seeds:
                return Judgement("open", math.nan, None, None, 0.0, None, None, n, "seeds disagree about divergence")
            return Judgement("against", end, end, end, -INF, -INF, -INF, n, "a run that must do well diverged")
    finite = [s for s in seeds if s != (good, good)]
    if not finite and good is not None:
        return Judgement("for", good, good, good, INF, INF, INF, n, "every run that must do badly diverged")
    if len(finite) < 2:
        low, high = finite[0]
        value = _centre(low, high)
        return Judgement("open", value, None, None, _slack(region, value), None, None, n, f"one finite seed of {n}")
    low = _end([s[0] for s in finite], 0)
    high = _end([s[1] for s in finite], 1)
    value = _centre(*(_mean([s[k] for s in finite]) for k in (0, 1)))
    worst, best = region.slack_range(low, high)
    says = "for" if region.contains(low, high) else "against" if region.excludes(low, high) else "open"
    why = "bounds only" if low == -INF or high == INF else ""
    return Judgement(says, value, low, high, _slack(region, value), worst, best, n, why)


def _seed_by_seed(seeds: Sequence[Observation], region: Region, n: int) -> Judgement:
    ranges = [region.slack_range(*s) for s in seeds]
    worst = min(range(len(seeds)), key=lambda i: ranges[i])
    low, high = seeds[worst]
    says = "for" if all(region.contains(*s) for s in seeds) else "open"
    if any(region.excludes(*s) for s in seeds):
        says = "against"
    value = _centre(low, high)
    return Judgement(says, value, low, high, _slack(region, value), *ranges[worst], n)


def _end(values: Sequence[float], side: int) -> float:
    """The outer end of the t-interval of the values at one side; infinite as soon as one of them is."""
    return _mean(values) if any(math.isinf(v) for v in values) else t_interval(values)[side]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values)


def _centre(low: float, high: float) -> float:
    """One number for an observation: the finite end of a bound, NaN if there is none."""
    if math.isinf(low) and math.isinf(high):
        return low if low == high else math.nan
    return high if math.isinf(low) else low if math.isinf(high) else (low + high) / 2


def _slack(region: Region, value: float) -> float:
    return math.nan if math.isnan(value) else region.slack(value)


@cache
def _quantile(level: float, freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, freedom))
