"""What the settings of a comparison tell of each other's spread over seeds: moderated variances.

Three seeds know a standard deviation to a factor of six, so the t-interval of one setting must be wide, and among many
settings (Holm) so wide that nothing stands out. A hierarchical model over the settings has more freedom: variances are
drawn from a scaled inverse chi-squared distribution, whose two numbers come from all settings (Smyth 2004, "Linear
models and empirical Bayes methods for assessing differential expression", Sec. 6). Its check is built in: the
more the spreads differ, the fewer degrees of freedom it adds, down to none: the t-interval of the setting alone.

It looks at deviations from each setting's mean and at nothing else, so no verdict can turn it on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduce.report.intervals import agree
from reproduce.verdicts.judging import collapses

LEAST = 4
"""Settings below which their spreads tell too little of each other."""


@dataclass(frozen=True)
class Prior:
    """What a setting's variance is worth before it is looked at: `variance`, with so many degrees of `freedom`.

    most: the degrees of freedom that all settings have together, fewer if their seeds go up and down together. Arrays
    stand for several priors, with a last axis of one setting.
    """

    freedom: Any
    variance: Any
    most: Any

    def moderated(self, variance: Any, freedom: Any) -> tuple[Any, Any]:
        """The variance of a setting that showed `variance` with `freedom`, and its degrees of freedom.

        A setting is never taken to be steadier than it has shown.
        """
        more = np.clip(np.minimum(self.freedom, self.most - freedom), 0, None)
        pooled = (more * self.variance + freedom * variance) / (more + freedom)
        return np.maximum(variance, pooled), freedom + more


def of_settings(numbers: np.ndarray) -> Prior | None:
    """The prior of settings with the numbers [setting, seed], NaN where a seed is missing; None for too few settings.

    Left out are settings with infinite numbers, with runs that collapse, or whose seeds agree (on a coarse grid).
    """
    plain = []
    for row in numbers:
        seen = row[~np.isnan(row)].tolist()
        plain.append(len(seen) > 1 and bool(np.isfinite(seen).all()) and not agree(seen) and not collapses(seen))
    rows = numbers[plain]
    if len(rows) < LEAST:
        return None
    freedom = (~np.isnan(rows)).sum(axis=1) - 1.0
    found = fit(np.nanvar(rows, axis=1, ddof=1), freedom, freedom.sum() / _alike(rows))
    return Prior(found.freedom.item(), found.variance.item(), found.most)


def fit(variances: np.ndarray, freedom: np.ndarray, most: float) -> Prior:
    """The prior by Smyth's moments of the log variances [..., setting], whose degrees of freedom are [setting]."""
    from scipy.special import digamma, polygamma

    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    excess = logs.var(axis=-1, ddof=1, keepdims=True) - polygamma(1, freedom / 2).mean()
    mine = 2 * _inverse_trigamma(np.maximum(excess, 1e-9))
    variance = np.exp(logs.mean(axis=-1, keepdims=True) + digamma(mine / 2) - np.log(mine / 2))
    return Prior(mine, variance, most)


def _alike(rows: np.ndarray) -> float:
    """How many settings count as one: 1 + (settings - 1) times the mean squared correlation of their seeds, which is
    Box's correction for dependent variances. Two seeds correlate perfectly, whatever is true: they count as one."""
    common = rows[:, ~np.isnan(rows).any(axis=0)]
    settings, seeds = common.shape
    if seeds < 3:
        return float(settings)
    apart = common - common.mean(axis=1, keepdims=True)
    units = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-300)
    squared = (((units.T @ units) ** 2).sum() - settings) / (settings * (settings - 1))
    by_chance = 1 / (seeds - 1)  # the mean square of what is not correlated
    return 1 + (settings - 1) * float(np.clip((squared - by_chance) / (1 - by_chance), 0, 1))


def _inverse_trigamma(values: np.ndarray) -> np.ndarray:
    """Newton's method of Smyth's appendix, which converges from one side."""
    from scipy.special import polygamma

    found = 0.5 + 1 / values
    for _ in range(12):
        first = polygamma(1, found)
        found = found + first * (1 - first / values) / polygamma(2, found)
    return np.asarray(found)
