"""What is said of a figure: one line inside it, a short caption, and a note with all the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reproduce.declare.artifact import Artifact, Sheet, function
from reproduce.report import around, entries, figures
from reproduce.report.entries import commits
from reproduce.report.names import pretty
from reproduce.text import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


MARKS = {
    "dots": "Dots: mean over seeds, with its 95 % t-interval; small dots: seeds.",
    "diverged": "Cross: from here on a seed has no finite value.",
}
"""Name (gid) of a mark -> what the caption says of it."""
LINES = {"band": "bands", "bars": "bars", "end": "bars at the end"}
"""Of lines: what shows their interval."""


def headline(artifact: Artifact, histories: Histories, fig: Figure) -> str:
    """The line inside a figure: scale, stand-ins, and how much of it was run (the figure's label)."""
    same = histories.scale != "paper" and entries.comparable(artifact, histories.scale)
    scale = f"{histories.scale.capitalize()} scale{', the same as at paper scale' if same else ''}"
    stands = "; ".join(entries.short(histories.substitutes))
    return f"{scale}{': ' if stands else ''}{stands}{'; ' if fig.get_label() else ''}{fig.get_label()}"


def caption(artifact: Artifact, histories: Histories, fig: Figure) -> list[str]:
    """The sentences of a caption behind the title: scale and stand-ins, seeds, marks, the paper's numbers. Where
    nothing is drawn, the first of them."""
    comparable = entries.comparable(artifact, histories.scale)
    scale = entries.scale_line(histories.scale, entries.short(histories.substitutes), comparable)
    if not any(ax.get_visible() for ax in fig.axes):
        return [scale]
    remark = artifact.stamp if isinstance(artifact.stamp, str) else function(artifact.paper, artifact.stamp)(histories)
    seeds = f"{seeds_of(histories)}." if histories.seeds else ""
    fewer = "Means are without the seeds that diverged." if diverged(fig) else ""
    return [s for s in (scale, seeds, *marks(fig), fewer, remark, of_marks(artifact, fig)) if s]


def marks(fig: Figure) -> list[str]:
    """What the lines and dots of a figure are, a sentence each."""
    drawn = {mark.get_gid() for ax in fig.axes for mark in (*ax.lines, *ax.collections)}
    spreads = " or ".join(text for gid, text in LINES.items() if gid in drawn)
    lines = [f"{spreads}: its 95 % t-interval"] * bool(spreads) + ["thin lines: seeds"] * ("seeds" in drawn)
    said = [f"Lines: mean over seeds; {'; '.join(lines)}."] * bool(lines)
    return said + [text for gid, text in MARKS.items() if gid in drawn]


def title(artifact: Artifact, fig: Figure) -> str:
    """The beginning of a caption; of a figure that was run in part it says how much is there."""
    return f"{artifact.title.rstrip('.')}{f' ({fig.get_label()})' if fig.get_label() else ''}."


def note(artifact: Artifact, histories: Histories, fig: Figure) -> list[str]:
    """What a caption has no room for, a line each: settings, remarks, which means lack seeds, what was not run, and
    where the results are from."""
    panels = diverged(fig)
    without = f"Means without the seeds that diverged: {'; '.join(panels)}." if any(panels) else ""
    printed = artifact.name.startswith("fig") and not (isinstance(artifact.draw, Sheet) and artifact.draw.printed)
    none = "The paper prints no numbers for this figure." if printed else ""
    settings = entries.settings(histories.substitutes)
    below = [" ".join(text.split()) for text in around.texts(fig, "absent")]
    return [s for s in (*settings, *artifact.notes, without, *below, none, commits(histories)) if s]


def seeds_of(histories: Histories, series: str = "", names: Mapping[str, str] | None = None) -> str:
    """How many seeds the experiments have, in words; with the one of the `series` that has fewer than all others."""
    low, high = histories.seeds_each
    if low == high or series not in histories.frame:
        return f"{low} to {high} seeds" if low != high else counted(high, "seed")
    each = histories.frame.groupby(series)["seed"].nunique()
    fewer = [f"{count} of {pretty(name, names)}" for name, count in each.items() if count < high]
    one = len(fewer) == 1 and set(each) == {low, high}
    return f"{high} seeds, {fewer[0]}" if one else f"{low} to {high} seeds"


def diverged(fig: Figure) -> list[str]:
    """The titles of the panels with means that lack seeds; the legend, which has every label once, cannot say it."""
    found = {}
    for ax in fig.axes:
        curves = [figures.DIVERGED.search(str(line.get_label())) for line in ax.lines]
        if any(f and f[1] for f in curves) or any(text.get_text().endswith(entries.PARTIAL) for text in ax.texts):
            found[" ".join((ax.get_title("left") or ax.get_title()).split())] = True
    return list(found)


def of_marks(artifact: Artifact, fig: Figure) -> str:
    """What the caption says of the paper's numbers; "" for a figure without any."""
    if not isinstance(artifact.draw, Sheet):
        return ""
    lines = [line for ax in fig.axes for line in ax.get_lines() if line.get_gid() == "printed"]
    bars = [line for line in lines if line.get_linestyle() != "None"]
    sources = " and ".join(dict.fromkeys(each.source for each in artifact.draw.printed))
    ours = any(line.get_gid() == "ours" for ax in fig.axes for line in ax.get_lines())
    for marks, word in ((bars, "Double bars: the paper's numbers"), (lines, "Open marks: the paper's numbers")):
        if marks:
            return "Filled marks: our first hits, of raw curves. " * ours + f"{word} ({sources})."
    return ""
