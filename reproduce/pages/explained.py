"""Tables whose numbers agree with the print no better than by chance: what else was tried, and how near that comes.

Nothing is trained: the curves of the paper scale are read in other ways (`Reading`), or by another window of the cells.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pandas as pd

from reproduce.declare.artifact import Measure, Window
from reproduce.pages import agreement
from reproduce.pages.choices import Register
from reproduce.pages.quotes import stored
from reproduce.papers import artifacts
from reproduce.report import formats, metrics, render, tables
from reproduce.report.metrics import Reading, read_as
from reproduce.text import counted, markdown

READINGS = {
    "the best evaluation": Reading(best=True),
    "the last evaluation": Reading(tail=1),
    "the mean of the last ten": Reading(tail=10),
    "first hit of the raw curve": Reading(hit=1),
    "first hit of the mean of five evaluations": Reading(hit=5),
    "first hit of the mean curve": Reading(pooled=True),
}
WINDOWS = [(first, first + length - 1) for first in (0, 1, 6, 11) for length in (5, 10)]
"""Rounds of a session that an accuracy after a transition may be the mean of; 0 is the end of the session before."""


@cache
def unexplained() -> dict[str, pd.DataFrame]:
    """Table -> its numbers at paper scale, of those that do not agree more often than 97.5 % of deals do."""
    found = agreement.numbers("paper")
    groups = found[found["ours"].notna()].groupby(["paper", "table"], sort=False)
    return {
        f"{paper}/{table}": mine for (paper, table), mine in groups if mine["agrees"].mean() <= agreement.null(mine)[1]
    }


def tried(table: str) -> list[tuple[str, pd.DataFrame]]:
    """Ways to read a table -> its numbers, where some of ours are others then; of the windows the nearest."""
    artifact = next(a for a in artifacts() if a.id == table)
    histories, paper = stored(artifact, "paper"), tables.reported(artifact.paper, artifact.name)
    measures = [] if callable(artifact.cells) else artifact.cells

    def numbers(reading: Reading, cells: Sequence[Measure]) -> pd.DataFrame:
        made = replace(artifact, cells=tuple(cells)) if cells else artifact
        with read_as(reading):
            found = render.check(made, metrics.cells(made, histories))
        text = io.StringIO(formats.csv(tables.build(made, found, paper, "paper")))
        read = agreement.of(made.paper, made.name, pd.read_csv(text, keep_default_na=False, dtype=str))
        return read[read["ours"].notna()]

    usual = numbers(Reading(), measures)
    windows = [m for m in measures if isinstance(m, Window) and (m.name or m.metric) in set(usual["metric"])]
    # Seeds of other lengths ended at their targets: they say nothing of another hit.
    run = metrics.label_columns(histories.frame)
    lengths = histories.frame.groupby([*run, "seed"], dropna=False)["round"].max()
    early = bool((lengths.groupby(run, dropna=False).nunique() > 1).any())
    read = {k: r for k, r in READINGS.items() if not (windows or (early and (r.hit or r.pooled)))}
    ways = [(said, numbers(reading, measures)) for said, reading in read.items()]
    moved = {}
    for first, last in WINDOWS if windows else ():
        try:
            moved[first, last] = numbers(Reading(), [replace(m, first=first, last=last) for m in windows])
        except ValueError:  # rounds that were not evaluated
            continue
    if moved:
        first, last = max(moved, key=lambda w: moved[w]["agrees"].mean())
        ways.append((f"of {len(moved)} windows the nearest: rounds {first} to {last}", moved[first, last]))
    return [(said, found) for said, found in ways if len(found) and not found["ours"].equals(usual["ours"])]


def section(register: Register) -> str:
    """Markdown: a line for each other way to read a paper's tables that agree no better than by chance, and how many
    open choices no run compares with the print; "" if there is no such table."""
    mine = [table for table in unexplained() if table.startswith(f"{register.paper}/")]
    if not mine:
        return ""
    names = [table.partition("/")[2] for table in mine]
    ways = [(name, *way) for name, table in zip(names, mine, strict=True) for way in tried(table)]
    rows = [[name, said, *agreement.near(found)] for name, said, found in ways]
    beside = [c for c in register.choices if any(e and e.cells.startswith("paper/") for e in c.options.values())]
    stand_in = [c for c in register.choices if c not in beside and any(c.options.values())]
    never = len(register.choices) - len(beside) - len(stand_in)
    first = f"No better than by chance: {', '.join(names)}"
    first += (
        f". Read otherwise, the same curves come as near as this:\n\n{markdown(HEAD, rows, '::--')}\n\n"
        if rows
        else ". "
    )
    return (
        f"{first}Other answers to {counted(len(stand_in), 'open choice')} were run at reduced scale only, beside no "
        f"print; to {never} none was run."
    )


HEAD = ("table", "read as", "agree", "median distance")
