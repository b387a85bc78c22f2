"""The entries of a table, and the sentences above and below it. Plain text, for every output format."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from reproduce.declare.artifact import Artifact
from reproduce.declare.paper import metric
from reproduce.report.histories import Histories
from reproduce.report.names import canonical, pretty
from reproduce.text import counted_seeds

DASH, MINUS = "\N{EM DASH}", "\N{MINUS SIGN}"
PARTIAL, DOUBTED = "†", "‡"
NOTHING = ("NA", "N/A")
"""The text of reported/*.csv where the paper's cell is empty."""


OURS, PAPER, GAP, BOTH = "ours", "paper", f"ours\N{NO-BREAK SPACE}{MINUS}\N{NO-BREAK SPACE}paper", "ours = paper"
"""The lines of a row. `BOTH` where all that the paper prints there is what we have, which is then printed once."""
ELSEWHERE = "paper, its scale"
"""The line of the paper's numbers beside ours of another scale."""
BOLD = "Bold: the best mean of those compared"


@dataclass(frozen=True)
class Text:
    """One line of an entry."""

    text: str
    bold: bool = False


Entry = Mapping[str, Text]
"""One place: what stands in the lines `OURS`, `PAPER` and `GAP`; a line without anything is absent."""


def lines(row: Sequence[Entry | None]) -> list[tuple[str, list[Text]]]:
    """The lines of a row of a table: what each is, and what stands in each place."""
    filled = [entry or {} for entry in row]
    kinds = [kind for kind in (OURS, PAPER, GAP) if any(kind in entry for entry in filled)]
    equal = all(e[PAPER].text == e[OURS].text for e in filled if PAPER in e)
    named = {BOTH if PAPER in kinds else OURS: OURS} if equal else {kind: kind for kind in kinds}
    return [(name, [entry.get(kind, Text("")) for entry in filled]) for name, kind in named.items()]


def entry(cell: Mapping[str, Any], digits: int, names: Mapping[str, str]) -> Entry:
    """The entry of a cell (a row of `Table.frame` with all its columns)."""
    parts = {OURS: Text(_ours(cell, digits, names), cell["best"])}
    if theirs := _theirs(cell, digits, names):
        parts[PAPER] = Text(theirs, cell["best_printed"])
    if theirs and math.isfinite(cell["difference"]):
        parts[GAP] = Text(number(cell["difference"], digits, sign=True))
    return parts


def _ours(cell: Mapping[str, Any], digits: int, names: Mapping[str, str]) -> str:
    if cell["status"] == "not run":
        return DASH
    if cell["text"]:
        return DASH if cell["text"] in NOTHING else pretty(cell["text"], names)
    if cell["status"] == "no value":
        return "n/a"
    same = cell["mean"] == cell["paper"] and not math.isfinite(cell["std"])
    ours = grouped(cell["paper_text"]) if same else number(cell["mean"], digits)
    if cell["censored"]:
        ours = f">{ours}"
    elif math.isfinite(cell["std"]):
        ours += f" ± {cell['std']:,.{digits}f}"
    return ours + PARTIAL * bool(cell["seeds"] < cell["runs"])


def _theirs(cell: Mapping[str, Any], digits: int, names: Mapping[str, str]) -> str:
    text, value = cell["paper_text"], cell["paper"]
    if text in ("", *NOTHING):
        return ""
    if not math.isfinite(value):
        return pretty(text, names)
    text = grouped(text)
    shown = f">{text}" if cell["paper_censored"] else text
    spread = f" ± {cell['paper_std']:,.{digits}f}" if math.isfinite(cell["paper_std"]) else ""
    return f"{shown}{spread}{DOUBTED if cell['doubted'] else ''}"


def signs(cells: Sequence[Mapping[str, Any]], gap: str) -> list[tuple[str, str]]:
    """The signs that stand in the printed `cells`, and what they mean. gap: why some were not run."""
    meanings = [(DASH, f"not run: {gap}.")] if any(c["status"] == "not run" for c in cells) else []
    if any(c["censored"] or c["paper_censored"] for c in cells):
        meanings.append((">", "a lower bound: not every seed reached the target within the horizon."))
    if any(c["status"] == "no value" for c in cells):
        meanings.append(("n/a", "no seed has a value (diverged, or not defined)."))
    short = [c for c in cells if c["status"] == "run" and c["seeds"] < c["runs"] and not c["text"]]
    if short:
        fewest = min(short, key=lambda c: c["seeds"])
        remaining = f"are left out; fewest left: {fewest['seeds']} of {fewest['runs']}."
        meanings.append((PARTIAL, f"seeds without a value (diverged, or not defined) {remaining}"))
    return meanings


def best(artifact: Artifact, shown: pd.DataFrame, values: pd.Series[float], seeds: pd.Series[int]) -> pd.Series[bool]:
    """Marks the best of the `values` of the cells `shown`, of those in the same row or column that differ in
    `artifact.series` only; one alone is not, nor one of a single seed beside others of several. Ties are all best."""
    layout = dict.fromkeys((*artifact.rows, *artifact.columns, "metric"))
    if artifact.series not in layout or shown.empty:
        return values.isna() & values.notna()
    signs = {name: metric(name, artifact.paper).sign or math.nan for name in shown["metric"].unique()}
    signed = values * shown["metric"].map(signs)
    places = [shown[c] for c in layout if c != artifact.series]
    groups = signed.where((seeds != 1) | (seeds.groupby(places).transform("max") == 1)).groupby(places)
    return (signed == groups.transform("max")) & (groups.transform("count") > 1)


def number(value: float, digits: int, sign: bool = False) -> str:
    """Returns `value` as text with `digits` decimals, thousands separators and U+2212 as minus. A nonzero value that
    would print as zero has two significant digits instead. sign: adds a plus to positive numbers; what rounds to zero
    prints as plain zero."""
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        # A difference that rounds to zero is zero at the precision of the table; a value that does is just small.
        text = f"{0:.{digits}f}" if sign or value == 0 else f"{value:.2g}"
    if sign and text[0] != "-" and text.strip("0."):
        text = "+" + text
    return text.replace("-", MINUS)


def grouped(text: str) -> str:
    """A printed number with separators of thousands and a real minus sign; anything else as it is."""
    match = re.fullmatch(r"-?(\d+)(\.\d+)?", text)
    digits = f"{int(match[1]):,}" if match else ""
    return f"{MINUS if text[0] == '-' else ''}{digits}{match[2] or ''}" if match else text


def doubted(artifact: Artifact, frame: pd.DataFrame) -> pd.Series[bool]:
    """Marks the cells with published numbers that the artifact doubts."""
    mask = frame["metric"] != frame["metric"]
    for doubt in artifact.doubts:
        mask |= frame[list(doubt.cells)].isin({k: list(v) for k, v in doubt.cells.items()}).all(axis=1)
    return mask


def comparable(artifact: Artifact, scale: str) -> bool:
    """Tells whether the numbers can be compared with the paper's: at paper scale, and if all scales are equal."""
    if scale == "paper":
        return True
    panels, of_paper = ([(p.name, p.experiments, p.seeds) for p in artifact.panels(s)] for s in (scale, "paper"))
    return panels == of_paper


def targets(artifact: Artifact, shown: pd.DataFrame) -> list[str]:
    """The target accuracy of the numbers, by as few of the columns as tell: "Target: 90 % (IID), 80 % (non-IID)"."""
    name = next((c for c in artifact.labels if c.startswith("target_accuracy") and c in shown), "")
    known = shown[shown[name] != ""] if name else shown[:0]
    for by in (list(by) for n in range(3) for by in combinations([*artifact.rows, *artifact.columns], n)):
        each = known.groupby(by or (lambda _: ""), sort=False)[name or "metric"].agg(["first", "nunique"])
        if len(each) and (each["nunique"] == 1).all():
            by_value = defaultdict[str, list[str]](list)
            for at, value in each["first"].items():
                places = at if isinstance(at, tuple) else (at,)
                by_value[f"{canonical(value)} %"].append(", ".join(pretty(x, artifact.names) for x in places))
            each_of = (f"{value} ({'; '.join(of)})" if by else value for value, of in by_value.items())
            return [f"Target: {', '.join(each_of)}."]
    return []


def caption(artifact: Artifact, scale: str, substitutes: Sequence[str], shown: pd.DataFrame, same: bool) -> list[str]:
    """The sentences above a table: what the numbers are and how far they may be compared with the paper's."""
    sentences = [scale_line(scale, short(substitutes), same), *targets(artifact, shown)]
    ran = shown[(shown["runs"] > 0) & (shown["text"] == "") & ~shown["point"]]
    if len(ran):
        low, high = int(ran["runs"].min()), int(ran["runs"].max())
        spread = "Mean ± sample standard deviation over" if high > 1 else "One value from"
        sentences.append(f"{spread} {counted_seeds(low, high)}.")
    if shown["best_printed"].any():
        return [*sentences, f"{BOLD}, ours and the paper's each."]
    return [*sentences, f"{BOLD}."] if shown["best"].any() else sentences


def commits(histories: Histories) -> str:
    """The commits of the results; "" without any."""
    hashes = list(dict.fromkeys(str(run.training["git"]) for run in histories.runs))
    listed = ", ".join(hashes[:3]) + (f" and {len(hashes) - 3} more" if len(hashes) > 3 else "")
    return f"Results: commit{'s' * (len(hashes) > 1)} {listed}." if hashes else ""


def short(substitutes: Sequence[str]) -> list[str]:
    """The substitutes, without the settings that follow a colon."""
    return list(dict.fromkeys(phrase.partition(": ")[0] for phrase in substitutes))


def settings(substitutes: Sequence[str]) -> list[str]:
    """The note with all that `short` leaves out of a caption."""
    return [f"Substitutes and settings: {'; '.join(substitutes)}."] if short(substitutes) != list(substitutes) else []


def scale_line(scale: str, substitutes: Sequence[str], same: bool = False) -> str:
    """The beginning of the caption of every table and figure: scale, substitutes, and what that means for a comparison.

    same: this scale runs what the paper scale runs (`comparable`).
    """
    means = "; not comparable with the paper number by number"
    if scale == "paper":
        means = ""
    elif same:
        means = "; the same as at paper scale"
    elif scale == "smoke":
        means = "; a test run whose numbers mean nothing"
    return f"{scale.capitalize()} scale{': ' if substitutes else ''}{'; '.join(substitutes)}{means}."


def decimals(artifact: Artifact, metric: str, rows: pd.DataFrame) -> int:
    """The number of decimals: as declared, else as the paper prints this metric, else 0 for whole numbers, else the
    default."""
    chosen = artifact.decimals
    if not isinstance(chosen, int) and metric in chosen:
        return int(chosen[metric])
    usual = chosen if isinstance(chosen, int) else 2
    printed = [str(t) for t in rows.loc[rows["paper"].notna(), "paper_text"]]
    if printed:
        return max(len(t.partition(".")[2]) if re.fullmatch(r"-?\d+\.?\d*", t) else usual for t in printed)
    values = rows["mean"].dropna()
    integers = metric.startswith("rounds") or (len(values) > 0 and bool((values == values.round()).all()))
    return 0 if integers else usual
