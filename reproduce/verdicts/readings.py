"""Where printed numbers come from, `papers/<key>/readings.yaml`: readings of a paper that give them, how near they come
on numbers that they were not chosen on, and findings from print alone.

The cells of the artifact `readings` of a paper have the columns `table`, `reading` (a text that names one combination
of choices), those of `reported/<table>.csv` without its numbers, `seed` and `value`. The file:

    short: What gives the printed numbers, in a sentence for README.
    readings:
    - tables: [table8, table9]         # of this paper
      where: {algorithm: [fedavg]}     # rows, as in the `for` of a claim; `table` is a column, too
      says: Other sessions, at a constant rate.
      reading: ["constant, *"]         # from which readings of the cells it is chosen; * stands for anything
      blocks: [label_distribution]     # cross-fit: for each value the reading that is nearest on the others
      within: [dataset]                # the choice is made for each value of these columns by itself
      chosen_on: {model: [lr]}         # in place of blocks: rows on which it is chosen (without: chosen elsewhere, it is
      tested_on: {model: [cnn2]}       # one reading), and rows on which it is tested
      claims: [t8_best_everywhere]     # judged under it as well, never by it alone: where it turns one, that depends
      tried: What was tried.           # no reading gives these numbers; with `reading` the nearest is shown as such
      sure: How sure that is.          # and `stays`, what is not explained; `impossible`, what no run can print
    findings:                          # each is a sentence that `papers/<key>/findings.py` makes of `reported/*.csv`
    - id: clock                        # by its function `clock()`
      sure: Certain.
      otherwise: What else would explain it.

`sure`, `stays`, `impossible`, `tried` and `otherwise` may ask for numbers as the templates of pages do. A reading is
the nearest by the root mean square of the gaps (`numbers.compared`) over the printed numbers that all in question have.
A file that is not so ends in a UserError that names the file and the entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Code, function
from reproduce.declare.experiment import PACKAGE
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.verdicts import numbers
from reproduce.verdicts.claims import CONDITIONS, TEXT, several
from reproduce.verdicts.observations import matches

if TYPE_CHECKING:
    import pandas as pd

Where = Mapping[str, Any]
KEYS = ["table", "setting", "series", "metric"]
"""What tells the printed numbers of a paper apart."""


@dataclass(frozen=True)
class Reading:
    """An entry of `readings`, see above."""

    tables: Sequence[str]
    says: str
    sure: str
    where: Where = field(default_factory=dict)
    reading: Sequence[str] = ()
    blocks: Sequence[str] = ()
    within: Sequence[str] = ()
    chosen_on: Where | None = None
    tested_on: Where | None = None
    claims: Sequence[str] = ()
    tried: str = ""
    stays: str = ""
    impossible: str = ""


@dataclass(frozen=True)
class Finding:
    """An entry of `findings`. says: a sentence with its numbers, from print alone."""

    id: str
    says: str
    sure: str
    otherwise: str


@dataclass(frozen=True)
class Register:
    """The file of a paper."""

    short: str = ""
    readings: Sequence[Reading] = ()
    findings: Sequence[Finding] = ()


NAMES = several(TEXT)
ENTRY = record(
    ("tables", "says", "sure"),
    **dict.fromkeys(("tables", "reading", "blocks", "within", "claims"), NAMES),
    **dict.fromkeys(("where", "chosen_on", "tested_on"), CONDITIONS),
    **dict.fromkeys(("says", "sure", "tried", "stays", "impossible"), TEXT),
) | {
    "anyOf": [{"required": ["reading"]}, {"required": ["tried"]}],
    "dependentRequired": {
        "chosen_on": ["tested_on"],
        **{key: ["reading"] for key in ("blocks", "within", "tested_on", "claims")},
    },
    "if": {"required": ["reading"]},
    "then": {"oneOf": [{"required": ["blocks"]}, {"required": ["tested_on"]}]},
}
FINDING = record(("id", "sure", "otherwise"), **dict.fromkeys(("id", "sure", "otherwise"), TEXT))
FILE = record(("short",), short=TEXT, readings=several(ENTRY), findings=several(FINDING))


def register(paper: str, folder: Path = PACKAGE / "papers") -> Register:
    """The file of a paper; nothing where it has none. UserError if it is not as this module says."""
    path = folder / paper / "readings.yaml"
    if not path.is_file():
        return Register()
    raw = read_yaml(path)
    if said := mismatch(raw, FILE):
        raise UserError(f"{path}: {said}")
    findings = [Finding(says=function(paper, Code(f"findings:{f['id']}"))(), **f) for f in raw.get("findings", [])]
    return Register(raw["short"], [Reading(**entry) for entry in raw.get("readings", [])], findings)


@dataclass(frozen=True)
class Held:
    """A reading on the printed numbers that it was not chosen on. chosen: (conditions of rows, the reading that they
    have); before, after: their numbers as declared and under it, row by row."""

    of: Reading
    chosen: Sequence[tuple[Where, str]]
    before: pd.DataFrame
    after: pd.DataFrame


def held(paper: str, of: Reading, results: Path = numbers.RESULTS) -> Held | None:
    """None where there is no reading, or no cell of it. UserError where an entry asks for what is not there."""
    import pandas as pd

    cells = numbers.read(paper, "readings", results)
    if cells is None or not of.reading:
        return None
    cells = cells[[any(fnmatchcase(name, wanted) for wanted in of.reading) for name in cells["reading"]]]
    there = [(table, mine) for table in of.tables if len(mine := cells[cells["table"] == table])]
    if not there:
        return None
    try:
        rows = pd.concat([numbers.join(paper, table, mine) for table, mine in there], ignore_index=True)
        rows = selected(rows[rows["ours"].notna()], of.where)
        chosen = choose(of, rows)
    except UserError as error:
        raise UserError(f"reproduce/papers/{paper}/readings.yaml, '{of.says}': {error}") from error
    after = pd.concat([selected(rows, {**where, "reading": name}) for where, name in chosen])
    declared = pd.concat([numbers.of_table(paper, table, results) for table, _ in there], ignore_index=True)
    both = after[KEYS].merge(declared, "left", on=KEYS).set_axis(after.index)
    speak = after["gap"].notna() & both["gap"].notna()
    return Held(of, chosen, both[speak], after[speak])


def selected(rows: pd.DataFrame, where: Where) -> pd.DataFrame:
    """The rows that fulfil conditions, as those of a `for` of a claim."""
    for column, condition in where.items():
        if column not in rows:
            raise unknown("column", column, map(str, rows))
        rows = rows[matches(rows[column], condition)]
    return rows


def choose(of: Reading, rows: pd.DataFrame) -> list[tuple[Where, str]]:
    """Conditions of rows -> the reading that is nearest on other rows."""
    found = list[tuple[Where, str]]()
    for part in values(rows, of.within):
        mine = selected(rows, part)
        for block in values(mine, of.blocks) if of.blocks else [of.tested_on or {}]:
            tested = selected(mine, block)
            others = mine.drop(tested.index) if of.blocks else selected(mine, of.chosen_on or {})
            found.append(({**block, **part}, nearest(of, others, tested)))
    return found


def values(rows: pd.DataFrame, columns: Sequence[str]) -> list[Where]:
    """The combinations of values of columns, as conditions."""
    for column in columns:
        selected(rows, {column: []})  # an error for one that is not there
    found = rows[[*columns]].drop_duplicates().to_dict("records") if columns else [{}]
    return [{str(k): v for k, v in row.items()} for row in found]


def nearest(of: Reading, others: pd.DataFrame, tested: pd.DataFrame) -> str:
    """Of the readings that the rows to be tested have, the one with the least root mean square of the gaps on others,
    over the printed numbers there that all of them have."""
    names = tested["reading"].unique()
    if not of.blocks and of.chosen_on is None and len(names) == 1:
        return str(names[0])
    if of.blocks or of.chosen_on is not None:
        others = others[others["reading"].isin(names)]
        gaps = others.pivot(index=KEYS, columns="reading", values="gap").dropna()
        if len(gaps) and others["unit"].nunique() == 1 and others.index.intersection(tested.index).empty:
            return str((gaps**2).mean().idxmin())
    what = f"{len(names)} readings for {len(tested)} rows"
    raise UserError(f"{what}: to choose one needs other rows, of one unit, that all of them have")
