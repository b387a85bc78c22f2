"""The texts around the panels of a figure: headline, legend, caption, note.

In the figure: a line above (not in the PDF, which a caption stands beside), one legend below, titles that fit, labels
of the outer axes; `figures.lay_out` finds them room. Beside it: a short caption, and a note with all the rest.
"""

import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from reproduce.declare.artifact import Artifact, Sheet
from reproduce.report import entries, figures
from reproduce.report.entries import commits
from reproduce.report.histories import Histories
from reproduce.report.styles import DARK, TEXT
from reproduce.text import counted_seeds


def absent(fig: Figure, reasons: Sequence[tuple[str, str]]) -> None:
    """A remark on those that were not run: (title, reason) each. That there are no results is no reason."""
    if reasons:
        together: dict[str, list[str]] = {}
        for title, reason in reasons:
            together.setdefault("" if reason.startswith("no results yet") else f", {reason}", []).append(title)
        remark(fig, " ".join(f"Not run{reason}: {'; '.join(titles)}." for reason, titles in together.items()))


def say(fig: Figure, text: str) -> None:
    """The line of text above the panels."""
    style: dict[str, Any] = {"x": 0.01, "ha": "left", "fontsize": TEXT, "color": DARK, "wrap": True, "gid": "above"}
    fig.suptitle(text, **style, parse_math=False)  # what is said of files may have a dollar sign


def remark(fig: Figure, text: str) -> None:
    """Adds a remark to the figure, for the note beside it; nothing of it is drawn."""
    fig.text(0, 0, text, visible=False, gid="remark")


def remarks(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.texts if text.get_gid() == "remark"]


def legend(fig: Figure) -> None:
    """One legend below all panels, every label once, as few lines as the width holds."""
    handles: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    width, count = fig.get_figwidth(), len(handles)
    small: dict[str, Any] = {"fontsize": TEXT, "handlelength": 2.6, "columnspacing": 1.0} if width < 4 else {}
    names = [wrap(text, (width / 2 if count > 4 else width) - 0.45) for text in handles]
    for lines in range(1, count + 1):
        box = fig.legend(handles.values(), names, loc="outside lower center", ncols=-(-count // lines), **small)
        if box.get_window_extent().width <= fig.bbox.width or lines == count:
            break
        box.remove()


def titles(fig: Figure, spans: Mapping[Axes, int]) -> None:
    """Break the titles that are longer than their axes are wide; spans: how many axes one has room over."""
    for ax in fig.axes:
        place = ax.get_subplotspec()
        columns = place.get_gridspec().ncols if place else 1
        beside = 0.8 if ax.get_images() else 0.35  # numbers, and the scale of a map
        room = fig.get_figwidth() / columns * spans.get(ax, 1) - beside
        texts: Any = ax.findobj(Text)
        for text in texts:  # a title keeps its place, which `set_title` would take from it
            if text.get_text() in (ax.get_title("left"), ax.get_title()):
                text.set_text(wrap(text.get_text(), room))


def outer(fig: Figure, ylabel: str = "") -> None:
    """Label the y axes at the left of each line, others only where they have another quantity; and give those axes
    numbers that have no other below, or none at their left."""
    by_place = {place: ax for ax in fig.axes if ax.axison and ax.get_visible() and (place := ax.get_subplotspec())}
    lines: dict[int, list[Axes]] = defaultdict(list)
    columns: dict[int, Axes] = {}
    for place, ax in sorted(by_place.items(), key=lambda entry: (entry[0].rowspan.start, entry[0].colspan.start)):
        lines[place.rowspan.start].append(ax)
        columns[place.colspan.start] = ax
    for first, *others in lines.values():
        first.set_ylabel(ylabel or first.get_ylabel())
        first.tick_params(labelleft=True)
        for ax in others:
            if ax.get_ylabel() == first.get_ylabel():
                ax.set_ylabel("")
    for lowest in columns.values():
        lowest.tick_params(labelbottom=True)
        lowest.xaxis.label.set_visible(True)


def wrap(text: str, inches: float) -> str:
    """A title or label with its lines broken where they are longer, but not beside an equals sign."""
    text, most = text.replace(" = ", "\xa0=\xa0"), max(12, int(17 * inches))
    return "\n".join(textwrap.fill(line, most, break_on_hyphens=False) for line in text.split("\n"))


MARKS = {
    "dots": "Dots: mean over seeds, with its 95 % t-interval; small dots: seeds.",
    "diverged": "Cross: from here on a seed has no finite value.",
}
"""Name (gid) of a mark -> what the caption says of it."""
LINES = {"band": "bands", "bars": "bars", "end": "bars beside the axes, of a line's end"}
"""Of lines: what shows their interval."""


def headline(artifact: Artifact, histories: Histories, fig: Figure) -> str:
    """The text inside a figure: scale, substitutes, seeds, and how much of it was run (the figure's label)."""
    label = str(fig.get_label())
    return " ".join([*_scale_and_seeds(artifact, histories), *([f"{label}."] if label else [])])


def _scale_and_seeds(artifact: Artifact, histories: Histories) -> list[str]:
    comparable = entries.comparable(artifact, histories.scale)
    scale = entries.scale_line(histories.scale, entries.short(histories.substitutes), comparable)
    return [scale, *([f"{counted_seeds(*histories.seeds_each)}."] if histories.seeds else [])]


def caption(artifact: Artifact, histories: Histories, fig: Figure) -> list[str]:
    """The sentences of a caption behind the title: scale and substitutes, seeds, marks, the paper's numbers. Where
    nothing is drawn, the first of them."""
    first = _scale_and_seeds(artifact, histories)
    if not any(ax.get_visible() for ax in fig.axes):
        return first[:1]
    remark = artifact.stamp if isinstance(artifact.stamp, str) else artifact.stamp(histories)
    fewer = "Means are without the seeds that diverged." if diverged(fig) else ""
    return [s for s in (*first, *marks(fig), fewer, remark, of_marks(artifact, fig)) if s]


def marks(fig: Figure) -> list[str]:
    """Sentences that say what the lines and dots of a figure are."""
    gids = {mark.get_gid() for ax in fig.axes for mark in (*ax.lines, *ax.collections)}
    spreads = " or ".join(text for gid, text in LINES.items() if gid in gids)
    lines = [f"{spreads}: its 95 % t-interval"] * bool(spreads) + ["thin lines: seeds"] * ("seeds" in gids)
    sentences = [f"Lines: mean over seeds; {'; '.join(lines)}."] * bool(lines)
    return sentences + [text for gid, text in MARKS.items() if gid in gids]


def title(artifact: Artifact, fig: Figure) -> str:
    """The beginning of a caption; of a figure that was run in part it says how much is there."""
    return f"{artifact.title.rstrip('.')}{f' ({fig.get_label()})' if fig.get_label() else ''}."


def note(artifact: Artifact, histories: Histories, fig: Figure) -> list[str]:
    """Lines that have no room in a caption: settings, remarks, what was not run, and the origin of the results."""
    printed = artifact.name.startswith("fig") and not (isinstance(artifact.draw, Sheet) and artifact.draw.printed)
    none = "The paper publishes a picture without numbers, so its curves could not be read." if printed else ""
    settings = entries.settings(histories.substitutes)
    return [s for s in (*settings, *artifact.notes, *remarks(fig), none, commits(histories)) if s]


def diverged(fig: Figure) -> bool:
    """Tells whether some means lack seeds."""
    lines = (figures.DIVERGED.search(str(line.get_label())) for ax in fig.axes for line in ax.lines)
    marked = (text.get_text().endswith(entries.PARTIAL) for ax in fig.axes for text in ax.texts)
    return any(match and match[1] for match in lines) or any(marked)


def of_marks(artifact: Artifact, fig: Figure) -> str:
    """The sentence of the caption on the paper's numbers; "" for a figure without any."""
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
