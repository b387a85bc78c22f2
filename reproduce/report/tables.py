"""A paper's table from per-seed cells: mean and spread over seeds, the paper's number beside it, the paper's layout.

`build` gives a `Table` that knows nothing about Markdown or LaTeX; `reproduce.report.formats` prints it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from reproduce.declare.artifact import NUMBERS, Artifact
from reproduce.declare.paper import papers
from reproduce.report import entries
from reproduce.report.entries import Entry, Text
from reproduce.report.metrics import over_seeds
from reproduce.report.names import canonical, heading, pretty, spelled

MEASURED = ("mean", "std", "seeds", "paper", "paper_std", "difference", "censored", "status")
ABSENT: Mapping[str, Any] = {"paper": np.nan, "paper_std": np.nan, "paper_text": "", "paper_censored": False}
"""Of the paper's number where it prints none."""

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table ready to be printed.

    frame: one row per cell in the paper's order: settings, algorithm, metric, then `MEASURED`, `paper_censored`, and
        `text`, `paper_text` where there are cells in words. `status` is "run", "no value" or "not run".
    rows, columns: the labels of the lines and columns, one string per name in the artifact's `rows` / `columns`.
    body: (index of the row, index of the column) -> entry; places that are empty in the paper too are absent.
    signs: what signs in the body mean. notes: sentences.
    """

    artifact: Artifact
    scale: str
    frame: pd.DataFrame
    rows: tuple[Labels, ...]
    columns: tuple[Labels, ...]
    body: Mapping[tuple[int, int], Entry]
    caption: tuple[str, ...]
    signs: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def lines(self, row: int) -> list[list[Text]]:
        """The lines of a row: its labels, in the first of them, what each line is, and the texts of all columns."""
        entry_lines = entries.lines([self.body.get((row, j)) for j in range(len(self.columns))])
        elsewhere = not entries.comparable(self.artifact, self.scale)
        names = {entries.PAPER: entries.ELSEWHERE, entries.BOTH: entries.OURS} if elsewhere else {}
        first, blank = [Text(label(name, self.artifact.names)) for name in self.rows[row]], Text("")
        return [
            [*([blank] * len(first) if n else first), *[Text(names.get(kind, kind))] * self.kinds, *texts]
            for n, (kind, texts) in enumerate(entry_lines)
        ]

    @property
    def stubs(self) -> list[str]:
        """The headings before those of the columns."""
        return [*(heading(n, self.artifact.names) for n in self.artifact.rows), *[""] * self.kinds]

    @property
    def heads(self) -> list[list[tuple[str, int]]]:
        """The headings of the columns, level by level, each with the number of columns that it stands over."""
        levels = []
        for level, name in enumerate(self.artifact.columns, 1):
            groups = [[*group] for _, group in groupby(self.columns, key=lambda labels: labels[:level])]
            levels.append([(column_heading(group[0][level - 1], name, self), len(group)) for group in groups])
        return levels

    @cached_property
    def kinds(self) -> bool:
        """Tells whether lines need names: not if the paper prints nothing."""
        return any(entries.PAPER in entry for entry in self.body.values())


def reported(paper: str, name: str) -> pd.DataFrame | None:
    """The numbers printed in the paper, or None if there are none for this artifact.

    Columns: settings, `algorithm`, `metric` (as text), `paper`, `paper_std` (numbers), `paper_text` (the number as it
    is printed, or the words or "NA" of a cell without number), `paper_censored` (the number is a lower bound).
    """
    path = papers()[paper].folder / "reported" / f"{name}.csv"
    if not path.is_file():
        return None
    raw = pd.read_csv(path, dtype=str, keep_default_na=False)
    bound = raw["censored"] if "censored" in raw else pd.Series("0", index=raw.index)
    return raw[[c for c in raw.columns if c == "metric" or c not in NUMBERS]].assign(
        paper=pd.to_numeric(raw["value"], errors="coerce"),
        paper_std=pd.to_numeric(raw["std"], errors="coerce"),
        paper_text=raw["value"],
        paper_censored=bound == "1",
    )


def build(
    artifact: Artifact,
    cells: pd.DataFrame,
    paper: pd.DataFrame | None,
    scale: str,
    substitutes: Sequence[str] = (),
    missing: Sequence[tuple[str, str]] = (),
) -> Table:
    """The table of `artifact` from its per-seed `cells` and the `paper`'s numbers (`reported`).

    missing: (panel, reason) of those without results. Of the artifact, `labels` may differ from the paper's, or from
    seed to seed.
    Raises ValueError, naming the artifact and the column, if the cells do not fit the layout.
    """
    frame, differing = _merge(artifact, cells, paper)
    same = entries.comparable(artifact, scale)
    gap = "; ".join(dict.fromkeys(reason for _, reason in missing)) or f"not part of the {scale} scale"
    conditions = [frame["seeds"].gt(0) | frame["text"].ne(""), frame["runs"].gt(0)]
    frame["status"] = np.select(conditions, ["run", "no value"], "not run")
    frame["doubted"] = (frame["paper_text"] != "") & entries.doubted(artifact, frame)
    # Where the caption says that numbers are not comparable, nothing compares them.
    frame["difference"] = frame["difference"].mask(frame["doubted"] | (not same))
    shown = _to_print(artifact, frame, paper)
    rows, columns = _labels(artifact.rows, shown), _labels(artifact.columns, shown)
    known, notes = shown, differing
    if not same:
        notes, shown = _without(shown, gap), shown[shown["runs"] > 0].assign(difference=np.nan)
        labels = (set(_labels(names, shown)) for names in (artifact.rows, artifact.columns))
        rows, columns = ([at for at in axis if at in ran] for axis, ran in zip((rows, columns), labels, strict=True))
    ranked = shown["mean"].where(~shown["censored"]), shown["paper"].where(~shown["paper_censored"] & ~shown["doubted"])
    counts = shown["seeds"], shown["seeds"].where(shown["paper"].isna(), 0)  # the paper's are as they are
    best, best_printed = (entries.best(artifact, shown, *each) for each in zip(ranked, counts, strict=True))
    shown = shown.assign(best=best, best_printed=best_printed)
    places = _places(artifact, shown, rows, columns)
    printed = pd.DataFrame(list(places.values()), columns=shown.columns) if places else shown.iloc[:0]
    digits = {str(m): entries.decimals(artifact, str(m), rows) for m, rows in known.groupby("metric", sort=False)}
    body = {place: entries.entry(cell, digits[cell["metric"]], artifact.names) for place, cell in places.items()}
    if same:
        left_out = sorted(set(frame.loc[frame["paper_text"] != "", "metric"]) - set(shown["metric"]))
        notes += [f"{heading(metric, artifact.names)}: in the paper, not measured here." for metric in left_out]
    notes += [f"{entries.DOUBTED} {doubt.why}" for doubt in artifact.doubts]
    if not places:
        notes = [f"{entries.DASH} not run: {gap}.", *notes]
    words = ("text", "paper_text") if frame["text"].astype(bool).any() else ()
    return Table(
        artifact,
        scale,
        frame[[*_settings(frame), *MEASURED, "paper_censored", *words]],
        tuple(rows),
        tuple(columns),
        body,
        tuple(entries.caption(artifact, scale, substitutes, printed, same)),
        tuple(entries.signs(list(places.values()), gap)),
        (*notes, *artifact.notes, *entries.settings(substitutes)),
    )


def _without(shown: pd.DataFrame, gap: str) -> list[str]:
    """The remark on the paper's entries without a number here, and why, if its numbers are not beside ours."""
    theirs = shown[shown["paper_text"].ne("") & ~shown["paper_text"].isin(entries.NOTHING)]
    lacking = int((theirs["runs"] == 0).sum())
    return [f"Of the paper's {len(theirs)} numbers {lacking} have none of ours: {gap}."] * bool(lacking)


def label(value: str, names: Mapping[str, str]) -> str:
    """A label in print, with separators of thousands in a whole number."""
    text = pretty(value, names)
    return f"{int(text):,}" if re.fullmatch(r"\d{5,}", text) else text


def column_heading(value: str, name: str, table: Table) -> str:
    """A column heading; a bare number says what it is a number of."""
    names = table.artifact.names
    text = label(value, names)
    if re.fullmatch(r"[\d.,/]+", text) is None:
        return heading(value, names)
    title = pretty(name, names)
    return f"{title} = {text}" if len(title) < 3 else f"{heading(name, names)} {text}"


def _settings(frame: pd.DataFrame) -> list[str]:
    private = {*MEASURED, "runs", "point", "text", "paper_text", "paper_censored", "doubted", "best", "best_printed"}
    return [c for c in frame.columns if c not in private]


def _merge(artifact: Artifact, cells: pd.DataFrame, paper: pd.DataFrame | None) -> tuple[pd.DataFrame, list[str]]:
    """All cells, the paper's first and in its order; settings as text, spelled as in the paper. And notes on settings
    that differ from the paper's."""
    if not len(cells):
        cells = pd.DataFrame({c: pd.Series(dtype=object) for c in ("algorithm", "metric", "seed", "value")})
    # By seed, so that the order of the cells does not show in the last digit of a mean.
    ours = over_seeds(cells.sort_values("seed", kind="stable"), artifact.labels)
    ours["text"] = ours["text"].fillna("").astype(str) if "text" in ours else ""
    if paper is None:
        paper = ours[_settings(ours)].iloc[:0].assign(**ABSENT)
    theirs = [c for c in paper.columns if not c.startswith("paper")]
    for c in _settings(ours):
        spelling = {canonical(v): spelled(v) for v in ours[c]}
        if c in theirs:
            spelling |= {canonical(v): v for v in paper[c]}
            paper = paper.assign(**{c: [spelling[canonical(v)] for v in paper[c]]})
        ours[c] = [spelling[canonical(v)] for v in ours[c]]
    lacking = [c for c in theirs if c not in ours]
    if not len(ours):
        ours = ours.assign(**{c: "" for c in [*lacking, *artifact.rows, *artifact.columns] if c not in ours})
    elif lacking:
        raise ValueError(f"{artifact.id}: the cells lack the column '{lacking[0]}' of reported/{artifact.name}.csv")
    match = [*dict.fromkeys([*(c for c in theirs if c not in artifact.labels), "algorithm", "metric"])]
    if paper.duplicated(match).any():
        raise ValueError(f"{artifact.id}: the columns {', '.join(match)} do not tell the paper's cells apart")
    both = paper.assign(_at=range(len(paper))).merge(ours, "outer", on=match, suffixes=("_paper", ""), sort=False)
    both = both.sort_values(match, key=lambda c: c.map(canonical))  # of those that the paper does not have
    both = both.sort_values("_at", kind="stable", na_position="last").reset_index(drop=True)

    notes = []
    for c in (c for c in theirs if c not in match):  # what describes a cell, such as its target
        measured, in_paper = both[c], both[f"{c}_paper"]
        changed = both[measured.notna() & in_paper.notna() & (measured != in_paper)]
        pairs = dict.fromkeys(zip(changed[c].map(canonical), changed[f"{c}_paper"].map(canonical), strict=True))
        notes += [f"{heading(c)}: {one} here, {other} in the paper." for one, other in pairs]
        both[c] = measured.fillna(in_paper)
    extra = [c for c in _settings(ours) if c not in theirs]
    settings = [*(c for c in [*theirs, *extra] if c not in ("algorithm", "metric")), "algorithm", "metric"]
    numbers = both[["mean", "std", "paper", "paper_std"]].astype(float)
    counts = both[["seeds", "runs"]].fillna(0).astype(int)
    flags = both[["censored", "paper_censored", "point"]].astype("boolean").fillna(False).astype(bool)
    exact = ~flags["censored"] & ~flags["paper_censored"]
    difference = (numbers["mean"] - numbers["paper"]).where(exact)
    words = both[[*settings, "text", "paper_text"]].fillna("")
    return pd.concat([words, numbers, counts, flags], axis=1).assign(difference=difference), notes


def _to_print(artifact: Artifact, frame: pd.DataFrame, paper: pd.DataFrame | None) -> pd.DataFrame:
    """The cells of the metrics to print: those declared, else those that ours and the paper's share, else the paper's,
    else ours."""
    ours = set(frame.loc[frame["runs"] > 0, "metric"])
    theirs = set() if paper is None else set(paper["metric"])
    return frame[frame["metric"].isin(list(artifact.metrics or (ours & theirs) or theirs or ours))]


def _places(
    artifact: Artifact, shown: pd.DataFrame, rows: list[Labels], columns: list[Labels]
) -> dict[tuple[int, int], dict[str, Any]]:
    """Place -> cell. A cell of ours takes the place of one that only the paper has; two of ours there are a
    ValueError."""
    at = [{labels: i for i, labels in enumerate(axis)} for axis in (rows, columns)]
    places: dict[tuple[int, int], dict[str, Any]] = {}
    for cell in shown.to_dict("records"):
        row, column = (tuple(cell[c] for c in names) for names in (artifact.rows, artifact.columns))
        place = at[0][row], at[1][column]
        if not (before := places.get(place)) or (cell["runs"] and not before["runs"]):
            places[place] = {str(k): v for k, v in cell.items()}
        elif cell["runs"]:
            differ = next(c for c in _settings(shown) if before[c] != cell[c])
            raise ValueError(f"{artifact.id}: two cells in one place of the table; they differ in '{differ}'")
    return places


def _labels(names: Sequence[str], shown: pd.DataFrame) -> list[Labels]:
    """The distinct labels: equal headings stand together, and those below them have one order everywhere, numbers up or
    down as in the paper, names as they first appear. Of several levels all but the last, those of data sets and models,
    have labels with numbers of ours before those that only the paper has."""
    distinct = dict.fromkeys(tuple(row) for row in shown[list(names)].itertuples(index=False, name=None))
    ran = shown[shown["runs"] > 0]
    ranks = []
    for level, name in enumerate(names):
        order = list(dict.fromkeys(labels[level] for labels in distinct))
        numbers = [float(text) for text in order if re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", text)]
        if len(numbers) == len(order) > 1:
            order.sort(key=float, reverse=numbers[1] < numbers[0])
        elif level < len(names) - 1:
            run = set(ran[name])
            order.sort(key=lambda label: label not in run)
        ranks.append({label: i for i, label in enumerate(order)})
    return sorted(distinct, key=lambda labels: [ranks[level][label] for level, label in enumerate(labels)])
