"""The forms of a check: which numbers a claim compares, and the region where they must lie.

Each form turns observations into one number per unit (a setting, or a pair of runs in it) and seed; differences of
logarithms stand for ratios. The table of forms is in `docs/claims.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.report.intervals import INF, NO_INFORMATION, Region
from reproduce.verdicts.checks import bound, canon, form_of, listed, operand_values, statement
from reproduce.verdicts.claims import Metric
from reproduce.verdicts.observations import (
    ENDS,
    NotRun,
    aggregate,
    compare,
    ordered_values,
    pick,
    refuse_duplicates,
    select,
    settings_of,
    unit_names,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Evidence:
    """What a check compares: one observation per unit (a setting or a pair of them) and seed.

    rows: columns unit, seed, low, high. log: the numbers are logarithms of ratios. what: their name for people.
    missing: what the check names and the cells do not have.
    """

    rows: pd.DataFrame
    what: str
    log: bool = False
    missing: list[str] = field(default_factory=list)


def evidence(
    check: Mapping[str, Any], cells: pd.DataFrame, metrics: Mapping[str, Metric]
) -> tuple[Evidence, Region, str]:
    """The numbers of a checked check, the region where they must lie, and their unit; NotRun if there are none."""
    names = listed(check["metric"])
    present = set(cells["metric"]) if len(cells) else set()
    for name in names:
        if name not in present:
            raise NotRun(f"metric {name} is not in the cells")
    cells = cells[cells["metric"].isin(names)]
    unit = metrics[names[0]].unit
    if check.get("is") == "absent":
        return _absent(cells, check), Region(1.0, 1.0), "share"
    frame, missing = select(cells, check.get("for", {}))
    for how in ("mean", "sum"):
        if f"{how}_over" in check:
            frame = aggregate(refuse_duplicates(frame), listed(check[f"{how}_over"]), how)
    frame = refuse_duplicates(frame)
    groups = [frame] if check.get("over") == "metric" else [frame[frame["metric"] == name] for name in names]
    groups = [g for g in groups if len(g)]
    found = [_one_metric(check, group, _sign(check, group, metrics)) for group in groups]
    log = found[0][0].log
    rows = _concat([e.rows for e, _ in found])
    missing += [m for e, _ in found for m in e.missing]
    rows = rows.assign(unit=unit_names(rows))
    found_all = Evidence(rows, found[0][0].what, log, list(dict.fromkeys(missing)))
    return found_all, found[0][1], "log ratio" if log else "share of seeds" if found[0][0].what == "share" else unit


def _one_metric(check: Mapping[str, Any], frame: pd.DataFrame, sign: int) -> tuple[Evidence, Region]:
    missing: list[str] = []
    ratios, what = False, "value"
    for transform, second in (("gap", "minus"), ("ratio", "to")):
        if transform in check:
            spec, log = check[transform], transform == "ratio"
            what = "ratio" if log else "difference"
            over = spec.get("over", "algorithm")
            left, right = (_operand(frame, over, spec[key], sign, missing, ratios) for key in ("of", second))
            frame = _cross(left, right, log, check.get("unpaired", ()), missing, " to " if log else " minus ")
            ratios = log
    found, region = _FORMS[form_of(check)](check, frame, sign, ratios)
    found.missing[:0] = missing
    if ratios:
        found.log, found.what = True, "ratio"
    elif found.what == "value":
        found.what = what
    return found, region


def _better(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    pairs = [(b, t) for b in listed(check["better"]) for t in listed(check["than"])]
    return _ordered(check, frame, sign, pairs, ratios)


def _order(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    return _ordered(check, frame, sign, list(zip(check["order"], check["order"][1:], strict=False)), ratios)


def _trend(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    values = ordered_values(frame, check["over"], check.get("values"))
    if len(values) < 2:
        raise NotRun(f"a trend needs two values of {check['over']}; the cells have {', '.join(values) or 'none'}")
    up = 1 if check["trend"] == "increasing" else -1
    return _ordered(check, frame, up, list(zip(values[1:], values, strict=False)), ratios)


def _ordered(
    check: Mapping[str, Any],
    frame: pd.DataFrame,
    sign: int,
    pairs: Iterable[tuple[Any, Any]],
    ratios: bool,
    word: str = " ahead of ",
) -> tuple[Evidence, Region]:
    """Each first of a pair is ahead of the second by the margin, in the direction of `sign`; without a margin a tie is
    no lead."""
    margin, log = bound(check, "margin")
    word = " after " if "trend" in check else word
    rows, missing = _pairs(check, frame, sign, pairs, log, ratios, word)
    if sign < 0:
        rows[ENDS] = -rows[ENDS[::-1]].to_numpy()
    strict = bool(check.get("strict", "margin" not in check))
    return Evidence(rows, "ratio" if log else "lead", log, missing), Region(margin, INF, strict)


def _equal(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    items = check["equal"]
    within, log = bound(check, "within")
    pairs = [(a, b) for i, a in enumerate(items) for b in items[i + 1 :]]
    rows, missing = _pairs(check, frame, sign, pairs, log, ratios, " minus ")
    return Evidence(rows, "ratio" if log else "difference", log, missing), Region(-within, within)


def _is(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    said = statement(check["is"])
    if said.says == "region":
        if not ratios:
            return Evidence(frame, "value"), said.region
        low, high = (math.log(v) if v > 0 else -INF for v in (said.region.low, said.region.high))
        return Evidence(frame, "value"), Region(low, high, said.region.strict)
    if said.says == "one_of":
        values = frame["low"].to_numpy()[:, None]
        true = np.isclose(values, np.array(said.values)[None, :], rtol=1e-9, atol=0).any(axis=1)
    else:  # unreached: a bound, or diverged
        true = np.isinf(frame["high"].to_numpy())
    share = true.astype(float)
    return Evidence(frame.assign(low=share, high=share), "share"), Region(1.0, 1.0)


def _spread(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    high, log = bound(check, "at_most")
    over = check["over"]
    frame, missing = _only(frame, over, check.get("values"))
    (_, top), *_ = pick(frame, over, {"best_of": "all"}, 1)
    (_, bottom), *_ = pick(frame, over, {"worst_of": "all"}, 1)
    rows, lacking = compare(top, bottom, log=log and not ratios)
    return Evidence(rows, "ratio" if log else "spread", log, missing + lacking), Region(-INF, high)


def _peak(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    over = check["over"]
    values = ordered_values(frame, over, None)
    if len(values) < 3:
        raise NotRun(f"a peak needs three values of {over}; the cells have {', '.join(values) or 'none'}")
    inside, ends = {"best_of": values[1:-1]}, {"best_of": [values[0], values[-1]]}
    return _ordered(check, frame, sign, [(inside, ends)], ratios, " against ")


def _correlation(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    """Rank correlation over the settings between two values of `over`, per value of the columns `per` and seed."""
    import pandas as pd
    from scipy.stats import rankdata

    missing: list[str] = []
    found = _operand(frame, check["over"], check["correlation"], sign, missing, ratios)
    if len(found) < 2:
        raise NotRun("nothing to compare: no rows with " + ", ".join(missing))
    (first, a), (second, b) = found
    both = a.merge(b, on=[*settings_of(a), "seed"], suffixes=("", "_"))
    per = listed(check.get("per", [])) or ["metric"]
    rows = []
    for names, group in both.groupby([*per, "seed"], sort=False):
        x, y = (rankdata(group[c].to_numpy()) for c in ("low", "low_"))
        known = len(group) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
        low, high = (float(np.corrcoef(x, y)[0, 1]),) * 2 if known else NO_INFORMATION
        rows.append({**dict(zip(per, names, strict=False)), "seed": names[-1], "low": low, "high": high})
    if not rows:
        raise NotRun(f"no settings in common between {first} and {second}")
    return Evidence(pd.DataFrame(rows), "correlation", False, missing), Region(float(check["at_least"]), INF)


def _best_at(check: Mapping[str, Any], frame: pd.DataFrame, sign: int, ratios: bool) -> tuple[Evidence, Region]:
    """Is the best value of `over`, per setting and seed, one of those listed? Yes 1, no 0; ties count as yes, and where
    all runs diverged none is the best."""
    over = check["over"]
    inside, missing = _only(frame, over, check["best_at"])
    (_, best), *_ = pick(frame, over, {"best_of": "all"}, sign)
    (_, among), *_ = pick(inside, over, {"best_of": "all"}, sign)
    keys = [*settings_of(best), "seed"]
    rows = best.merge(among, on=keys, how="left", suffixes=("", "_"))
    true = ((rows["low"] == rows["low_"]) & np.isfinite(rows["low"])).to_numpy(float)
    return Evidence(rows[keys].assign(low=true, high=true), "share", False, missing), Region(1.0, 1.0)


def _absent(cells: pd.DataFrame, check: Mapping[str, Any]) -> Evidence:
    import pandas as pd

    try:
        chosen, _ = select(cells, check.get("for", {}))
        there = bool(np.isfinite(chosen["low"]).any())
    except NotRun as reason:
        if str(reason).startswith("column"):
            raise
        there = False
    rows = pd.DataFrame([{"unit": "", "seed": -1, "low": float(not there), "high": float(not there)}])
    return Evidence(rows, "share")


_FORMS: dict[str, Callable[[Mapping[str, Any], Any, int, bool], tuple[Evidence, Region]]] = {
    "better": _better,
    "order": _order,
    "equal": _equal,
    "is": _is,
    "trend": _trend,
    "spread": _spread,
    "peak": _peak,
    "correlation": _correlation,
    "best_at": _best_at,
}


def _pairs(
    check: Mapping[str, Any],
    frame: pd.DataFrame,
    sign: int,
    pairs: Iterable[tuple[Any, Any]],
    log: bool,
    ratios: bool,
    word: str,
) -> tuple[pd.DataFrame, list[str]]:
    missing: list[str] = []
    over, unpaired = check.get("over", "algorithm"), check.get("unpaired", ())
    if over not in frame:
        raise NotRun(f"column {over} is not in the cells")
    frames = []
    for first, second in pairs:
        left, right = (_operand(frame, over, o, sign, missing, ratios, needed=False) for o in (first, second))
        if left and right:
            frames.append(_cross(left, right, log and not ratios, unpaired, missing, word))
    rows = _concat(frames) if frames else None
    if rows is None or rows.empty:
        raise NotRun("nothing to compare: no rows with " + (", ".join(dict.fromkeys(missing)) or "a partner"))
    return rows, missing


def _operand(
    frame: pd.DataFrame,
    over: str,
    operand: Any,
    sign: int,
    missing: list[str],
    ratios: bool,
    needed: bool = True,
) -> list[tuple[str, pd.DataFrame]]:
    """The rows of an operand; its values without rows are added to `missing`."""
    if over not in frame:
        raise NotRun(f"column {over} is not in the cells")
    have = set(frame[over])
    missing += [f"{over} {canon(v)}" for v in operand_values(operand) if canon(v) not in have]
    found = pick(frame, over, operand, sign, ratios)
    if needed and not found:
        raise NotRun(f"no rows with {' or '.join(f'{over} {canon(v)}' for v in operand_values(operand))}")
    return found


def _cross(
    left: list[tuple[str, pd.DataFrame]],
    right: list[tuple[str, pd.DataFrame]],
    log: bool,
    unpaired: Iterable[str],
    missing: list[str],
    word: str,
) -> pd.DataFrame:
    """Every left operand against every right one; the column `pair` tells them apart."""
    frames = []
    for (a, x), (b, y) in ((one, two) for one in left for two in right):
        rows, lacking = compare(x, y, log=log, unpaired=listed(unpaired))
        missing += [f"{what} for {b}" for what in lacking]
        rows["pair"] = (rows["pair"] + ": " if "pair" in rows else "") + f"{a}{word}{b}"
        frames.append(rows)
    return _concat(frames)


def _only(frame: pd.DataFrame, over: str, values: Any) -> tuple[pd.DataFrame, list[str]]:
    if values is None:
        return frame, []
    wanted = [canon(v) for v in values]
    have = set(frame[over])
    if have.isdisjoint(wanted):
        raise NotRun(f"no rows with {over} = {' or '.join(wanted)}")
    return frame[frame[over].isin(wanted)], [f"{over} {v}" for v in wanted if v not in have]


def _concat(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].reset_index(drop=True)


def _sign(check: Mapping[str, Any], frame: pd.DataFrame, metrics: Mapping[str, Metric]) -> int:
    return -1 if check.get("direction", metrics[frame["metric"].iloc[0]].better) == "lower" else 1
