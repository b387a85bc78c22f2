"""The forms of a check: which numbers a claim compares, and the region where they must lie.

Each form turns observations into one number per unit (a setting, or a pair of runs in it) and seed; differences of
logarithms stand for ratios. The table of forms is in `docs/claims.md`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.paper import Metric
from reproduce.report.names import canonical
from reproduce.verdicts import observations
from reproduce.verdicts.claims import TRANSFORMS, Check, bound, form_of, listed, operand_values, statement
from reproduce.verdicts.judging import INF, NO_INFORMATION, Region, Unit
from reproduce.verdicts.observations import ENDS, SURE, NotRun, compare

Operand = list[tuple[str, pd.DataFrame]]
"""(name, rows) of each thing that a side of a comparison names."""


MOST_SEEDS = Region(0.5, strict=True)
"""The region of a share: a statement that is true or false of a run is to be true of most."""


@dataclass
class Evidence:
    """The observations of a check: one per unit (a setting or a pair of them) and seed, and where it must lie.

    rows: columns unit, seed, low, high. what: the name of the numbers for people. log: they are logarithms of ratios.
    missing: what the check names and the cells do not have. unit: of the numbers; units: of a setting, where the check
    asks several metrics.
    """

    rows: pd.DataFrame
    region: Region
    what: str
    log: bool = False
    missing: list[str] = field(default_factory=list)
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)


def evidence(check: Check, cells: pd.DataFrame, metrics: Mapping[str, Metric]) -> Evidence:
    """The numbers of one part of a checked check; NotRun if there are none."""
    names = listed(check["metric"])
    present = set(cells["metric"]) if len(cells) else set()
    for name in names:
        if name not in present:
            raise NotRun(f"metric {name} is not in the cells")
    cells = cells[cells["metric"].isin(names)]
    frame, missing = observations.select(cells, check.get("for", {}))
    if "sum_over" in check:
        frame = observations.summed(observations.refuse_duplicates(frame), listed(check["sum_over"]))
    frame = observations.refuse_duplicates(frame)
    groups = [frame] if check.get("over") == "metric" else [frame[frame["metric"] == name] for name in names]
    units = {name: metrics[name].unit for name in names}
    better = {name: check.get("direction", metrics[name].better) for name in names}
    parts = [
        _Asked(check, group, -1 if better[name] == "lower" else 1, units[name]).evidence()
        for group in groups
        if len(group) and (name := group["metric"].iloc[0])
    ]
    rows = _concat([e.rows for e in parts])
    first, unit = parts[0], units[names[0]]
    first.rows = rows.assign(unit=observations.unit_names(rows))
    first.missing = list(dict.fromkeys([*missing, *(m for e in parts for m in e.missing)]))
    if not (first.log or first.what == "share") and "metric" in rows:
        first.units = {name: units[m] for name, m in zip(first.rows["unit"], rows["metric"], strict=True)}
    first.unit = "of the seeds" if first.what == "share" else unit
    return first


@dataclass
class _Asked:
    """A check of the numbers of one metric: each form is a method.

    sign: 1 if more is better, -1 if less is. unit: that of the metric. ratios: the numbers have become logarithms of
    ratios. missing: what has been found missing on the way.
    """

    check: Check
    frame: pd.DataFrame
    sign: int
    unit: str
    ratios: bool = False
    missing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.step = observations.resolution(self.frame, self.unit)
        self.ceiling = 100.0 if self.unit == "percent" else math.nan

    def evidence(self) -> Evidence:
        """The transform of the check (`gap`, `ratio`), if it has one, then its form."""
        what = "value"
        for transform, second in TRANSFORMS:
            if transform in self.check:
                spec, log = self.check[transform], transform == "ratio"
                what = "ratio" if log else "difference"
                left, right = (self._operand(spec.get("over", "algorithm"), spec[key]) for key in ("of", second))
                self.frame, self.ratios = self._cross(left, right, log, " to " if log else " minus "), log
                self.ceiling = math.nan
        result = _FORMS[form_of(self.check)](self)
        result.missing = self.missing
        if self.ratios:
            result.log, result.what = True, "ratio"
        elif result.what == "value":
            result.what = what
        return result

    # --- forms ---

    def better(self) -> Evidence:
        return self._ordered([(b, t) for b in listed(self.check["better"]) for t in listed(self.check["than"])])

    def order(self) -> Evidence:
        return self._ordered(list(zip(self.check["order"], self.check["order"][1:], strict=False)))

    def trend(self) -> Evidence:
        values = self._values(self.check.get("values"))
        self.sign = 1 if self.check["trend"] == "increasing" else -1
        return self._ordered(list(zip(values[1:], values, strict=False)), " after ")

    def equal(self) -> Evidence:
        items = self.check["equal"]
        within, log = bound(self.check, "within")
        pairs = [(a, b) for i, a in enumerate(items) for b in items[i + 1 :]]
        rows = self._pairs(pairs, log, " minus ")
        return Evidence(rows, Region(-within, within), "ratio" if log else "difference", log)

    def is_(self) -> Evidence:
        claimed = statement(self.check["is"])
        if isinstance(claimed, Region):
            if self.ratios:
                low, high = (math.log(v) if v > 0 else -INF for v in (claimed.low, claimed.high))
                claimed = Region(low, high, claimed.strict)
            return Evidence(self._at_the_ends(), claimed, "value")
        if isinstance(claimed, tuple):
            values = self.frame["low"].to_numpy()[:, None]
            true = np.isclose(values, np.array(claimed)[None, :], rtol=1e-9, atol=0).any(axis=1)
        else:  # unreached: a bound, or diverged
            true = np.isinf(self.frame["high"].to_numpy())
        share = true.astype(float)
        return Evidence(self.frame.assign(low=share, high=share), MOST_SEEDS, "share")

    def spread(self) -> Evidence:
        high, log = bound(self.check, "at_most")
        over: str = self.check["over"]
        self.sign = 1
        values = self.check.get("values", self.frame[over].unique().tolist())
        if len(set(map(canonical, values)) & set(self.frame[over])) < 2:
            raise NotRun(f"a spread needs two values of {over}")
        ((_, top),), ((_, bottom),) = (self._operand(over, {kind: values}) for kind in ("best_of", "worst_of"))
        rows, lacking = compare(top, bottom, log=log and not self.ratios, step=self.step)
        self.missing += lacking
        return Evidence(rows, Region(-INF, high), "ratio" if log else "spread", log)

    def transfer(self) -> Evidence:
        """The loss from using the setting that is best under one value of `over` under the other, whichever way costs
        more; per value of the columns `per` and seed."""
        operands = self._operand(self.check["over"], self.check["transfer"])
        if len(operands) < 2:
            raise NotRun("nothing to compare: no rows with " + ", ".join(self.missing))
        (first, a), (second, b) = operands
        per = listed(self.check.get("per", [])) or ["metric"]
        both = observations.whole(a.merge(b, on=[*observations.settings_of(a), "seed"], suffixes=("", "_")), per)
        rows = []
        for names, group in both.groupby([*per, "seed"], sort=False):
            x, y = (self.sign * group[c].to_numpy() for c in ("low", "low_"))
            known = np.isfinite(x).any() and np.isfinite(y).any()
            cost = max(y.max() - y[x.argmax()], x.max() - x[y.argmax()]) if known else math.nan
            low, high = (cost, cost) if known else NO_INFORMATION
            rows.append({**dict(zip(per, names, strict=False)), "seed": names[-1], "low": low, "high": high})
        if not rows:
            raise NotRun(f"no settings in common between {first} and {second}")
        high, log = bound(self.check, "at_most")
        return Evidence(pd.DataFrame(rows), Region(-INF, high), "cost", log)

    # --- what they are made of ---

    def _at_the_ends(self) -> pd.DataFrame:
        """The numbers, which noise cannot take beyond the end of their scale: a ceiling, or the end of the run before
        which the target was not reached. Numbers that are made of others have no such end."""
        if {"gap", "ratio", "sum_over"} & set(self.check):
            return self.frame
        low, high = (self.frame[end] for end in ENDS)
        top, unreached = (low == high) & (low == self.ceiling), np.isposinf(high) & np.isfinite(low)
        return self.frame.assign(least=low.where(top | unreached, -INF), most=high.where(top, INF))

    def _ordered(self, pairs: Iterable[tuple[Any, Any]], word: str = " ahead of ") -> Evidence:
        """Each first of a pair is ahead of the second by the margin, in the direction of `sign`; without a margin a tie
        is no lead."""
        margin, log = bound(self.check, "margin")
        rows = self._pairs(pairs, log, word)
        if self.sign < 0:
            for ends in (ENDS, SURE):
                rows[ends] = -rows[ends[::-1]].to_numpy()
        return Evidence(rows, Region(margin, INF, "margin" not in self.check), "ratio" if log else "lead", log)

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], log: bool, word: str) -> pd.DataFrame:
        over, frames = self.check.get("over", "algorithm"), []
        for pair in pairs:
            left, right = (self._operand(over, operand, needed=False) for operand in pair)
            if left and right:
                frames.append(self._cross(left, right, log and not self.ratios, word))
        frames = [rows for rows in frames if len(rows)]
        if not frames:
            raise NotRun("nothing to compare: no rows with " + (", ".join(dict.fromkeys(self.missing)) or "a partner"))
        return _concat(frames)

    def _operand(self, over: str, operand: Any, needed: bool = True) -> Operand:
        """The rows of an operand; its values without rows are missing."""
        if over not in self.frame:
            raise NotRun(f"column {over} is not in the cells")
        have, values = set(self.frame[over]), [canonical(v) for v in operand_values(operand)]
        self.missing += [f"{over} {v}" for v in values if v not in have]
        picked = observations.pick(self.frame, over, operand, self.sign, self.ratios)
        if needed and not picked:
            raise NotRun(f"no rows with {' or '.join(f'{over} {v}' for v in values)}")
        return picked

    def _cross(self, left: Operand, right: Operand, log: bool, word: str) -> pd.DataFrame:
        """Every left operand against every right one; the column `pair` tells them apart."""
        frames = []
        for (a, x), (b, y) in ((one, two) for one in left for two in right):
            unpaired = listed(self.check.get("unpaired", ()))
            rows, lacking = compare(x, y, log=log, unpaired=unpaired, step=self.step, ceiling=self.ceiling)
            self.missing += [f"{what} for {b}" for what in lacking]
            rows["pair"] = (rows["pair"] + ": " if "pair" in rows else "") + f"{a}{word}{b}"
            frames.append(rows)
        return _concat(frames)

    def _values(self, values: Iterable[Any] | None) -> list[str]:
        """The values of `over` in the order of a trend: as given, else the numeric ones in ascending order."""
        over: str = self.check["over"]
        ordered = [canonical(v) for v in values or ()]
        if values is None:
            column = self.frame[over].drop_duplicates()
            ordered = column[pd.to_numeric(column, errors="coerce").dropna().sort_values().index].tolist()
        if len(ordered) < 2:
            raise NotRun(f"a trend needs two values of {over}; the values have {', '.join(ordered) or 'none'}")
        return ordered


_FORMS: Mapping[str, Callable[[_Asked], Evidence]] = {
    "better": _Asked.better, "order": _Asked.order, "trend": _Asked.trend, "equal": _Asked.equal, "is": _Asked.is_,
    "spread": _Asked.spread, "transfer": _Asked.transfer,
}  # fmt: skip


def _concat(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].reset_index(drop=True)


def units_of(data: Evidence, rows: pd.DataFrame, quantity: str, level: float) -> list[Unit]:
    """The settings, with the steps of their numbers and the ends of a scale; level: of their intervals."""
    steps: dict[str, float] = {}
    if data.log and "step" in rows:
        steps = {str(name): float(step) for name, step in rows.groupby("unit")["step"].max().items()}
    elif not data.log:
        for _, group in (rows if "metric" in rows else rows.assign(metric="")).groupby("metric", sort=False):
            steps |= dict.fromkeys(group["unit"].unique(), observations.resolution(group, data.unit))
    units = []
    for name, of_unit in rows.groupby("unit", sort=False):
        sure = (float(of_unit[SURE[0]].min()), float(of_unit[SURE[1]].max())) if SURE[0] in of_unit else NO_INFORMATION
        ends = list(of_unit[ENDS].itertuples(index=False, name=None))
        about, key = quantity if (of_unit["seed"] != -1).any() else "point", str(name)
        units.append(Unit(ends, data.region, key, about, steps.get(key, 0.0), sure, level))
    return units
