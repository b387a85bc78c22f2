"""What the pictures of `declare` mean: an artifact's histories and cells as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.declare.artifact import Artifact, Curves, Filled, Sheet
from reproduce.report import captions, figures, marks, metrics
from reproduce.report.code import function
from reproduce.report.names import pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.declare.experiment import Experiment
    from reproduce.report.histories import Histories

ALONE = 4.4
"""Width of a picture of one axes, in inches."""


def draw(artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """The picture of an artifact."""
    if isinstance(artifact.draw, Sheet):
        return sheet(artifact.draw, artifact, histories, cells)
    assert artifact.draw is not None
    figure: Figure = function(artifact.paper, artifact.draw)(histories, cells)
    return figure


def nothing(artifact: Artifact, reason: str) -> Figure:
    """The picture of an artifact without any results: a line that says so."""
    fig, axes = figures.sheet(width=ALONE, height=0.15)
    axes[0, 0].set_visible(False)
    figures.absent(fig, {artifact.title: reason})
    return fig


def sheet(picture: Sheet, artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """One axes, or block of axes, per combination of the labels that was run; a line of text names the others."""
    drawn: list[tuple[str, dict[str, Any], Histories]] = []
    reasons, lost = dict[str, str](), list[tuple[str, list[str], str]]()
    for i, (values, panels) in enumerate(_places(picture, artifact, histories.scale).items()):
        labels = dict(zip(picture.axes, values, strict=True))
        shown = {k: pretty(v, artifact.names) for k, v in labels.items()}
        title = picture.title.format(letter=chr(ord("a") + i), **shown)
        name, why = title or ", ".join(shown.values()), next(filter(None, map(histories.reason, panels)), "no results")
        here = _of(histories, labels, picture)
        if here.frame.empty:
            reasons[name] = why
        else:
            drawn.append((title, labels, here))
            lost.append((name, _lost(here, picture.series, artifact), why))
    if not drawn:
        return nothing(artifact, "; ".join(dict.fromkeys(reasons.values())) or "no results")

    across = min(picture.across or len(drawn), len(drawn))
    down, beside = picture.each if isinstance(picture, Filled) else (1, 1)
    lines, columns = -(-len(drawn) // across) * down, across * beside
    width = {"width": ALONE} if columns == 1 else {}
    fig, axes = figures.sheet(lines, columns, **{**width, **picture.sheet})
    blocks = axes.reshape(-1, down, across, beside).swapaxes(1, 2).reshape(-1, down, beside)
    marked: dict[str, marks.Mark] = {}
    for block, (title, labels, here) in zip(blocks, drawn, strict=False):
        if title and histories.seeds_each[0] < histories.seeds_each[1]:
            title += f", {captions.seeds_of(here)}"
        block[0, 0].set_title(title, loc="left" if "{letter}" in picture.title else "center")
        more = _fill(block, picture, artifact, here, labels, cells)
        for ax, beyond in zip(block.flat, more, strict=True):
            if beyond is not None:
                marked |= marks.draw(ax, picture.printed, artifact, here, {**labels, **beyond})
    for ax in blocks[len(drawn) :].flat:
        ax.set_visible(False)
    _label(axes, picture.ylabel)
    named = _named(fig, picture, artifact, marked)
    for title, names, why in lost:
        if gone := [name for name in names if name in named or picture.series != "algorithm"]:
            reasons[f"{title} ({', '.join(gone)})"] = why
    figures.absent(fig, reasons)
    figures.legend(fig, picture.legend or None)
    return fig


def _named(fig: Figure, picture: Sheet, artifact: Artifact, marked: Mapping[str, marks.Mark]) -> set[str]:
    """The series of a picture, drawn or not; one that has marks only gets an entry of the legend."""
    drawn = {figures.DIVERGED.sub("", text) for ax in fig.axes for text in ax.get_legend_handles_labels()[1]}
    names = {pretty(name, artifact.names): mark for name, mark in marked.items() if name}
    for name in [name for name in names if name not in drawn]:
        marks.key(fig.axes[-1], replace(names[name], bound=False), name)
    ordered = picture.order if isinstance(picture, Curves) else ()
    return {*drawn, *names, *(pretty(name, artifact.names) for name in ordered)}


def _lost(here: Histories, series: str, artifact: Artifact) -> list[str]:
    """The series of an axes that have no results."""
    declared = dict.fromkeys(str(e.labels[series]) for e in here.experiments if series in e.labels)
    found = set(here.frame[series].astype(str)) if series in here.frame else set(declared)
    gone = [pretty(name, artifact.names) for name in declared if name not in found]
    return gone if series == "algorithm" else [f"{series} = {name}" for name in gone]


def _places(picture: Sheet, artifact: Artifact, scale: str) -> dict[tuple[Any, ...], list[str]]:
    """Values of the labels that make an axes -> the panels that they come from, in the order of the axes."""
    places: dict[tuple[Any, ...], list[str]] = {}
    for panel in artifact.panels(scale):
        for e in panel.experiments:
            if _has(e, picture.only):
                places.setdefault(tuple(e.labels[k] for k in picture.axes), []).append(panel.name)
    if not set(picture.axes) <= set(picture.only):
        return places
    listed = [picture.only[k] for k in picture.axes]
    return {at: places[at] for at in sorted(places, key=lambda at: [*map(tuple.index, listed, at)])}


def _has(e: Experiment, wanted: Mapping[str, tuple[Any, ...]]) -> bool:
    return all(e.labels.get(k) in values for k, values in wanted.items())


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
            found = frame[name].isin(values)
            frame = frame[found | frame[name].isna() if None in values else found]
        elif None not in values:
            return frame.iloc[:0]
    return frame


def _fill(
    block: np.ndarray, picture: Sheet, artifact: Artifact, here: Histories, labels: dict[str, Any], cells: pd.DataFrame
) -> list[dict[str, Any] | None]:
    """Draw one combination; what labels each of its axes has beyond it, None where no number of the paper belongs."""
    found = None
    if isinstance(picture, Curves):
        _lines(block[0, 0], picture, here.frame, artifact)
    elif isinstance(picture, Filled):
        options = {}
        if picture.alike:
            means = metrics.over_seeds(_matching(cells, {k: labels[k] for k in picture.alike}, picture))["mean"]
            options["limits"] = (means.min(), means.max())
        axes = block[0, 0] if block.size == 1 else block
        found = function(artifact.paper, picture.fill)(axes, here, _matching(cells, labels, picture), **options)
    return [{} for _ in block.flat] if found is None else list(found)


def _lines(ax: Axes, picture: Curves, rows: pd.DataFrame, artifact: Artifact) -> None:
    curve = metrics.smooth(rows, picture.smooth) if picture.smooth > 1 else rows
    options: dict[str, Any] = {"x": picture.x, "series": picture.series, "order": picture.order or None}
    figures.curves(ax, curve, spread=picture.spread, names=artifact.names, **options)
    target = picture.target
    if isinstance(target, str):  # a label that experiments of this scale need not have
        target = rows[target].iloc[0] if target in rows else np.nan
    if np.isfinite(target):
        figures.reference(ax, float(target), "target")
    ax.set_xlabel(picture.xlabel)
    if picture.also:
        function(artifact.paper, picture.also)(ax, rows)


def _label(axes: np.ndarray, ylabel: str) -> None:
    """Label the y axes of the first column; other columns only where they have another quantity."""
    for line in axes:
        line[0].set_ylabel(ylabel or line[0].get_ylabel())
        for ax in line[1:]:
            if ax.get_ylabel() == line[0].get_ylabel():
                ax.set_ylabel("")
