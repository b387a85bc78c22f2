"""Figures in words, for those who cannot see them: what is drawn over what, which series, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from reproduce.declare.artifact import Artifact, Code, Curves, Filled, Last, Reach, Sheet, Window
from reproduce.errors import UserError
from reproduce.findings import quotes
from reproduce.verdicts.claims import ClaimsFile, claims_files
from reproduce.verdicts.words import named, number

if TYPE_CHECKING:
    import pandas as pd

NAMED = 8
"""Series, or metrics, whose numbers a text gives."""
NOBODY = ("", "none", "na")
"""Algorithms of numbers that belong to none."""


def seen(artifact: Artifact, scale: str) -> str:
    """What a figure shows, in words. Its numbers are left out where the cells are not there or are refused."""
    return " ".join([f"{artifact.title}.", *_layout(artifact), *_numbers(artifact, scale)])


def _layout(artifact: Artifact) -> Iterator[str]:
    draw = artifact.draw
    if isinstance(draw, Curves):
        yield f"Lines of {_plain(draw.ylabel)} over {_plain(draw.xlabel)}, one per {named(draw.series)}."
    if isinstance(draw, Sheet) and draw.axes:
        yield f"One panel per {' and '.join('setting' if label == 'panel' else named(label) for label in draw.axes)}."


def _plain(label: str) -> str:
    """The label of an axis in one line, without its formulas: the words before them say what they mean."""
    return " ".join(re.sub(r"\$[^$]*\$", "", label).split())


def _numbers(artifact: Artifact, scale: str) -> Iterator[str]:
    """The first metric that tells the series apart; where none does, every metric."""
    try:
        rows = _drawn(artifact, quotes.cells(f"{scale}/{artifact.paper}_{artifact.name}").rows)
    except UserError:  # what is refused stands above the scoreboard
        return
    series = _series(artifact, rows)
    by_metric = {str(metric): own for metric, own in rows.groupby("metric", sort=False)}
    found = {m: _ranges(by_metric[m], series) for m in dict.fromkeys([*_first(artifact), *by_metric]) if m in by_metric}
    telling = [m for m, ranges in found.items() if len(set(ranges.values())) > 1]
    for metric in telling[:1] or list(found)[:NAMED]:
        said = [f"{_name(artifact, series, value)}{text}" for value, text in found[metric].items()]
        more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
        what = _quantity(artifact, metric) + _over(by_metric[metric], series)
        yield f"{what[:1].upper()}{what[1:]}: {'; '.join(said[:NAMED])}{more}."


def _drawn(artifact: Artifact, rows: pd.DataFrame) -> pd.DataFrame:
    """The cells of what is drawn, as far as the layout says it: cells have side runs as well."""
    draw = artifact.draw
    wanted = dict(draw.only) if isinstance(draw, Sheet) else {}
    if isinstance(draw, Curves) and draw.order:
        wanted[draw.series] = draw.order
    for column, values in wanted.items():
        if column in rows:
            rows = rows[rows[column].isin(["" if v is None else str(v) for v in values])]
    return rows


def _series(artifact: Artifact, rows: pd.DataFrame) -> str:
    """The column that tells lines apart. The paper's marks have the colours of the lines: theirs comes first."""
    draw = artifact.draw
    if not isinstance(draw, Sheet):
        return "algorithm"
    column = draw.printed[0].series if draw.printed else draw.series
    return column if column in rows else "algorithm"


def _first(artifact: Artifact) -> Iterator[str]:
    """The metrics of an artifact, the important ones first: its measures in their order, then those that claims are
    about. (The order of cells is that of the alphabet.)"""
    for m in artifact.cells if isinstance(artifact.cells, tuple) else ():
        if isinstance(m, (Last, Window, Reach)):
            yield m.name or m.metric
    claims = _claims().get(artifact.paper)
    if claims and artifact.name in claims.artifacts:
        yield from claims.artifacts[artifact.name].metrics


@cache
def _claims() -> dict[str, ClaimsFile]:
    return {file.paper: file for file in claims_files()}


def _ranges(rows: pd.DataFrame, series: str) -> dict[str, str]:
    """Series -> its means over seeds, from the least to the greatest of its settings."""
    rows = rows.assign(bound=rows["censored"] == "True" if "censored" in rows else False)
    means = rows.groupby(_settings(rows), sort=False, dropna=False).agg(value=("value", "mean"), bound=("bound", "any"))
    found = {str(value): _range(own) for value, own in means.groupby(series, sort=False)}
    return dict(sorted(found.items(), key=lambda item: float(item[0]) if item[0].isdecimal() else 0))


def _settings(rows: pd.DataFrame) -> list[str]:
    return [c for c in map(str, rows) if c not in ("seed", "value", "censored", "bound", "text")]


def _range(means: pd.DataFrame) -> str:
    """The least and the greatest of the means that are known. A bound is no number: it is marked, and how many settings
    have one is said. A bound of zero says nothing: what is measured up to a bound is not negative."""
    known, bounds = (means.loc[means["bound"] == b, "value"] for b in (False, True))
    parts = []
    if known.notna().any():
        low, high = number(known.min()), number(known.max())
        parts.append(low if low == high else f"{low} to {high}")
    more = bounds[bounds > 0]
    others = {"not known": len(bounds) - len(more), "no value": int(known.isna().sum())}
    if len(more):
        others = {f"more than {number(more.min())}": len(more), **others}
    few = {
        text: f" in {count} of {len(means)} settings" * (count < len(means)) for text, count in others.items() if count
    }
    return ", ".join([*parts, *(text + of for text, of in few.items())])


def _over(rows: pd.DataFrame, series: str) -> str:
    """What the numbers of a metric are means and ranges of."""
    seeds = ", means over seeds" if rows["seed"].nunique() > 1 else ""
    several = rows[_settings(rows)].drop_duplicates()[series].duplicated().any()
    return seeds + (", least to greatest over settings" if several else "")


def _name(artifact: Artifact, series: str, value: str) -> str:
    """A series before its numbers: as it is printed, a number with what it is of."""
    if value in NOBODY:
        return ""
    called = named(value, _names(artifact))
    return f"{named(series)} = {called}: " if value[:1].isdecimal() else f"{called} "


def _names(artifact: Artifact) -> Mapping[str, str]:
    """How the picture prints values: its code may have names besides the artifact's."""
    code = artifact.draw.fill if isinstance(artifact.draw, Filled) else artifact.draw
    return {**artifact.names, **(code.options.get("names", {}) if isinstance(code, Code) else {})}


def _quantity(artifact: Artifact, metric: str) -> str:
    """A metric in words, with its unit if it is a share of 100; a name without words as the claims describe it."""
    claims = _claims().get(artifact.paper)
    known = claims.metrics.get(metric) if claims else None
    text = named(re.sub(r"_pct_(.+)$", r"_\1_pct", metric), artifact.names)
    if known and text == metric:
        text = known.text.partition(";")[0]
    return f"{text} (%)" if known and known.unit == "percent" and "%" not in text else text
