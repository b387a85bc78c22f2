"""What the pictures of `declare` mean: an artifact's histories and cells as a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact, Curves, Filled, Sheet
from reproduce.report import figures, metrics
from reproduce.report.code import function
from reproduce.report.names import pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


def draw(artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """The picture of an artifact."""
    if isinstance(artifact.draw, Sheet):
        return sheet(artifact.draw, artifact, histories, cells)
    assert artifact.draw is not None
    figure: Figure = function(artifact.paper, artifact.draw)(histories, cells)
    return figure


def sheet(picture: Sheet, artifact: Artifact, histories: Histories, cells: pd.DataFrame) -> Figure:
    """One axes, or block of axes, per combination of the labels that is declared at this scale, run or not."""
    places = _places(picture, artifact, histories.scale)
    across = picture.across or len(places)
    down, beside = picture.each if isinstance(picture, Filled) else (1, 1)
    fig, axes = figures.sheet(-(-len(places) // across) * down, across * beside, **picture.sheet)
    blocks = axes.reshape(-1, down, across, beside).swapaxes(1, 2).reshape(-1, down, beside)
    for i, (values, panel) in enumerate(places.items()):
        block = blocks[i]
        labels = dict(zip(picture.axes, values, strict=True))
        shown = {k: pretty(v, artifact.names) for k, v in labels.items()}
        left = "left" if "{letter}" in picture.title else "center"
        block[0, 0].set_title(picture.title.format(letter=chr(ord("a") + i), **shown), loc=left)
        here = _of(histories, labels, picture)
        if here.frame.empty:
            for ax in block.flat:
                figures.missing(ax, histories.reason(panel) or "no results")
        elif isinstance(picture, Curves):
            _lines(block[0, 0], picture, here.frame, artifact)
        elif isinstance(picture, Filled):
            fill = function(artifact.paper, picture.fill)
            fill(block[0, 0] if block.size == 1 else block, here, _matching(cells, labels, picture))
    for ax in axes[:, 0]:
        ax.set_ylabel(picture.ylabel or ax.get_ylabel())
    for ax in blocks[len(places) :].flat:
        ax.set_visible(False)
    figures.legend(fig, picture.legend or None)
    return fig


def _places(picture: Sheet, artifact: Artifact, scale: str) -> dict[tuple[Any, ...], str]:
    """Values of the labels that make an axes -> the panel that they come from."""
    places: dict[tuple[Any, ...], str] = {}
    for panel in artifact.panels(scale):
        for e in panel.experiments:
            if all(e.labels.get(k) in values for k, values in picture.only.items()):
                places.setdefault(tuple(e.labels[k] for k in picture.axes), panel.name)
    return places


def _of(histories: Histories, labels: dict[str, Any], picture: Sheet) -> Histories:
    """The part of the histories that belongs to an axes."""
    frame = _matching(histories.frame, labels, picture)
    if isinstance(picture, Curves):
        frame = frame[frame["metric"] == picture.metric]
        if picture.every > 1:
            frame = frame[frame["round"] % picture.every == 0]
    wanted = {**picture.only, **{k: (v,) for k, v in labels.items()}}
    kept = [e for e in histories.experiments if all(e.labels.get(k) in values for k, values in wanted.items())]
    return replace(histories, frame=frame, experiments=tuple(kept))


def _matching(frame: pd.DataFrame, labels: dict[str, Any], picture: Sheet) -> pd.DataFrame:
    """The rows with these labels, and with those that are drawn; labels that no result has are those of nobody."""
    for name, values in {**picture.only, **{k: (v,) for k, v in labels.items()}}.items():
        if name in frame:
            found = frame[name].isin(values)
            frame = frame[found | frame[name].isna() if None in values else found]
        elif None not in values:
            return frame.iloc[:0]
    return frame


def _lines(ax: Axes, picture: Curves, rows: pd.DataFrame, artifact: Artifact) -> None:
    shown = metrics.smooth(rows, picture.smooth) if picture.smooth > 1 else rows
    looks = figures.lines(picture.like.values())
    figures.curves(
        ax,
        shown,
        x=picture.x,
        series=picture.series,
        order=picture.order or None,
        band=picture.band,
        styles={series: looks[other] for series, other in picture.like.items()} or None,
        names=artifact.names,
    )
    if picture.target:
        target = rows[picture.target].iloc[0] if isinstance(picture.target, str) else picture.target
        ax.axhline(float(target), color="#404040", linewidth=0.7, linestyle=(0, (1, 1)), zorder=1)
    ax.set_xlabel(picture.xlabel)
    if picture.also:
        function(artifact.paper, picture.also)(ax, rows)
