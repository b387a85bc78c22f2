"""How often the rules of verdicts err: draws whose truth lies on the end of the region, in every setting."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
from scipy import stats

from reproduce.declare.experiment import PACKAGE
from reproduce.verdicts.judging import LEVEL, Region, Unit, level_at

ABOVE = Region(0.0)
KINDS = ("normal", "normal, unequal", "normal, alike", "a tenth collapses", "lognormal")
QUANTITY = {"a tenth collapses": "median"}
"""What a claim on runs that collapse is about; on others, the mean."""


def wrong(draws: np.ndarray, quantity: str = "mean") -> tuple[float, float]:
    """Of draws [draw, setting, seed]: how often a setting is called inside, and how often Holm finds one outside."""
    inside, against, settings = 0, 0, draws.shape[1]
    for leads in draws:
        seeds = [[(v, v) for v in row] for row in leads.tolist()]
        inside += sum(Unit(each, ABOVE, quantity=quantity).judged.says == "for" for each in seeds)
        level = 1 - 0.05 / settings
        against += any(Unit(each, ABOVE, quantity=quantity).at(level).says == "against" for each in seeds)
    return inside / (len(draws) * settings), against / len(draws)


def noise(kind: str, n: int, settings: int, seeds: int) -> np.ndarray:
    """Draws [draw, setting, seed] whose mean is zero everywhere, or the median where a tenth collapses."""
    draw = np.random.default_rng([KINDS.index(kind), settings, seeds])
    normal = draw.standard_normal((n, settings, seeds))
    if kind == "normal, unequal":  # by a factor of twenty
        return normal * np.exp(np.linspace(-1.5, 1.5, settings))[:, None]
    if kind == "normal, alike":  # seeds go up and down together
        return (normal + draw.standard_normal((n, 1, seeds))) / np.sqrt(2)
    if kind == "a tenth collapses":
        return np.where(draw.random(normal.shape) < 0.1, -30.0, normal - stats.norm.ppf(0.4 / 0.9))
    return np.exp(normal) - np.exp(0.5) if kind == "lognormal" else normal


def residuals(dataset: str, seeds: int) -> np.ndarray:
    """Draws from our own runs: all choices of some of the ten seeds of dynamic_init's Table 8, 48 leads of a data set,
    whose means over the ten are the truth."""
    cells = pd.read_csv(PACKAGE.parent / "results/paper/cells/dynamic_init_table8.csv")
    cells = cells[(cells["dataset"] == dataset) & (cells["metric"] == cells["metric"].iloc[0])]
    keys = [c for c in cells if c not in ("init_scheme", "seed", "value")]
    starts = cells.pivot(index=[*keys, "seed"], columns="init_scheme", values="value")
    leads = starts.rsub(starts["proposed"], axis=0).drop(columns="proposed").melt(ignore_index=False).reset_index()
    found = leads.pivot(index=[*keys, "init_scheme"], columns="seed", values="value").to_numpy()
    found = found - found.mean(axis=1, keepdims=True)
    draws = np.stack([found[:, chosen] for chosen in combinations(range(found.shape[1]), seeds)])
    # The mean of some of ten is nearer to that of the ten than to the truth.
    mean = draws.mean(axis=2, keepdims=True)
    return draws - mean + mean / np.sqrt(1 - seeds / found.shape[1])


def looked(kind: str, numbers: tuple[int, ...], halved: bool, n: int, quantity: str) -> float:
    """How often a setting is called, either way, if it is judged with more seeds as long as it is open; halved: at the
    levels of the rule, else at the first one's each time."""
    called = 0
    collapsed = kind == "a tenth collapses" and quantity == "mean"
    middle = 0.1 * -30 - 0.9 * stats.norm.ppf(0.4 / 0.9) if collapsed else 0.0  # the mean where the median is zero
    for leads in noise(kind, n, 1, numbers[-1])[:, 0].tolist():
        levels = [level_at(look) if halved else LEVEL for look, _ in enumerate(numbers, 1)]
        units = (Unit([(v - middle, v - middle) for v in leads[:k]], ABOVE, quantity=quantity) for k in numbers)
        tried = (unit.at(level) for unit, level in zip(units, levels, strict=True))
        called += any(judged.says != "inconclusive" for judged in tried)
    return called / n


def rules(n: int = 200) -> None:
    """16 settings of each kind, and our own residuals, in percent; then one setting at several looks."""
    print(f"| noise | seeds | inside though not | outside by Holm though not |\n|{' --- |' * 4}")
    told = [(kind, seeds, noise(kind, n, 16, seeds)) for kind in KINDS for seeds in (3, 6, 10)]
    told += [(f"our residuals, {d}", 3, residuals(d, 3)) for d in ("mnist", "fashion_mnist")]
    for kind, seeds, draws in told:
        inside, outside = wrong(draws, QUANTITY.get(kind, "mean"))
        print(f"| {kind} | {seeds} | {inside:.1%} | {outside:.1%} |", flush=True)
    print(f"\n| noise | about | seeds at each look | called | (each look at {LEVEL:.0%}) |\n|{' --- |' * 5}")
    cases = [("normal", "mean"), ("lognormal", "mean"), ("a tenth collapses", "mean"), ("a tenth collapses", "median")]
    for (kind, about), numbers in product(cases, ((3,), (3, 6), (3, 6, 12, 24))):
        halved, plain = (looked(kind, numbers, how, 20 * n, about) for how in (True, False))
        print(f"| {kind} | {about} | {', '.join(map(str, numbers))} | {halved:.1%} | {plain:.1%} |", flush=True)
