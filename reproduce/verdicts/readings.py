"""Printed numbers beside ours, and where they come from: the readings of `papers/<key>/readings.yaml`, which
`docs/claims.md` shows by example, and how near each comes on numbers that it was not chosen on.

Settings, sizes of networks, costs of a machine and ratios of other rows are no results and are left out, and so are
printed numbers that an artifact doubts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduce import store
from reproduce.declare.artifact import Artifact
from reproduce.declare.paper import TEXT, artifacts, papers, printed_settings
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.report.entries import doubted
from reproduce.report.metrics import over_seeds, quantile
from reproduce.report.names import canonical
from reproduce.report.tables import reported
from reproduce.verdicts.claims import CONDITIONS, several
from reproduce.verdicts.observations import matches

UNITS = {"percent": "%", "s": "seconds"}
"""Of metrics, as they are called here; others as they are."""
DECLARED = "as declared"
"""The text in the column `reading` of the numbers of a table as the paper says it."""
POINTS, SHARE = 1.0, 0.1
"""A number agrees within one point of percent, or within a tenth of what is printed."""
RESULTS = Path("results/paper/cells")
KEYS = ["table", "setting", "series", "metric"]
"""The columns that identify a published number of a paper."""
Rows = pd.DataFrame
Where = Mapping[str, Any]

# --- printed numbers and ours -----------------------------------------------------------------------------------------


@cache
def _declared(paper: str, table: str) -> tuple[Rows, Artifact]:
    rows, of = reported(paper, table), next((a for a in artifacts(paper) if a.name == table), None)
    if rows is None or of is None:
        raise UserError(f"{paper} has no artifact {table} with a file reported/{table}.csv")
    return rows, of


def columns(paper: str, table: str) -> list[str]:
    """The columns by which printed numbers are joined: those that tell them apart, `metric` too."""
    frame, of = _declared(paper, table)
    return [str(c) for c in frame if not str(c).startswith("paper") and c not in of.labels]


def spelled(frame: Rows, columns: Iterable[str]) -> dict[str, Any]:
    """Columns as canonical text; each value, of which there are few, is spelled once."""
    return {c: frame[c].map({v: canonical(v) for v in frame[c].unique()}) for c in columns}


@cache
def units(paper: str) -> Mapping[str, str]:
    """The metrics that are results, compared with print, and their units."""
    metrics = papers()[paper].metrics.items()
    return {name: UNITS.get(m.unit, m.unit) for name, m in metrics if m.sign and m.compared}


@cache
def printed(paper: str, table: str) -> Rows:
    """The results that a table prints and that are not doubted: its columns as canonical text, `unit`, `setting` (the
    labels in a line), `series` (what is compared), `own` (is that what the paper proposes?), `printed`, `printed_bound`
    (a target not reached)."""
    rows, of = _declared(paper, table)
    rows = rows[rows["metric"].isin(list(units(paper))) & rows["paper"].notna() & ~doubted(of, rows)]
    texts = rows[columns(paper, table)].assign(**spelled(rows, columns(paper, table)))
    rest = texts.drop(columns=[of.series, "metric"])
    phrases = rest.apply(lambda c: c.mask(c.str.fullmatch(r"[\d.]+"), f"{c.name} " + c))  # "70" alone says nothing
    more = {"setting": phrases.agg(" ".join, axis=1) if len(phrases) else "", "series": texts[of.series]}
    proposed, unit = texts[of.series].isin(papers()[paper].proposed), texts["metric"].map(units(paper))
    numbers = {"printed": rows["paper"], "printed_bound": rows["paper_censored"]}
    return texts.assign(table=table, unit=unit, own=proposed, **more, **numbers)


def tables(paper: str) -> list[str]:
    """The tables of a paper that print results, in its order."""
    names = (a.name for a in artifacts(paper) if a.name.startswith("table") and printed_settings(*a.id.split("/")))
    return [name for name in names if len(printed(paper, name))]


def read(paper: str, name: str, results: Path | None = None) -> Rows:
    """The cells of an artifact as text; no rows where there are none that can be used."""
    path = (results or RESULTS) / f"{paper}_{name}.csv"
    try:
        return store.cells(path)
    except store.Unusable as error:
        if path.exists():
            store.say(path, error)
        return pd.DataFrame()


def of_table(paper: str, table: str, results: Path | None = None) -> Rows:
    """The numbers of a table as declared, those that were not run with ours NaN."""
    return beside(paper, table, read(paper, table, results))


def beside(paper: str, table: str, cells: Rows) -> Rows:
    """Printed numbers and ours: the columns of `printed`, `reading`, `ours` (mean over seeds), `std`, `seeds`, `bound`,
    `gap` (see `gaps`), `agrees`, `inside`: does the printed number lie in the 95 % prediction interval of one more run
    of ours, of which `half` is half (None and NaN: with bounds, or fewer than two seeds)?

    cells: as text; with a column `reading` a printed number has a row for each of them.
    """
    match = columns(paper, table)
    cells = cells if len(cells) else pd.DataFrame(columns=[*match, "seed", "value"], dtype=str)
    if lacking := [c for c in (*match, "seed", "value") if c not in cells]:
        raise UserError(f"the cells of {paper}/{table} lack the column '{lacking[0]}'")
    rows, by = cells[cells["metric"].isin(list(units(paper)))], [*match, *(["reading"] if "reading" in cells else [])]
    bound = rows["censored"].eq("True") if "censored" in rows else False
    rows = rows[[*by, "seed", "value"]].assign(**spelled(rows, match), censored=bound)
    if (twice := rows.duplicated([*by, "seed"])).any():
        raise UserError(f"the cells of {paper}/{table} have two numbers for {dict(rows.loc[twice, by].iloc[0])}")
    ours = over_seeds(rows.assign(seed=rows["seed"].astype(int))).rename(columns={"mean": "ours", "censored": "bound"})
    both = printed(paper, table).merge(ours[[*by, "ours", "std", "seeds", "bound"]], "left", on=match)
    both = both.assign(bound=both["bound"].eq(True), seeds=both["seeds"].fillna(0).astype(int))
    off, exact = (both["ours"] - both["printed"]).abs(), ~(both["bound"] | both["printed_bound"])
    # The next run differs from the mean of n by t(n - 1) s sqrt(1 + 1 / n) at most.
    half = both["std"] * [quantile(0.95, n - 1) * (1 + 1 / n) ** 0.5 if n > 1 else np.nan for n in both["seeds"]]
    half, near = half.where(exact), off <= np.where(both["unit"] == "%", POINTS, SHARE * both["printed"])
    checks = {"half": half, "inside": (off <= half).astype(object).where(half.notna(), None), "agrees": near & exact}
    return both.assign(reading=both.get("reading", DECLARED), gap=gaps(both), **checks)


def gaps(rows: Any) -> np.ndarray:
    """Ours minus the printed number in points of percent, else the logarithm of their ratio; NaN where one says nothing
    of the other: two lower bounds, or one that is below the other's number."""
    names = ("ours", "printed", "bound", "printed_bound", "unit")
    ours, print_, bound, other, unit = (np.asarray(rows[name]) for name in names)
    idle = (bound & (other | (ours <= print_))) | (other & (ours >= print_))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(idle, np.nan, np.where(unit == "%", ours - print_, np.log(ours / print_)))


# --- readings ---------------------------------------------------------------------------------------------------------

READING = record(
    ("tables", "says", "sure"),
    **dict.fromkeys(("tables", "reading", "blocks", "within", "claims"), several(TEXT)),
    **dict.fromkeys(("where", "chosen_on", "tested_on"), CONDITIONS),
    **dict.fromkeys(("says", "sure", "tried", "stays", "impossible"), TEXT),
) | {
    "anyOf": [{"required": ["reading"]}, {"required": ["tried"]}],
    "dependentRequired": {"chosen_on": ["tested_on"]}
    | {key: ["reading"] for key in ("blocks", "within", "tested_on", "claims")},
    "if": {"required": ["reading"]},
    "then": {"oneOf": [{"required": ["blocks"]}, {"required": ["tested_on"]}]},
}
FINDING = record(("id", "sure", "otherwise"), **dict.fromkeys(("id", "sure", "otherwise"), TEXT))
FILE = record(("summary",), summary=TEXT, readings=several(READING), findings=several(FINDING))


def register(folder: Path) -> dict[str, Any]:
    """The file of the paper in a folder; nothing where it has none. UserError if it is not as `FILE` says."""
    path = folder / "readings.yaml"
    raw = read_yaml(path) if path.is_file() else {"summary": "–"}
    if problem := mismatch(raw, FILE):
        raise UserError(f"{path}: {problem}")
    return {"readings": [], "findings": [], **raw}


@dataclass(frozen=True)
class Held:
    """A reading on the printed numbers that it was not chosen on. of: its entry; cells: those of all readings in
    question, with canonical labels; chosen: (conditions of rows, the reading that they have); before, after: the
    printed numbers there as declared and under it, row by row."""

    of: Where
    cells: Rows
    chosen: Sequence[tuple[Where, str]]
    before: Rows
    after: Rows


def held(paper: str, entries: Iterable[Where], results: Path | None = None) -> list[Held]:
    """The entries that have a reading with cells, as `Held`. UserError where an entry asks for what is not there."""
    cells, all_held = read(paper, "readings", results), []
    for of in entries if len(cells) else ():
        names = [n for n in cells["reading"].unique() if any(fnmatchcase(n, each) for each in of.get("reading", ()))]
        rows = cells[cells["reading"].isin(names) & cells["table"].isin(of["tables"])]
        try:
            all_held += _held(paper, of, rows, results) if len(rows) else []
        except UserError as error:
            raise UserError(f"{papers()[paper].place}/readings.yaml, '{of['says']}': {error}") from error
    return all_held


def _held(paper: str, of: Where, cells: Rows, results: Path | None) -> list[Held]:
    """The `Held` of an entry in a list; empty where no cell fulfils its conditions."""
    tables = cells["table"].unique()
    cells = cells.assign(**spelled(cells, dict.fromkeys(c for t in tables for c in columns(paper, t) if c in cells)))
    rows = pd.concat([beside(paper, t, cells[cells["table"] == t]) for t in tables], ignore_index=True)
    rows = selected(rows[rows["ours"].notna()], of.get("where", {}))
    if rows.empty:
        return []
    chosen = choose(of, rows)
    after = pd.concat([selected(rows, {**where, "reading": name}) for where, name in chosen])
    declared = pd.concat([of_table(paper, table, results) for table in tables])
    before = after[KEYS].merge(declared, "left", on=KEYS).set_axis(after.index)
    comparable = after["gap"].notna() & before["gap"].notna()
    return [Held(of, cells, chosen, before[comparable], after[comparable])]


def choose(of: Where, rows: Rows) -> list[tuple[Where, str]]:
    """Conditions of rows -> the reading that is nearest on other rows."""
    chosen = list[tuple[Where, str]]()
    for part in values(rows, of.get("within", ())):
        of_part = selected(rows, part)
        for block in values(of_part, of["blocks"]) if "blocks" in of else [of["tested_on"]]:
            tested = selected(of_part, block)
            others = of_part.drop(tested.index) if "blocks" in of else selected(of_part, of.get("chosen_on", {}))
            single = tested["reading"].nunique() == 1 and not {"blocks", "chosen_on"} & {*of}
            chosen.append(({**block, **part}, str(tested["reading"].iloc[0]) if single else nearest(others, tested)))
    return chosen


def nearest(others: Rows, tested: Rows) -> str:
    """Of the readings with most of the tested rows, the one with the least root mean square of the gaps on others, over
    the printed numbers that all of them have."""
    names = tested["reading"].mode()
    wide = others[others["reading"].isin(names)].pivot(index=KEYS, columns="reading", values="gap").dropna()
    if wide.empty or others["unit"].nunique() > 1 or not others.index.intersection(tested.index).empty:
        what = f"{len(names)} readings for {len(tested)} rows"
        raise UserError(f"{what}: to choose one needs other rows, of one unit, that all of them have")
    return str((wide**2).mean().idxmin())


def values(rows: Rows, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The combinations of values of columns, as conditions."""
    selected(rows, {column: [] for column in columns})  # an error for one that is not there
    records: Any = rows[[*columns]].drop_duplicates().to_dict("records") if columns else [{}]
    return list(records)


def selected(rows: Rows, where: Where) -> Rows:
    """The rows that fulfil conditions, as those of a `for` of a claim."""
    for column, condition in where.items():
        if column not in rows:
            raise unknown("column", column, map(str, rows))
        rows = rows[matches(rows[column], condition)]
    return rows


def under(artifact: str, declared: Rows, held: Iterable[Held]) -> Rows:
    """The cells of "paper/table1", as text, with those of readings in the place of the declared ones. Columns that the
    print does not have are those of a declared cell with the same printed columns."""
    paper, _, table = artifact.partition("/")
    match, fixed = columns(paper, table), {"table": table}
    each = ((h, {**h.of.get("where", {}), **where, **fixed, "reading": name}) for h in held for where, name in h.chosen)
    new = pd.concat([selected(h.cells, where) for h, where in each])
    new = new[[*match, *(c for c in ("seed", "value", "censored") if c in new)]].drop_duplicates([*match, "seed"])
    rows = declared.assign(**spelled(declared, match))
    remaining = rows.merge(new[match].drop_duplicates(), "left", indicator=True)["_merge"].eq("left_only")
    more = rows[[*match, *(c for c in rows if c not in new)]].drop_duplicates(match)
    return pd.concat([rows[remaining.to_numpy()], new.merge(more, "left", on=match)], ignore_index=True)
