"""Figures from the pictures of `declare`, an artifact's histories and its per-seed values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduce.declare.artifact import Artifact, Curves, Filled, Sheet
from reproduce.declare.experiment import Experiment
from reproduce.report import captions, entries, figures, metrics, printed_marks
from reproduce.report.histories import Histories
from reproduce.report.names import pretty
from reproduce.text import counted_seeds

ALONE = 4.4
"""Width of a picture of one axes, in inches."""


def draw(artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """The picture of an artifact, with a line above that says what it is of."""
    if artifact.panels(histories.scale) and histories.frame.empty:
        fig = nothing(artifact, "; ".join(dict.fromkeys(reason for _, reason in histories.missing)) or "no results")
    elif isinstance(artifact.draw, Sheet):
        fig = sheet(artifact.draw, artifact, histories, cells)
    else:
        assert artifact.draw is not None
        fig = artifact.draw(histories, cells)
        captions.titles(fig, {})
    captions.say(fig, captions.headline(artifact, histories, fig))
    return fig


def nothing(artifact: Artifact, reason: str) -> Figure:
    """The picture of an artifact without any results, with nothing in it; its note says so."""
    fig, axes = figures.sheet(width=ALONE, height=0.15)
    axes[0, 0].set_visible(False)
    captions.absent(fig, [(artifact.title, reason)])
    return fig


@dataclass(frozen=True, eq=False)
class Place:
    """An axes, or a block of them, of a figure. series: those it is declared to have, whether they were run. reason:
    why not all were."""

    title: str
    labels: dict[str, Any]
    histories: Histories
    series: dict[str, bool]
    reason: str


def sheet(picture: Sheet, artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """One axes, or block of axes, per combination of the labels that has results; a remark names the others. The
    figure's label says how many were run, if not all."""
    places = _places(picture, artifact, histories)
    shown = [place for place in places if len(place.histories.frame)]
    if not shown:
        return nothing(artifact, "; ".join(dict.fromkeys(place.reason for place in places)) or "no results")
    down, beside = picture.each if isinstance(picture, Filled) else (1, 1)
    fits = figures.fits(picture.sheet.get("least", figures.LEAST)) // beside
    across = max(1, min(picture.across or len(shown), len(shown), fits))
    lines, columns = -(-len(shown) // across) * down, across * beside
    width = {"width": ALONE} if columns == 1 else {}
    fig, axes = figures.sheet(lines, columns, **{**width, **picture.sheet})
    blocks = axes.reshape(-1, down, across, beside).swapaxes(1, 2).reshape(-1, down, beside)
    marked: dict[str, printed_marks.Mark] = {}
    for block, place in zip(blocks, shown, strict=False):
        title = place.title
        if title and histories.seeds_each[0] < histories.seeds_each[1]:
            title = f"{title}, {counted_seeds(*place.histories.seeds_each)}".replace(" seed", "\xa0seed")
        block[0, 0].set_title(title, loc="left" if "{letter}" in picture.title else "center")
        more = _fill(block, picture, artifact, place.histories, place.labels, cells)
        for ax, beyond in zip(block.flat, more, strict=True):
            if beyond is not None and (histories.scale == "paper" or entries.comparable(artifact, histories.scale)):
                marked |= printed_marks.draw(
                    ax, picture.printed, artifact, place.histories, {**place.labels, **beyond}, cells
                )
    for ax in blocks[len(shown) :].flat:
        ax.set_visible(False)
    for block, place in zip(blocks, shown, strict=False):
        for ax in (ax for ax in block.flat if "accuracy" in (ax.get_ylabel() or picture.ylabel)):
            figures.chance(ax, getattr(getattr(place.histories.experiments[0].problem, "source", None), "classes", 0))
    captions.outer(fig, picture.ylabel)
    named = _named(fig, picture, artifact, marked)
    every = picture.series != "algorithm"  # else the picture draws those that it names
    not_run = [[name for name, run in p.series.items() if not run and (every or name in named)] for p in shown]
    reasons = [(f"{p.title} ({', '.join(names)})", p.reason) for p, names in zip(shown, not_run, strict=True) if names]
    captions.absent(fig, [*((p.title, p.reason) for p in places if p not in shown), *reasons])
    run = {name for p in shown for name, ran in p.series.items() if ran}
    counts = ((len(shown), len(places), "panels"), (len(run), len(run.union(*not_run)), "series"))
    fig.set_label(", ".join(f"{count} of {total} {what}" for count, total, what in counts if count < total))
    if isinstance(picture, Curves) and picture.spread == "end":
        for block in blocks[: len(shown)]:
            figures.direct(block[0, 0])
    captions.legend(fig)
    captions.titles(fig, {block[0, 0]: beside for block in blocks})
    return fig


def _named(fig: Figure, picture: Sheet, artifact: Artifact, marked: Mapping[str, printed_marks.Mark]) -> set[str]:
    """The series of a picture, drawn or not; one that has marks only gets an entry of the legend."""
    labels = {figures.DIVERGED.sub("", text) for ax in fig.axes for text in ax.get_legend_handles_labels()[1]}
    names = {pretty(name, artifact.names): mark for name, mark in marked.items() if name}
    for name in [name for name in names if name not in labels]:
        printed_marks.key(fig.axes[-1], replace(names[name], bound=False), name)
    ordered = picture.order if isinstance(picture, Curves) else ()
    return {*labels, *names, *(pretty(name, artifact.names) for name in ordered)}


def _series(histories: Histories, series: str, artifact: Artifact) -> dict[str, bool]:
    """The series that an axes is declared to have, and whether they have results."""
    declared = dict.fromkeys(str(e.labels[series]) for e in histories.experiments if series in e.labels)
    values = set(histories.frame[series].astype(str)) if series in histories.frame else set(declared)
    of = "" if series == "algorithm" else f"{series} = "
    return {f"{of}{pretty(name, artifact.names)}": name in values for name in declared}


def _places(picture: Sheet, artifact: Artifact, histories: Histories) -> list[Place]:
    """The combinations with an axes each, in order."""
    panels: dict[tuple[Any, ...], list[str]] = {}
    for panel in artifact.panels(histories.scale):
        for e in panel.experiments:
            if _has(e, picture.only):
                panels.setdefault(tuple(e.labels[k] for k in picture.axes), []).append(panel.name)
    order = list(panels)
    if set(picture.axes) <= set(picture.only):
        listed = [picture.only[k] for k in picture.axes]
        order.sort(key=lambda at: [*map(tuple.index, listed, at)])
    places = []
    for i, values in enumerate(order):
        labels = dict(zip(picture.axes, values, strict=True))
        shown = {k: pretty(v, artifact.names) for k, v in labels.items()}
        title = picture.title.format(letter=chr(ord("a") + i), **shown)
        reason = next((reason for panel, reason in histories.missing if panel in panels[values]), "no results")
        part = _of(histories, labels, picture)
        places.append(Place(title, labels, part, _series(part, picture.series, artifact), reason))
    return places


def _has(e: Experiment, allowed: Mapping[str, tuple[Any, ...]]) -> bool:
    return all(e.labels.get(k) in values for k, values in allowed.items())


def _of(histories: Histories, labels: dict[str, Any], picture: Sheet) -> Histories:
    """The part of the histories that belongs to an axes."""
    frame = _matching(histories.frame, labels, picture)
    if isinstance(picture, Curves):
        frame = frame[(frame["metric"] == picture.metric) & (frame["round"] % picture.every == 0)]
    kept = [e for e in histories.experiments if _has(e, {**picture.only, **{k: (v,) for k, v in labels.items()}})]
    return replace(histories, frame=frame, experiments=tuple(kept))


def _matching(frame: pd.DataFrame, labels: Mapping[str, Any], picture: Sheet) -> pd.DataFrame:
    """The rows with these labels, and with those that are drawn; labels that no result has are those of nobody."""
    for name, values in {**picture.only, **{k: (v,) for k, v in labels.items()}}.items():
        if name in frame:
            chosen = frame[name].isin(values)
            frame = frame[chosen | frame[name].isna() if None in values else chosen]
        elif None not in values:
            return frame.iloc[:0]
    return frame


def _fill(
    block: np.ndarray, picture: Sheet, artifact: Artifact, part: Histories, labels: dict[str, Any], cells: pd.DataFrame
) -> list[dict[str, Any] | None]:
    """Draw one combination; what labels each of its axes has beyond it, None where no number of the paper belongs."""
    beyond = None
    if isinstance(picture, Curves):
        _lines(block[0, 0], picture, part.frame, artifact)
    elif isinstance(picture, Filled):
        options = {}
        if picture.alike:
            means = metrics.over_seeds(_matching(cells, {k: labels[k] for k in picture.alike}, picture))["mean"]
            options["limits"] = (means.min(), means.max())
        axes = block[0, 0] if block.size == 1 else block
        beyond = picture.fill(axes, part, _matching(cells, labels, picture), **options)
    return [{} for _ in block.flat] if beyond is None else list(beyond)


def _lines(ax: Axes, picture: Curves, rows: pd.DataFrame, artifact: Artifact) -> None:
    curve = metrics.smooth(rows, picture.smooth) if picture.smooth > 1 else rows
    options: dict[str, Any] = {"series": picture.series, "order": picture.order or None, "names": artifact.names}
    options["start"] = sorted(rows["round"].unique())[: picture.smooth][-1]  # where the mean has all its evaluations
    figures.curves(ax, curve, spread=picture.spread, **options)
    if picture.target in rows and np.isfinite(target := rows[picture.target].iloc[0]):
        figures.reference(ax, float(target), "target")
    ax.set_xlabel("round")
    if picture.also:
        picture.also(ax, rows)
