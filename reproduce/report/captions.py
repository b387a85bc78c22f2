"""What stands under a figure: a caption to take into a paper, and the stamp of the picture that is looked at here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduce.declare.artifact import Artifact, Printed, Sheet
from reproduce.report import entries, figures
from reproduce.report.code import function

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


MARKS = {
    "dots": "Dots: mean over seeds; bars: its 95 % t-interval; small dots: seeds.",
    "band": "Lines: mean over seeds; bands: its 95 % t-interval.",
    "bars": "Lines: mean over seeds; bars: its 95 % t-interval.",
    "diverged": "Cross: from here on a seed has no finite value.",
}
"""Name (gid) of a mark -> what the caption says of it."""


def caption(artifact: Artifact, histories: Histories, fig: Figure) -> list[str]:
    """The sentences of a caption, without the title and the `gaps`: scale and stand-ins, seeds, what the marks mean,
    what is the paper's. Where nothing is drawn, the first of them."""
    scale = entries.scale_line(histories.scale, histories.substitutes, entries.comparable(artifact, histories.scale))
    if not any(ax.get_visible() for ax in fig.axes):
        return [scale]
    note = artifact.stamp if isinstance(artifact.stamp, str) else function(artifact.paper, artifact.stamp)(histories)
    seeds = f"{seeds_of(histories)}." if histories.seeds else ""
    drawn = {mark.get_gid() for ax in fig.axes for mark in (*ax.lines, *ax.collections)}
    marks = [text for gid, text in MARKS.items() if gid in drawn]
    return [s for s in (scale, seeds, *marks, less(fig), note, of_marks(artifact, fig)) if s]


def seeds_of(histories: Histories) -> str:
    """How many seeds the experiments have, in words."""
    low, high = histories.seeds_each
    return f"{low} to {high} seeds" if low != high else f"{high} seed{'s' if high != 1 else ''}"


def less(fig: Figure) -> str:
    """What the caption says of means without the seeds that diverged: of boxes with a mark, of curves in which panels;
    the legend, which has every label once, cannot say it."""
    if any(text.get_text().endswith(entries.PARTIAL) for ax in fig.axes for text in ax.texts):
        return f"{entries.PARTIAL}: the mean is without seeds that diverged."
    panels = []
    for ax in fig.axes:
        found = [figures.DIVERGED.search(text) for text in ax.get_legend_handles_labels()[1]]
        if any(f and f[1] for f in found):
            panels.append(ax.get_title("left") or ax.get_title())
    where = "; ".join(filter(None, dict.fromkeys(panels))) if len(fig.axes) > 1 else ""
    return f"Means are without the seeds that diverged{f' ({where})' if where else ''}." if panels else ""


def gaps(fig: Figure) -> list[str]:
    """What was not run, as the picture says it."""
    return [" ".join(text.split()) for text in figures.texts(fig, "absent")]


def of_marks(artifact: Artifact, fig: Figure) -> str:
    """What the caption says of the paper's numbers; "" for a figure that the paper does not have."""
    wanted: Sequence[Printed] = artifact.draw.printed if isinstance(artifact.draw, Sheet) else ()
    if not wanted:
        return "The paper prints no numbers for this figure." if artifact.name.startswith("fig") else ""
    sources = " and ".join(dict.fromkeys(each.source for each in wanted))
    lines = [line for ax in fig.axes for line in ax.get_lines() if line.get_gid() == "printed"]
    frames = [patch for ax in fig.axes for patch in ax.patches if patch.get_gid() == "printed"]
    bars = [line for line in lines if line.get_linestyle() != "None"]
    for marks, word in ((frames, "Framed boxes"), (bars, "Double bars"), (lines, "Open marks")):
        if marks:
            return f"{word}: the paper's numbers ({sources})."
    return f"The paper's numbers ({sources}) are of other settings than those drawn here."


def with_commits(sentences: Sequence[str], commits: Sequence[str]) -> str:
    """The stamp of a picture: the caption and the commits of its results."""
    if not commits:
        return " ".join(sentences)
    some = ", ".join(commits[:3]) + (f" and {len(commits) - 3} more" if len(commits) > 3 else "")
    return " ".join([*sentences, f"Results of commit{'s' * (len(commits) > 1)} {some}."])
