"""Figures in words, for those who cannot see them: what is drawn over what, which series, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from reproduce.declare.artifact import Artifact, Code, Curves, Filled, Last, Reach, Sheet, Window
from reproduce.errors import UserError
from reproduce.pages import quotes
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
        # Formulas go: the words before them say what they mean.
        y, x = (" ".join(re.sub(r"\$[^$]*\$", "", label).split()) for label in (draw.ylabel, draw.xlabel))
        yield f"Lines of {y} over {x}, one per {named(draw.series)}."
    if isinstance(draw, Sheet) and draw.axes:
        yield f"One panel per {' and '.join('setting' if label == 'panel' else named(label) for label in draw.axes)}."


def _numbers(artifact: Artifact, scale: str) -> Iterator[str]:
    """The first metric that tells the series apart; where none does, every metric."""
    try:
        rows = _drawn(artifact, quotes.cells(f"{scale}/{artifact.paper}_{artifact.name}").rows)
    except UserError:  # what is refused stands above the scoreboard
        return
    series = _series(artifact, rows)
    settings = [c for c in rows if c not in ("seed", "value", "censored", "text")]
    rows = rows.assign(bound=rows["censored"] == "True" if "censored" in rows else False)
    means = rows.groupby(settings, sort=False, dropna=False).agg(value=("value", "mean"), bound=("bound", "any"))
    by_metric = {str(metric): own.reset_index() for metric, own in means.groupby("metric", sort=False)}
    found = {
        metric: {str(value): _range(of_one) for value, of_one in by_metric[metric].groupby(series, sort=False)}
        for metric in dict.fromkeys([*_first(artifact), *by_metric])
        if metric in by_metric
    }
    telling = [metric for metric, ranges in found.items() if len(set(ranges.values())) > 1]
    for metric in telling[:1] or list(found)[:NAMED]:
        ordered = sorted(found[metric].items(), key=lambda item: float(item[0]) if item[0].isdecimal() else 0)
        said = [f"{_name(artifact, series, value)}{text}" for value, text in ordered]
        what = _quantity(artifact, metric)
        over = ", means over seeds" * (rows.loc[rows["metric"] == metric, "seed"].nunique() > 1)
        over += ", least to greatest over settings" * bool(by_metric[metric][series].duplicated().any())
        more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
        yield f"{what[:1].upper()}{what[1:]}{over}: {'; '.join(said[:NAMED])}{more}."


def _drawn(artifact: Artifact, rows: pd.DataFrame) -> pd.DataFrame:
    """The cells of what is drawn, as far as the layout says it: cells have side runs as well."""
    draw = artifact.draw
    wanted = dict(draw.only) if isinstance(draw, Sheet) else {}
    if isinstance(draw, Curves) and draw.order:
        wanted[draw.series] = draw.order
    for column in wanted.keys() & set(rows):
        rows = rows[rows[column].isin(["" if v is None else str(v) for v in wanted[column]])]
    return rows


def _series(artifact: Artifact, rows: pd.DataFrame) -> str:
    """The column that tells lines apart. The paper's marks have the colours of the lines: theirs comes first."""
    draw = artifact.draw
    column = (draw.printed[0] if draw.printed else draw).series if isinstance(draw, Sheet) else "algorithm"
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


def _range(means: pd.DataFrame) -> str:
    """The least and the greatest of the means that are known. A bound is no number: it is marked, and how many settings
    have one is said. A bound of zero says nothing: what is measured up to a bound is not negative."""
    known, bounds = (means.loc[means["bound"] == b, "value"] for b in (False, True))
    more = bounds[bounds > 0]
    parts = []
    if known.notna().any():
        parts.append(" to ".join(dict.fromkeys((number(known.min()), number(known.max())))))
    for text, count in (
        (f"more than {number(more.min())}" if len(more) else "", len(more)),
        ("not known", len(bounds) - len(more)),
        ("no value", int(known.isna().sum())),
    ):
        if count:
            parts.append(text + (f" in {count} of {len(means)} settings" if count < len(means) else ""))
    return ", ".join(parts)


def _name(artifact: Artifact, series: str, value: str) -> str:
    """A series before its numbers, as the picture prints it; a number with what it is of."""
    if value in NOBODY:
        return ""
    code = artifact.draw.fill if isinstance(artifact.draw, Filled) else artifact.draw
    own = code.options.get("names", {}) if isinstance(code, Code) else {}
    called = named(value, {**artifact.names, **own})
    return f"{named(series)} = {called}: " if value[:1].isdecimal() else f"{called} "


def _quantity(artifact: Artifact, metric: str) -> str:
    """A metric in words, with its unit if it is a share of 100; a name without words as the claims describe it."""
    claims = _claims().get(artifact.paper)
    known = claims.metrics.get(metric) if claims else None
    text = named(re.sub(r"_pct_(.+)$", r"_\1_pct", metric), artifact.names)
    if known and text == metric:
        text = known.text.partition(";")[0]
    return f"{text} (%)" if known and known.unit == "percent" and "%" not in text else text
