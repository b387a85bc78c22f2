"""What stands in one place of a table, and the sentences above and below it. Plain text, for every output format."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact
from reproduce.report.names import heading, pretty

if TYPE_CHECKING:
    import pandas as pd

DASH, MINUS = "\N{EM DASH}", "\N{MINUS SIGN}"
MARKS = "ᵃᵇᶜᵈᵉᶠᵍʰ"
PARTIAL, DOUBTED = "†", "‡"
NOTHING = ("NA", "N/A")
"""What reported/*.csv have where the paper's cell is empty."""


@dataclass(frozen=True)
class Entry:
    """One place: our number, the paper's in parentheses, ours minus the paper's; "" for what does not exist."""

    ours: str
    paper: str = ""
    difference: str = ""


@dataclass(frozen=True)
class Style:
    """How the numbers of a table are printed: decimals per metric, lower bounds, a mark per reason for a gap.

    equal: all that the paper prints here is what we have, so that it is not printed twice.
    """

    decimals: Mapping[str, int]
    bound: str
    marks: Mapping[str, str]
    names: Mapping[str, str]
    equal: bool = False

    @classmethod
    def of(cls, artifact: Artifact, shown: pd.DataFrame) -> Style:
        """The style of `artifact` for the cells `shown`."""
        gaps = list(dict.fromkeys(s for s in shown["status"] if s.startswith("not run")))
        # A single reason needs no mark; reasons beyond the alphabet share the last one.
        marks = {gap: MARKS[min(i, len(MARKS) - 1)] if len(gaps) > 1 else "" for i, gap in enumerate(gaps)}
        decimals = {str(m): _decimals(artifact, str(m), rows) for m, rows in shown.groupby("metric", sort=False)}
        return cls(decimals, artifact.censored, marks, artifact.names, _all_equal(shown))

    def entry(self, cell: Mapping[str, Any]) -> Entry:
        """The entry of a cell (a row of `Table.frame` with all its columns)."""
        digits = self.decimals[str(cell["metric"])]
        theirs = self._theirs(cell, digits)
        if cell["status"].startswith("not run"):
            return Entry(DASH + self.marks[cell["status"]], theirs)
        if cell["text"]:
            return Entry(DASH if cell["text"] in NOTHING else pretty(cell["text"], self.names), theirs)
        if cell["status"] == "no value":
            return Entry("n/a", theirs)
        same = cell["mean"] == cell["paper"] and not math.isfinite(cell["std"])
        ours = grouped(cell["paper_text"]) if same else number(cell["mean"], digits)
        if cell["censored"]:
            ours = self.bound.format(ours)
        elif math.isfinite(cell["std"]):
            ours += f" ± {cell['std']:,.{digits}f}"
        if cell["seeds"] < cell["runs"]:
            ours += PARTIAL
        difference = cell["difference"] if theirs else math.nan
        return Entry(ours, theirs, number(difference, digits, sign=True) if math.isfinite(difference) else "")

    def _theirs(self, cell: Mapping[str, Any], digits: int) -> str:
        text, value = cell["paper_text"], cell["paper"]
        if self.equal or text in ("", *NOTHING):
            return ""
        if not math.isfinite(value):
            return f"({pretty(text, self.names)})"
        text = grouped(text)
        shown = self.bound.format(text) if cell["paper_censored"] else text
        spread = f" ± {cell['paper_std']:,.{digits}f}" if math.isfinite(cell["paper_std"]) else ""
        return f"({shown}{spread}){DOUBTED if cell['doubted'] else ''}"

    def notes(self, cells: Sequence[Mapping[str, Any]], gaps: bool = True) -> list[str]:
        """The footnotes that the printed `cells` call for, those on `gaps` included."""
        notes = [f"{DASH}{mark} {gap}." for gap, mark in self.marks.items() if gaps]
        if any(c["censored"] or c["paper_censored"] for c in cells):
            reached = "is a lower bound: not every seed reached the target within the horizon."
            notes.append(f"A number with {self.bound.format('').strip()} {reached}")
        if any(c["status"] == "no value" for c in cells):
            notes.append("n/a: no seed has a value (diverged, or not defined).")
        short = [c for c in cells if c["status"] == "run" and c["seeds"] < c["runs"] and not c["text"]]
        if short:
            fewest = min(short, key=lambda c: c["seeds"])
            left = f"are left out; fewest left: {fewest['seeds']} of {fewest['runs']}."
            notes.append(f"{PARTIAL} seeds without a value (diverged, or not defined) {left}")
        return notes


def number(value: float, digits: int, sign: bool = False) -> str:
    """`value` with `digits` decimals, separators of thousands and a real minus sign; two significant digits if it would
    vanish otherwise. sign: a plus sign, too, but none at a zero."""
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        # A difference that rounds to zero is zero at the precision of the table; a value that does is just small.
        text = f"{0:.{digits}f}" if sign or value == 0 else f"{value:.2g}"
    if sign and text[0] != "-" and text.strip("0."):
        text = "+" + text
    return text.replace("-", MINUS)


def grouped(text: str) -> str:
    """A printed number with separators of thousands and a real minus sign; anything else as it is."""
    found = re.fullmatch(r"-?(\d+)(\.\d+)?", text)
    whole = f"{int(found[1]):,}" if found else ""
    return f"{MINUS if text[0] == '-' else ''}{whole}{found[2] or ''}" if found else text


def _all_equal(shown: pd.DataFrame) -> bool:
    """Is there something of the paper, and is all of it, number or word, what we have?"""
    theirs = shown[(shown["paper_text"] != "") & ~shown["paper_text"].isin(NOTHING)]
    words = (theirs["text"] != "") & (theirs["text"] == theirs["paper_text"])
    exact = (theirs["mean"] == theirs["paper"]) & theirs["std"].isna() & ~theirs["censored"] & ~theirs["paper_censored"]
    return bool(len(theirs)) and bool((words | exact).all())


def doubted(artifact: Artifact, frame: pd.DataFrame) -> pd.Series[bool]:
    """Which cells hold printed numbers that the artifact doubts."""
    found = frame["metric"] != frame["metric"]
    for doubt in artifact.doubts:
        found |= frame[list(doubt.cells)].isin({k: list(v) for k, v in doubt.cells.items()}).all(axis=1)
    return found


def comparable(artifact: Artifact, scale: str) -> bool:
    """May the numbers be compared with the paper's one by one? At paper scale, and where all scales run the same."""
    here, there = ([(p.name, p.experiments, p.seeds) for p in artifact.panels(s)] for s in (scale, "paper"))
    return here == there


def caption(
    scale: str, substitutes: Sequence[str], shown: pd.DataFrame, same: bool = False, equal: bool = False
) -> list[str]:
    """The sentences above a table: what the numbers are and how far they may be compared with the paper's."""
    lines = [scale_line(scale, substitutes, same)]
    ran = shown[(shown["runs"] > 0) & (shown["text"] == "") & ~shown["point"]]
    if len(ran):
        low, high = int(ran["runs"].min()), int(ran["runs"].max())
        spread = "Mean ± sample standard deviation over" if high > 1 else "One value from"
        seeds = f"{low} to {high} seeds" if low != high else f"{high} seed{'s' if high > 1 else ''}"
        lines.append(f"{spread} {seeds}.")
    if equal:
        lines.append("All that the paper prints here is equal to ours.")
    elif (shown["paper_text"] != "").any():
        behind = "; behind it: ours minus the paper's" if same or scale == "paper" else ""
        none = " Without parentheses: the paper prints nothing." if shown["paper_text"].isin(NOTHING).any() else ""
        lines.append(f"In parentheses: the paper's value{behind}.{none}")
    return lines


def scale_line(scale: str, substitutes: Sequence[str], same: bool = False) -> str:
    """The beginning of the caption of every table and figure: scale, stand-ins, and what that means for a comparison.

    same: this scale runs what the paper scale runs (`comparable`).
    """
    means = "; not comparable with the paper number by number"
    if scale == "paper":
        means = ""
    elif same:
        means = "; the same as at paper scale"
    elif scale == "smoke":
        means = "; shows that everything runs, the numbers mean nothing"
    return f"{scale.capitalize()} scale{': ' if substitutes else ''}{'; '.join(substitutes)}{means}."


def summary(shown: pd.DataFrame, names: Mapping[str, str] | None = None) -> list[str]:
    """Per metric: compared cells, root mean square and mean absolute difference against the paper."""
    lines = []
    for metric, rows in shown.groupby("metric", sort=False):
        only_words = (rows["text"] != "") & rows["mean"].isna()  # compared as words, below
        theirs = rows[rows["paper"].notna() & ~only_words]
        if theirs.empty:
            continue
        difference = theirs["difference"].dropna()
        line = f"{heading(str(metric), names)}: {len(difference)} of the paper's {len(theirs)} cells compared"
        bounds = (theirs["mean"].notna() & (theirs["censored"] | theirs["paper_censored"])).sum()
        for count, what in ((bounds, "with a lower bound"), (theirs["doubted"].sum(), "doubtful ones")):
            line += f" ({count} {what} left out)" if count else ""
        if len(difference):
            rmse, absolute = math.sqrt((difference**2).mean()), difference.abs().mean()
            line += f"; RMSE {rmse:.4g}{_rmse_by_data(theirs, names)}, mean absolute difference {absolute:.4g}"
        lines.append(line + ".")
    words = shown[(shown["text"] != "") & shown["mean"].isna() & (shown["paper_text"] != "")]
    if len(words):
        same = int((words["text"] == words["paper_text"]).sum())
        lines.append(f"Cells in words: {same} of {len(words)} as in the paper.")
    return lines


def _rmse_by_data(rows: pd.DataFrame, names: Mapping[str, str] | None) -> str:
    """The RMSE of every data set, in parentheses, where several are compared."""
    if "dataset" not in rows:
        return ""
    squares = (rows["difference"].dropna() ** 2).groupby(rows["dataset"], sort=False).mean()
    parts = [f"{pretty(str(data), names)} {math.sqrt(value):.4g}" for data, value in squares.items()]
    return f" ({', '.join(parts)})" if len(parts) > 1 else ""


def _decimals(artifact: Artifact, metric: str, rows: pd.DataFrame) -> int:
    """As set, else as the paper prints this metric, else none for whole numbers, else those of the artifact."""
    chosen = artifact.decimals
    if not isinstance(chosen, int) and metric in chosen:
        return int(chosen[metric])
    usual = chosen if isinstance(chosen, int) else 2
    printed = [str(t) for t in rows.loc[rows["paper"].notna(), "paper_text"]]
    if printed:
        return max(len(t.partition(".")[2]) if re.fullmatch(r"-?\d+\.?\d*", t) else usual for t in printed)
    values = rows["mean"].dropna()
    whole = metric.startswith("rounds") or (len(values) > 0 and bool((values == values.round()).all()))
    return 0 if whole else usual
