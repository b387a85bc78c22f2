"""Printed numbers beside ours: which they are, joined by the columns of `reported/<table>.csv`.

Settings, sizes of networks, costs of a machine and ratios of other rows are no results and are left out, and so are
printed numbers that an artifact doubts.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduce import papers, store
from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError
from reproduce.report.entries import doubted
from reproduce.report.metrics import over_seeds, quantile
from reproduce.report.names import canonical
from reproduce.report.tables import reported

UNITS = {
    "accuracy_after_transition_pct": "%", "accuracy_first10_rounds_pct": "%", "accuracy_after_100_rounds": "%",
    "test_accuracy_percent": "%", "rounds_to_target": "rounds", "rounds_to_60": "rounds",
    "computation_time_to_target_s": "seconds", "time_to_target_s": "seconds",
}  # fmt: skip
"""The metrics that are results, and their units."""
DECLARED = "as declared"
"""What stands in the column `reading` of the numbers of a table as the paper says it."""
POINTS, SHARE = 1.0, 0.1
"""A number agrees within one point of percent, or within a tenth of what is printed."""
RESULTS = Path("results/paper/cells")


@cache
def artifact(paper: str, table: str) -> Artifact | None:
    return next((a for a in papers.artifacts(paper) if a.name == table), None)


@cache
def printed(paper: str, table: str) -> pd.DataFrame:
    """The results that a table prints and that are not doubted: its labels as canonical text, `metric`, `unit`,
    `setting` (the labels in a line), `series` (what is compared), `own` (is that what the paper proposes?), `printed`,
    `printed_bound` (a target not reached)."""
    found, of = reported(paper, table), artifact(paper, table)
    if found is None or of is None:
        raise UserError(f"reproduce/papers/{paper}/reported has no {table}.csv, or no artifact has that name")
    found = found[found["metric"].isin(list(UNITS)) & found["paper"].notna() & ~doubted(of, found)]
    labels = [c for c in found if not str(c).startswith("paper")]
    texts = found[labels].map(canonical)
    rest = texts.drop(columns=[of.series, "metric"])
    told = rest.apply(lambda c: c.mask(c.str.fullmatch(r"[\d.]+"), f"{c.name} " + c))  # "70" alone says nothing
    return texts.assign(
        paper=paper,
        table=table,
        unit=texts["metric"].map(UNITS),
        setting=told.agg(" ".join, axis=1) if len(told) else "",
        series=texts[of.series],
        own=texts[of.series].isin(papers.proposed(paper)),
        printed=found["paper"],
        printed_bound=found["paper_censored"],
    )


def join(paper: str, table: str, cells: pd.DataFrame) -> pd.DataFrame:
    """Printed numbers beside ours: the columns of `printed`, `reading`, `ours` (mean over seeds), `std`, `seeds`,
    `bound`, and those of `compared`. A printed number that no cell has is there once, with ours NaN.

    cells: as text (`store.cells`). With a column `reading` a printed number has a row for each of its readings.
    """
    theirs, of = printed(paper, table), artifact(paper, table)
    described = () if of is None else of.labels
    match = [c for c in theirs.columns[: list(theirs.columns).index("paper")] if c not in described]
    if lacking := [c for c in (*match, "seed", "value") if c not in cells]:
        raise UserError(f"the cells of {paper}/{table} lack the column '{lacking[0]}' of reported/{table}.csv")
    by = [*match, *(["reading"] if "reading" in cells else [])]
    mine = cells[cells["metric"].isin(list(UNITS))]
    # Cells repeat few values: each is spelled once.
    texts = {c: mine[c].map({v: canonical(v) for v in mine[c].unique()}) for c in match}
    if (twice := mine.assign(**texts).duplicated([*by, "seed"])).any():
        raise UserError(f"the cells of {paper}/{table} have two numbers for {dict(mine[twice].iloc[0])}")
    flags = mine["censored"].eq("True") if "censored" in mine else False
    numbers = mine[by].assign(
        **texts, seed=mine["seed"].astype(int), value=pd.to_numeric(mine["value"]), censored=flags
    )
    ours = over_seeds(numbers).rename(columns={"mean": "ours", "censored": "bound"})
    both = theirs.merge(ours[[*by, "ours", "std", "seeds", "bound"]], "left", on=match)
    both = both.assign(bound=both["bound"].eq(True), reading=both.get("reading", DECLARED))
    return compared(both)


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """With `gap` (points of percent, else the logarithm of ours over printed; NaN where one says nothing of the other),
    `agrees`, and `inside`: whether the printed number lies in the 95 % prediction interval of one more run of ours
    (None: no interval, with bounds or fewer than two seeds)."""
    ours, print_, bound, other = (rows[name] for name in ("ours", "printed", "bound", "printed_bound"))
    percent = rows["unit"] == "%"
    # Two lower bounds say nothing of each other, and no more does one that is below the other's number.
    ours = ours.mask((bound & (other | (ours <= print_))) | (other & (ours >= print_)))
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = (ours - print_).where(percent, np.log(ours / print_))
    exact, n = ~(bound | other), rows["seeds"].fillna(0)
    # The next run differs from the mean of n by t(n - 1) s sqrt(1 + 1 / n) at most.
    wide = [quantile(0.95, int(k) - 1) * (1 + 1 / k) ** 0.5 if k > 1 else np.nan for k in n]
    inside = ((ours - print_).abs() <= rows["std"] * wide).astype(object)
    near = (ours - print_).abs() <= np.where(percent, POINTS, SHARE * print_)
    return rows.assign(gap=gap, agrees=near & exact, inside=inside.where(exact & (n > 1), None))


def of_table(paper: str, table: str, results: Path = RESULTS) -> pd.DataFrame:
    """The numbers of a table as declared."""
    found = read(paper, table, results)
    if found is None or found.empty:
        return compared(printed(paper, table).assign(ours=np.nan, std=np.nan, seeds=0, bound=False, reading=DECLARED))
    return join(paper, table, found)


def read(paper: str, name: str, results: Path = RESULTS) -> pd.DataFrame | None:
    """The cells of an artifact as text; None where there are none that can be used."""
    path = results / f"{paper}_{name}.csv"
    try:
        return store.cells(path)
    except store.Unusable as error:
        if path.exists():
            store.say(path, error)
        return None


def tables(paper: str) -> list[str]:
    """The tables of a paper that print results, in its order."""
    files = [f.stem for f in Path(papers.__path__[0], paper, "reported").glob("table*.csv")]
    return [t for t in sorted(files, key=papers.natural) if artifact(paper, t) and len(printed(paper, t))]


def rms(rows: Any) -> float:
    """Root mean square of the gaps: points of percent, or a logarithm."""
    return float((rows["gap"] ** 2).mean() ** 0.5)
