"""Hand-made cells for the tests of verdicts, and what is said of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from reproduce.verdicts.claims import Metric
from reproduce.verdicts.judging import Region
from reproduce.verdicts.observations import read_cells
from reproduce.verdicts.verdict import Outcome, evaluate

METRICS = {
    "acc": Metric("points", "higher", ""),
    "loss": Metric("loss", "lower", ""),
    "rounds": Metric("rounds", "lower", ""),
    "share": Metric("percent", "higher", ""),
    "skew": Metric("skewness", "none", ""),
}


def cells(path: Path, *lines: str, columns: str = "algorithm,seed,metric,value") -> pd.DataFrame:
    """Observations of the given lines of a cells file."""
    file = path / "cells.csv"
    file.write_text("\n".join((columns, *lines)) + "\n")
    return read_cells(file, (), METRICS)


def runs(path: Path, metric: str = "acc", column: str = "algorithm", **values: Any) -> pd.DataFrame:
    """One setting; a keyword per value of `column`, with its numbers for seeds 0, 1, ... or the one of a point; '>9' is
    a lower bound."""
    lines = []
    for name, numbers in values.items():
        for seed, value in enumerate(numbers) if isinstance(numbers, list) else [(-1, numbers)]:
            text = str(value)
            lines.append(f"{name.removeprefix('v')},{seed},{metric},{text.lstrip('>')},{text.startswith('>')}")
    return cells(path, *lines, columns=f"{column},seed,metric,value,censored")


def verdict(frame: pd.DataFrame, **check: Any) -> str:
    return outcome(frame, **check).verdict


def outcome(frame: pd.DataFrame, **check: Any) -> Outcome:
    check = {"for" if k == "where" else "is" if k == "is_" else k: v for k, v in check.items()}
    return evaluate({"metric": "acc", **check}, frame, METRICS)


def effect(found: Outcome) -> float:
    """The distance of the deciding number from the border of its region, without the margin; logarithms of ratios."""
    assert found.measured is not None
    return _region(found).slack(_scaled(found, found.measured.value))


def interval(found: Outcome) -> tuple[float, float] | None:
    """The interval of `effect`."""
    m = found.measured
    if m is None or m.low is None or m.high is None:
        return None
    return _region(found).slack_range(_scaled(found, m.low), _scaled(found, m.high))


def _region(found: Outcome) -> Region:
    assert found.measured is not None
    return Region(*(_scaled(found, end) for end in found.measured.region))


def _scaled(found: Outcome, value: float) -> float:
    ratio = found.measured is not None and found.measured.what == "ratio"
    return value if not ratio else math.log(value) if value > 0 else -math.inf


def four_settings(path: Path, *leads: float) -> pd.DataFrame:
    """Settings n = 0, 1, ...: a is ahead of b by the given lead, give or take 0.001, in seven seeds."""
    lines = [
        f"{n},{a},{s},acc,{v + 0.001 * (s % 3 - 1) * (a == 'a')}"
        for n, lead in enumerate(leads)
        for a, v in (("a", lead), ("b", 0))
        for s in range(7)
    ]
    return cells(path, *lines, columns="n,algorithm,seed,metric,value")


def one_sided(leads: np.ndarray) -> tuple[np.ndarray, ...]:
    """The p-values of means that are not above zero, and not below."""
    return tuple(stats.ttest_1samp(leads, 0, axis=1, alternative=side).pvalue for side in ("greater", "less"))
