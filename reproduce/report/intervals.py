"""The t-interval of a mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def t_interval(values: Sequence[float], level: float = 0.95, step: float = 0.0) -> tuple[float, float]:
    """The t-interval of the mean of at least two finite values.

    step: what the values are multiples of. Values that agree are given the least spread that such values can show,
    one of them being one step off, because agreement says that the grid is coarse and not that there is no spread.
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two values")
    # mean +- t(n - 1) s / sqrt(n), s^2 = sum (v - mean)^2 / (n - 1)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    spread = step / math.sqrt(n) if agree(values) else spread
    half = quantile(level, n - 1) * spread / math.sqrt(n)
    return mean - half, mean + half


def agree(values: Sequence[float]) -> bool:
    """Do the seeds show no spread beyond rounding? Then its size is unknown, not zero."""
    return max(values) - min(values) <= 1e-12 * max(map(abs, values))


@cache
def quantile(level: float, freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, freedom))
