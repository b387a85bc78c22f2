"""The chance that a claim is decided: its settings are drawn again and again; and how many settings decide together.

Drawn are the mean and the variance of each setting, normal and chi-squared; where runs collapse or answers are yes or
no, how many of the runs are for the claim. Settings are drawn independently of each other. Streams are keyed by the
number of seeds, so that numbers repeat themselves. `decide` is the rule of verdicts too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, stdev

import numpy as np

from reproduce.streams import rng
from reproduce.verdicts.judging import NO_INFORMATION, Region, Unit, collapses, level_at
from reproduce.verdicts.spreads import LEAST, fit

DRAWS = 200
MOST = 100
"""Seeds beyond which nobody would go."""
HALF = 0.5
"""With less than this chance a claim cannot be decided."""


@dataclass(frozen=True)
class Setting:
    """A unit with what is taken to be true of it: its mean, and the standard deviation over seeds (None: unknown)."""

    unit: Unit
    mean: float
    spread: float | None
    seeds: int

    @property
    def kind(self) -> str:
        """sure: every run says the same; votes: runs are counted; normal."""
        u = self.unit
        if not u.random or (u.within != NO_INFORMATION and u.judged.says != "open"):
            return "sure"
        odd = u.share or not math.isfinite(self.mean) or not any(self.known)
        far = all(self.known) and collapses([low for low, _ in u.seeds], u.step)
        return "votes" if odd or far else "normal"

    @property
    def known(self) -> tuple[bool, bool]:
        """Are the low ends of all seeds known, and the high ones? Those of bounds are not."""
        if self.mean != self.unit.judged.value:
            return True, True
        low, high = (all(map(math.isfinite, ends)) for ends in zip(*self.unit.seeds, strict=True))
        return low, high


@dataclass(frozen=True)
class Design:
    """One part of a claim as it is judged: settings, quantifier, the number of parts; partly: settings are missing.
    look: how often it was judged with more seeds than before, 0 if never."""

    settings: tuple[Setting, ...]
    quantifier: tuple[str, float, float]
    parts: int
    partly: bool
    unit: str = ""
    look: int = 1

    @property
    def single(self) -> float:
        """The level of one interval."""
        return level_at(max(self.look, 1))

    @property
    def level(self) -> float:
        """That of all intervals of the part together."""
        return 1 - (1 - self.single) / self.parts


def as_measured(u: Unit) -> Setting:
    """What its own seeds say of a unit."""
    sides = (side for side in zip(*u.seeds, strict=True) if len(side) > 1 and all(map(math.isfinite, side)))
    return Setting(u, u.judged.value, next(map(stdev, sides), None), u.judged.n)


def chance(designs: Sequence[Design], seeds: int = 0) -> tuple[float, float]:
    """The chances that all parts are for the claim, and that one is against it, with `seeds` or more a setting."""
    stream = rng("power", seeds)
    yes, no = np.ones(DRAWS, bool), np.zeros(DRAWS, bool)
    for design in designs:
        inside, outside = _probabilities(design, seeds, stream)
        found = decide(design, inside, outside)
        yes, no = yes & found[0], no | found[1]
    return float(yes.mean()), float(no.mean())


def enough(designs: Sequence[Design]) -> tuple[int, str] | None:
    """(seeds per setting, for or against) with which the chance to decide is one half; None beyond `MOST`.

    They are more than the setting with the fewest has, and the next look.
    """
    designs = [replace(design, look=design.look + 1) for design in designs]
    now = min((s.seeds for d in designs for s in d.settings if s.kind != "sure"), default=MOST)
    counts = range(now + 1, MOST + 1)
    if not counts or max(chance(designs, MOST)) < HALF:
        return None
    seeds = counts[min(bisect_left(counts, True, key=lambda n: max(chance(designs, n)) >= HALF), len(counts) - 1)]
    yes, no = chance(designs, seeds)
    return seeds, "for" if yes >= no else "against"


def possible(designs: Sequence[Design]) -> tuple[bool, bool]:
    """Could the runs, whatever they had said, have decided for the claim, and against it?"""
    yes, no = True, False
    for design in designs:
        sides = [np.array([[_best(s, side) for s in design.settings]]) for side in ("for", "against")]
        found = [bool(each[0]) for each in decide(design, *sides)]
        yes, no = yes and found[0], no or found[1]
    return yes, no


def decide(design: Design, inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Is a part of a claim decided for, and against? Of many draws at once.

    One setting that decides for all must do so at the family-wise level (Holm), because one of many falls out by
    chance. One counterexample to `all`, or one example of `any`, needs no other settings; else what is missing may turn
    what is against the claim. inside, outside [draw, setting]: the smallest error of a setting's interval that lies
    inside its region, and outside.
    """
    name, whole = design.quantifier[0], np.array(not design.partly)
    if name in ("fraction", "count"):
        n, (few, many, here, gone) = len(design.settings), counts(design, inside, outside)
        return (here >= few) & ((many >= n) | (gone >= n - many)), ((gone > n - few) | (here > many)) & whole
    if name == "any":
        return shown(design, inside) > 0, (outside <= 1 - design.single).all(axis=1) & whole
    against = shown(design, outside) > 0
    return np.asarray((inside <= 1 - design.single).all(axis=1)), against & whole if name == "mean" else against


def counts(design: Design, inside: np.ndarray, outside: np.ndarray) -> tuple[int, int, np.ndarray, np.ndarray]:
    """The fewest and the most settings that a number or share asks for, and how many are shown inside, and outside."""
    name, least, most = design.quantifier
    n = len(design.settings)
    scale = n if name == "fraction" else 1
    few, many = math.ceil(least * scale - 1e-9), math.floor(min(most * scale, n) + 1e-9)
    return few, many, shown(design, inside, (few, many + 1)), shown(design, outside, (n - many, n - few + 1))


def inside(region: Region, slack: float) -> float:
    """The number that lies so far inside a region."""
    if math.isfinite(region.low) and math.isfinite(region.high):
        return region.low + min(slack, (region.high - region.low) / 2)
    return region.low + slack if math.isfinite(region.low) else region.high - slack


def shown(design: Design, p: np.ndarray, asked: Sequence[int] = ()) -> np.ndarray:
    """How many settings are shown to be on a side, by their errors `p`: by Holm's step-down procedure, and of the
    numbers `asked` for by the partial conjunction of Benjamini and Heller (2008) with Bonferroni's bound: each by
    itself for all of them, as `all` asks; Holm's first step for one, as `any` does."""
    random = np.array([s.unit.random for s in design.settings])
    sure = int((p[0, ~random] < HALF).sum())
    ordered, k = np.sort(p[:, random], axis=1), int(random.sum())
    bounds = (1 - design.level) / np.arange(k, 0, -1)
    found = sure + np.cumprod(ordered <= bounds, axis=1).sum(axis=1)
    for number in asked:
        if 0 < number - sure <= k:
            found = np.where(
                ordered[:, number - sure - 1] <= bounds[number - sure - 1], np.maximum(found, number), found
            )
    return np.asarray(found)


def _probabilities(design: Design, seeds: int, stream: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """`inside` and `outside` of `decide`, drawn."""
    within, without = (np.ones((DRAWS, len(design.settings))) for _ in range(2))
    known = [s.spread for s in design.settings if s.spread is not None]
    groups: dict[int, list[int]] = {}
    for i, s in enumerate(design.settings):
        if s.kind == "normal":
            groups.setdefault(id(s.unit.prior), []).append(i)
        elif s.kind == "sure":
            holds = s.unit.region.holds(s.mean)
            within[:, i], without[:, i] = float(not holds), float(holds)
        else:
            n, shares = max(seeds, s.seeds), _shares(s)
            for side, share in zip((within, without), shares, strict=True):
                side[:, i] = _sign_test(stream.binomial(n, share, DRAWS), n)
    for members in groups.values():
        settings = [design.settings[i] for i in members]
        settings = [s if s.spread is not None or not known else replace(s, spread=median(known)) for s in settings]
        within[:, members], without[:, members] = _normal(settings, seeds, stream)
    return within, without


def _normal(settings: Sequence[Setting], seeds: int, stream: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Settings that share a prior, or have none. Without any spread nothing is ever shown."""
    from scipy.special import stdtr

    n = np.array([max(seeds, s.seeds) for s in settings])
    freedom = np.maximum(n - 1.0, 1)
    spreads = np.array([math.nan if s.spread is None else s.spread for s in settings])
    steps = np.array([s.unit.step for s in settings]) / np.sqrt(n)
    means = np.array([s.mean for s in settings]) + spreads * stream.standard_normal((DRAWS, len(n))) / np.sqrt(n)
    drawn = np.maximum(spreads**2 * stream.chisquare(freedom, (DRAWS, len(n))) / freedom, steps**2)
    prior = settings[0].unit.prior
    if prior and len(settings) >= LEAST and drawn.min() > 0:
        alike = max(sum(s.seeds - 1 for s in settings) / prior.most, 1.0)
        drawn, freedom = fit(drawn, freedom, freedom.sum() / alike).moderated(drawn, freedom)
    errors = np.sqrt(np.maximum(drawn, 1e-300) / n)
    low, high = (np.where([s.known[k] for s in settings], means, (-np.inf, np.inf)[k]) for k in (0, 1))
    least, most = (np.array([getattr(s.unit.region, end) for s in settings]) for end in ("low", "high"))

    inside, outside = np.zeros(means.shape), np.full(means.shape, 2.0)
    for sign, end, near, far in ((1, least, low, high), (-1, most, high, low)):
        if np.isfinite(end).any():
            with np.errstate(invalid="ignore"):
                kept, left = (2 * stdtr(freedom, sign * apart / errors) for apart in (end - near, far - end))
            inside, outside = np.fmax(inside, kept), np.fmin(outside, left)
    still = (spreads == 0) * 4 * HALF**n  # seeds that agree decide by their number
    holds = np.array([s.unit.region.holds(s.mean) for s in settings])
    inside = np.where((spreads == 0) & holds, np.minimum(inside, still), inside)
    outside = np.where((spreads == 0) & ~holds, np.minimum(outside, still), outside)
    never = (n < 2) | np.isnan(means)
    return np.where(never, 1.0, inside), np.where(never, 1.0, outside)


def _shares(s: Setting) -> tuple[float, float]:
    """The shares of runs that are for the claim, and against it: of its own seeds, if they have its mean."""
    u = s.unit
    if s.mean != u.judged.value and not math.isnan(s.mean):
        return float(u.region.holds(s.mean)), float(not u.region.holds(s.mean))
    sides = [sum(side(*ends) for ends in u.seeds) / len(u.seeds) for side in (u.region.contains, u.region.excludes)]
    return sides[0], sides[1]


def _sign_test(runs: np.ndarray, n: int) -> np.ndarray:
    from scipy.special import bdtrc

    return np.where(runs > 0, np.minimum(2 * bdtrc(np.maximum(runs - 1, 0), n, HALF), 1.0), 1.0)


def _best(s: Setting, side: str) -> float:
    """The smallest probability that a setting can reach on a side, whatever its runs say."""
    u = s.unit
    votes = float(_sign_test(np.array([s.seeds]), s.seeds)[0]) if s.seeds else 0.0
    if not u.random or s.kind == "sure":
        return 0.0
    exactly = side == "for" and u.region.low == u.region.high
    return votes if s.kind == "votes" or exactly or s.seeds < 2 else 0.0
