"""Cells as observations: reading, filtering and combining the per-seed numbers that a claim compares.

A frame of observations has the setting columns, `algorithm`, `metric` and `seed` (-1: the number needs no seed), and
the ends `low` and `high` of what the number can be (`reproduce.verdicts.judging`).
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.paper import Metric
from reproduce.report.names import canonical
from reproduce.verdicts.claims import listed, operand_values

ENDS = ["low", "high"]
SURE = ["least", "most"]
"""Columns of what the end of a scale keeps a number from: no noise takes it there."""
COUNTED = ("rounds", "aggregations", "steps", "coordinates")
"""Units of whole numbers."""
NOT_SETTINGS = {"artifact", "value", "std", "censored", "paper_cell"}


class NotRun(Exception):
    """There is nothing to judge, for the reason given."""


def read_cells(path: Path, labels: Iterable[str], metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Observations of a file of the paper's numbers (`reported`), or of cells without a record."""
    return observed(pd.read_csv(path, dtype=str, keep_default_na=False), labels, metrics)


def observed(raw: pd.DataFrame, labels: Iterable[str], metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Rows as text (`store.cells`) as observations; setting values as canonical text.

    A censored value is a lower bound. NaN (a diverged run, a dash) is infinitely bad, or unknown if the metric has no
    better side.
    """
    value = pd.to_numeric(raw["value"], errors="coerce").to_numpy(float)
    censored = raw["censored"].isin(["1", "True"]).to_numpy() if "censored" in raw else np.zeros(len(raw), bool)
    better = raw["metric"].map(lambda m: metrics[m].better if m in metrics else "none").to_numpy()
    lost = np.isnan(value)
    settings = [c for c in raw.columns if c not in {*NOT_SETTINGS, "seed", *labels}]
    # Plain objects: frames are small, and Arrow's strings cost a conversion with every selection.
    texts = {c: [canonical(v) for v in raw[c]] for c in settings}
    frame = pd.DataFrame(texts, index=raw.index, columns=settings, dtype=object)
    frame["seed"] = raw["seed"].astype(int) if "seed" in raw else -1
    frame["low"] = np.where(lost, np.where(better == "lower", np.inf, -np.inf), value)
    frame["high"] = np.where(lost, np.where(better == "higher", -np.inf, np.inf), np.where(censored, np.inf, value))
    return frame


def settings_of(frame: pd.DataFrame) -> list[str]:
    """The columns that tell settings apart."""
    return [c for c in frame.columns if c not in ("seed", "step", *SURE, *ENDS)]


def select(frame: pd.DataFrame, where: Mapping[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """The rows that a `for` names, and the listed values without rows; NotRun if no row is left."""
    chosen, requested = frame, {}
    for column, condition in where.items():
        if column not in frame:
            raise NotRun(f"column {column} is not in the cells")
        keep = matches(frame[column], condition)
        if not keep.any():
            raise NotRun(f"no rows with {column} = {_text(condition)}; the values have {_text(frame[column].unique())}")
        chosen = chosen[keep[chosen.index]]
        if not isinstance(condition, Mapping):
            requested[column] = [canonical(v) for v in listed(condition)]
    if chosen.empty:
        raise NotRun("no rows with " + ", ".join(f"{c} = {_text(v)}" for c, v in where.items()) + " together")
    return chosen, _lacking(chosen, requested)


def summed(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The sum over `columns`, per remaining setting and seed."""
    if absent := [c for c in columns if c not in frame]:
        raise NotRun(f"column {absent[0]} is not in the cells")
    keys = [c for c in settings_of(frame) if c not in columns]
    return whole(frame, keys).groupby([*keys, "seed"], sort=False, as_index=False)[ENDS].agg("sum")


def whole(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The rows of the seeds that have as many numbers as any seed of the same `keys`: the best, the mean or the spread
    of fewer is that of something else."""
    count = frame.groupby([*keys, "seed"], sort=False)["low"].transform("size")
    return frame[count == count.groupby([frame[k] for k in keys], sort=False).transform("max")]


def pick(frame: pd.DataFrame, over: str, operand: Any, sign: int, log: bool = False) -> list[tuple[str, pd.DataFrame]]:
    """(name, rows without the column `over`) for each thing that an operand of a comparison names.

    sign: 1 if more is better, -1 if less is; it says what best and worst are. log: the numbers are logarithms of
    ratios. An operand without rows is left out.
    """
    if isinstance(operand, list | tuple):
        return [pair for item in operand for pair in pick(frame, over, item, sign, log)]
    keys = [c for c in settings_of(frame) if c != over]
    values = [canonical(v) for v in operand_values(operand)]
    rows = frame[frame[over].isin(values)] if values else frame
    if rows.empty:
        return []
    if not isinstance(operand, Mapping):
        return [(values[0], rows[[*keys, "seed", *ENDS]])]
    (kind,), rows = operand, whole(rows, keys)
    how = "mean" if kind == "mean_of" else "max" if (kind == "best_of") == (sign > 0) else "min"
    name = f"{kind.removesuffix('_of')} of {', '.join(values) or 'all'}"
    if how == "mean":
        return [(name, average(rows, [*keys, "seed"], log))]
    return [(name, rows.groupby([*keys, "seed"], sort=False, as_index=False)[ENDS].agg(how))]


def average(rows: pd.DataFrame, keys: list[str], log: bool) -> pd.DataFrame:
    """The mean of the numbers per value of `keys`; of the ratios themselves where they are given as logarithms."""
    if not log:
        return rows.groupby(keys, sort=False, as_index=False)[ENDS].agg("mean")
    with np.errstate(divide="ignore"):
        ratios = rows.assign(low=np.exp(rows["low"]), high=np.exp(rows["high"]))
        means = average(ratios, keys, log=False)
        return means.assign(low=np.log(means["low"]), high=np.log(means["high"]))


def compare(
    left: pd.DataFrame,
    right: pd.DataFrame,
    *,
    log: bool = False,
    unpaired: Iterable[str] = (),
    step: float = 0.0,
    ceiling: float = math.nan,
) -> tuple[pd.DataFrame, list[str]]:
    """left - right (or the difference of the logarithms) per setting and seed, and what is missing for it: partners,
    and numbers above zero, without which a ratio says nothing.

    Rows pair on the seed and on all setting columns but `unpaired`; of those the left ones are kept. step: what the
    numbers are multiples of, which says how much a step changes a logarithm. ceiling: what they cannot exceed; who
    reaches it cannot be behind (`least`, `most`).
    """
    settings = settings_of(left)
    keys = [c for c in settings if c not in set(unpaired)]
    right = right[[*keys, "seed", *ENDS]].rename(columns={"low": "low_", "high": "high_"})
    both = left.merge(right, on=[*keys, "seed"])
    twice = both.loc[both.duplicated([*settings, "seed"]), settings]
    if len(twice):
        raise NotRun(f"two partners in one seed for {name_unit(settings, tuple(twice.iloc[0]), set(settings))}")
    if both.empty and not left.empty and not right.empty and set(left["seed"]).isdisjoint(right["seed"]):
        raise NotRun("the two sides of the comparison have no seed in common")
    partners = set(map(tuple, both[settings].to_numpy()))
    unmatched = [u for u in dict.fromkeys(map(tuple, left[settings].to_numpy())) if u not in partners]
    missing = [f"a partner of {name_unit(settings, u, set(settings))}" for u in unmatched]
    a, b = both[ENDS].to_numpy(float), both[["low_", "high_"]].to_numpy(float)
    unknown, numbers = np.zeros(len(both), bool), np.stack([a[:, 0], b[:, 0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        if log:
            unknown = ((np.isfinite(a) & (a <= 0)) | (np.isfinite(b) & (b <= 0))).any(axis=1)
            a, b = (np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), -np.inf) for x in (a, b))
        low, high = a[:, 0] - b[:, 1], a[:, 1] - b[:, 0]
        steps = np.nan_to_num(np.log1p(step / numbers.min(axis=0)), posinf=0.0, neginf=0.0) if log else 0.0
    result = both[[*settings, "seed"]].assign(step=steps)
    for column, top, end in zip(SURE, numbers == ceiling, (-np.inf, np.inf), strict=True):
        result[column] = np.where(top, 0.0, end)
    result["low"] = np.where(np.isnan(low) | unknown, -np.inf, low)
    result["high"] = np.where(np.isnan(high) | unknown, np.inf, high)
    without = dict.fromkeys(map(tuple, both[unknown][settings].to_numpy()))
    missing += [f"numbers above zero for the ratio of {name_unit(settings, u, set(settings))}" for u in without]
    return result, missing


def resolution(frame: pd.DataFrame, unit: str = "") -> float:
    """The smallest difference between two different numbers; without one, 1 for a unit in `COUNTED`, else 0."""
    numbers = np.unique(frame[ENDS].to_numpy())
    numbers = numbers[np.isfinite(numbers)]
    gaps = np.diff(numbers)
    gaps = gaps[gaps > 1e-9 * max(1.0, *np.abs(numbers))] if len(gaps) else gaps
    return float(gaps.min()) if len(gaps) else float(unit in COUNTED)


def unit_names(frame: pd.DataFrame) -> list[str]:
    """A name per row made of the settings that vary in `frame`, and of the pair that is compared."""
    settings = settings_of(frame)
    vary = {c for c in settings if frame[c].nunique() > 1 or c == "pair"}
    return [name_unit(settings, row, vary) for row in frame[settings].itertuples(index=False, name=None)]


def name_unit(columns: list[str], values: tuple[str, ...], vary: set[str]) -> str:
    evident = ("algorithm", "metric", "pair")
    return ", ".join(v if c in evident else f"{c} {v}" for c, v in zip(columns, values, strict=True) if c in vary)


def refuse_duplicates(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without repeated rows; NotRun if one setting and seed has two different numbers."""
    frame = frame.drop_duplicates()
    twice = frame.duplicated([*settings_of(frame), "seed"])
    if twice.any():
        row = frame[twice].iloc[0]
        setting = ", ".join(f"{c} {row[c]}" for c in settings_of(frame))
        raise NotRun(f"the values have two numbers for one setting and seed: {setting}, seed {row['seed']}")
    return frame


def matches(column: pd.Series, condition: Any) -> pd.Series:
    """Marks the values that satisfy a condition of a `for`: a value, a list, {min, max} or {not}."""
    if not isinstance(condition, Mapping):
        return column.isin([canonical(v) for v in listed(condition)])
    keep = pd.Series(True, index=column.index)
    numbers = pd.to_numeric(column, errors="coerce")
    if "min" in condition:
        keep &= numbers >= float(condition["min"])
    if "max" in condition:
        keep &= numbers <= float(condition["max"])
    if "not" in condition:
        keep &= ~column.isin([canonical(v) for v in listed(condition["not"])])
    return keep


def _lacking(chosen: pd.DataFrame, requested: Mapping[str, list[str]]) -> list[str]:
    """Listed values without a row; combinations of listed values without one if every value has some."""
    single = [f"{c} {v}" for c, values in requested.items() for v in values if v not in set(chosen[c])]
    if single or not requested:
        return single
    have = set(map(tuple, chosen[list(requested)].to_numpy()))
    lacking = [combo for combo in product(*requested.values()) if combo not in have]
    return [", ".join(f"{c} {v}" for c, v in zip(requested, combo, strict=True)) for combo in lacking]


def _text(condition: Any) -> str:
    if isinstance(condition, Mapping):
        return ", ".join(f"{k} {v}" for k, v in condition.items())
    values = [condition] if isinstance(condition, str | int | float) else list(condition)
    return " or ".join(canonical(v) for v in values)
