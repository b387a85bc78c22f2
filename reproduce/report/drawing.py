"""What the pictures of `declare` mean: an artifact's histories and cells as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact, Curves
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
    if not isinstance(artifact.draw, Curves):
        assert artifact.draw is not None
        figure: Figure = function(artifact.paper, artifact.draw)(histories, cells)
        return figure
    return curves(artifact.draw, artifact, histories)


def curves(picture: Curves, artifact: Artifact, histories: Histories) -> Figure:
    """One axes per combination of the labels `picture.axes` that is declared at this scale, run or not."""
    places = _places(picture, artifact, histories.scale)
    across = picture.across or len(places)
    lines = -(-len(places) // across)
    fig, axes = figures.sheet(lines, across, **picture.sheet)
    for ax, (values, panel) in zip(axes.flat, places.items(), strict=False):
        labels = dict(zip(picture.axes, values, strict=True))
        ax.set_title(picture.title.format(**{k: pretty(v, artifact.names) for k, v in labels.items()}))
        rows = _rows(picture, histories.frame, labels)
        if rows.empty:
            figures.missing(ax, histories.reason(panel) or "no results")
            continue
        _lines(ax, picture, rows, artifact)
        ax.set_xlabel(picture.xlabel)
    for ax in axes[:, 0]:
        ax.set_ylabel(picture.ylabel)
    for ax in axes.flat[len(places) :]:
        ax.set_visible(False)
    figures.legend(fig)
    return fig


def _places(picture: Curves, artifact: Artifact, scale: str) -> dict[tuple[Any, ...], str]:
    """Values of the labels that make an axes -> the panel that they come from."""
    places: dict[tuple[Any, ...], str] = {}
    for panel in artifact.panels(scale):
        for e in panel.experiments:
            if all(e.labels.get(k) in values for k, values in picture.only.items()):
                places.setdefault(tuple(e.labels[k] for k in picture.axes), panel.name)
    return places


def _rows(picture: Curves, frame: pd.DataFrame, labels: dict[str, Any]) -> pd.DataFrame:
    rows = frame[frame["metric"] == picture.metric]
    for name, value in labels.items():
        rows = rows[rows[name] == value]
    for name, values in picture.only.items():
        rows = rows[rows[name].isin(values)]
    if picture.every > 1:
        rows = rows[rows["round"] % picture.every == 0]
    if picture.until and len(rows):
        rows = rows[rows[picture.x] <= rows[picture.until]]
    return rows


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
    if picture.also:
        function(artifact.paper, picture.also)(ax, rows)
