"""What stands around the panels of a figure: lines of text, its legend, titles that fit, labels of the outer axes.

The figure grows by what is put above or below its panels, which keep their size. From above: headline, panels, absent,
legend, stamp.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reproduce.report.looks import DARK, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def absent(fig: Figure, reasons: Sequence[tuple[str, str]]) -> None:
    """A line of text below the panels for those that were not run: (title, reason) each. That there are no results is
    no reason."""
    if reasons:
        together: dict[str, list[str]] = {}
        for title, why in reasons:
            together.setdefault("" if why.startswith("no results yet") else f", {why}", []).append(title)
        below(fig, " ".join(f"Not run{why}: {'; '.join(titles)}." for why, titles in together.items()))


def below(fig: Figure, text: str) -> None:
    """A line of text below the panels, behind what stands there already."""
    for before in [other for other in fig.texts if other.get_gid() == "absent"]:
        text = f"{' '.join(before.get_text().split())} {text}"
        before.remove()
    _beside(fig, "absent", text, 7.0, 0.125, "#606060")


def headline(fig: Figure, text: str) -> None:
    """A line above the panels."""
    _beside(fig, "headline", text, TEXT, 0.112, DARK)


def stamp(fig: Figure, text: str) -> None:
    """Small text at the very bottom."""
    _beside(fig, "stamp", text, TEXT, 0.112, "#505050")


def legend(fig: Figure) -> None:
    """One legend below all panels, every label once, as many columns as the width holds."""
    entries: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(text, handle)
    if entries:
        width = fig.get_figwidth()
        small: dict[str, Any] = {"fontsize": TEXT, "handlelength": 2.6, "columnspacing": 1.0} if width < 4 else {}
        each = width / 2 if len(entries) > 4 else width
        names = [wrap(text, each - 0.45) for text in entries]
        widest = max(len(line) for text in names for line in text.split("\n"))
        fits = max(1, int(width / (0.05 * widest + 0.42 if small else 0.055 * widest + 0.55)))
        ncols = -(-len(names) // -(-len(names) // fits))  # rows of equal length
        fig.legend(entries.values(), names, loc="lower center", ncols=ncols, borderaxespad=0.1, **small)
        lines = -(-len(names) // ncols) + max(sum(text.count("\n") for text in names[i::ncols]) for i in range(ncols))
        _reserve(fig, "legend", lines * 0.155 + 0.1)


def titles(fig: Figure, spans: Mapping[Axes, int]) -> None:
    """Break the titles that are longer than their axes are wide; spans: how many axes one has room over."""
    from matplotlib.text import Text

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
    drawn = {place: ax for ax in fig.axes if ax.axison and ax.get_visible() and (place := ax.get_subplotspec())}
    lines: dict[int, list[Axes]] = defaultdict(list)
    columns: dict[int, Axes] = {}
    for place, ax in sorted(drawn.items(), key=lambda found: (found[0].rowspan.start, found[0].colspan.start)):
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


def texts(fig: Figure, gid: str) -> list[str]:
    """What stands in the figure's texts of that name."""
    return [text.get_text() for text in fig.texts if text.get_gid() == gid]


def _beside(fig: Figure, name: str, text: str, size: float, line: float, color: str) -> None:
    """A text of the whole width above or below the panels."""
    wrapped = wrap(text, fig.get_figwidth() * 6.9 / size).split("\n")
    look: dict[str, Any] = {"fontsize": size, "color": color, "va": "bottom", "linespacing": 1.15, "gid": name}
    look["parse_math"] = False  # what is said of files may have a dollar sign
    fig.text(0.01, 0, "\n".join(wrapped), **look)
    _reserve(fig, name, len(wrapped) * line + 0.06)


def _reserve(fig: Figure, name: str, inches: float) -> None:
    """Reserve `inches` for the part of that name."""
    engine: Any = fig.get_layout_engine()
    parts: dict[str, float] = getattr(fig, "_reserved", {})
    total = fig.get_figheight() + inches - parts.get(name, 0.0)
    parts = {**parts, name: inches}
    fig._reserved = parts  # type: ignore[attr-defined]
    above = parts.get("headline", 0.0)
    below = sum(parts.values()) - above
    fig.set_figheight(total)
    at = {"stamp": 0.03, "legend": parts.get("stamp", 0.0), "headline": total - above + 0.04}
    at["absent"] = at["legend"] + parts.get("legend", 0.0) + 0.02
    for text in fig.texts:
        if text.get_gid() in at:
            text.set_y(at[str(text.get_gid())] / total)
    for box in fig.legends:
        box.set_bbox_to_anchor((0.0, at["legend"] / total, 1.0, 1.0), transform=fig.transFigure)
    engine.set(rect=(0, below / total, 1, 1 - (above + below) / total))
