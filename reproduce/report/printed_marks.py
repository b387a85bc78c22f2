"""The paper's printed numbers in a picture: open marks with the colours and shapes of their series (`Printed`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import Normal, Stroke

from reproduce.declare.artifact import Artifact, Printed, Window
from reproduce.declare.experiment import Experiment
from reproduce.report import figures, styles
from reproduce.report.histories import Histories
from reproduce.report.metrics import rounds_of
from reproduce.report.names import canonical, pretty
from reproduce.report.styles import Style
from reproduce.report.tables import reported

KEY, HITS = "printed in the paper", "our first hits, of raw curves"


@dataclass(frozen=True)
class Mark:
    """One printed number: its series, from where to where on the x axis, at which height; `bound`: a lower bound."""

    series: str
    x: tuple[float, float]
    y: float
    bound: bool = False


def draw(
    ax: Axes,
    all_: Sequence[Printed],
    artifact: Artifact,
    histories: Histories,
    labels: Mapping[str, Any],
    cells: pd.DataFrame,
) -> dict[str, Mark]:
    """Put the paper's numbers that belong to these labels into the axes, and ours beside those that say where a curve
    is; returns a mark of each series with some."""
    printed = [mark for each in all_ for mark in of(each, artifact, histories.experiments, labels)]
    ours = [mark for each in all_ for mark in _ours(each, histories.experiments, labels, cells)]
    drawn_as = styles.of([*(m.series for m in (*printed, *ours))])
    names = [figures.DIVERGED.sub("", text) for text in ax.get_legend_handles_labels()[1]]
    for mark in ours:
        if pretty(mark.series, artifact.names) in names:
            filled = {"markerfacecolor": drawn_as[mark.series].color, "markersize": 3.6, "gid": "ours", "zorder": 6}
            ax.plot(mark.x, [mark.y, mark.y], **{**_open(drawn_as[mark.series], mark), **filled})
    for mark in printed:
        ax.plot(mark.x, [mark.y, mark.y], **_open(drawn_as[mark.series], mark), gid="printed")
    for marks, label in ((ours, HITS), (printed, KEY)):
        if marks:
            filled = {"markerfacecolor": styles.DARK} if label == HITS else {}
            ax.plot([], [], label=label, **{**_open(Style(styles.DARK, "solid", "o"), marks[0]), **filled})
    return {mark.series: mark for mark in printed}


def _ours(
    each: Printed, experiments: Sequence[Experiment], labels: Mapping[str, Any], cells: pd.DataFrame
) -> Iterator[Mark]:
    """The means over seeds of the same measure, where it is a place on the x axis."""
    rows = cells[cells["metric"] == each.metric] if each.x == "value" and len(cells) else cells[:0]
    for e in experiments:
        matching = rows
        for name in e.labels.keys() & set(rows):
            matching = matching[matching[name].map(canonical) == canonical(e.labels[name])]
        if len(matching):
            x, bound = float(matching["value"].mean()), bool(matching["censored"].any())
            yield Mark(str(e.labels[each.series]), (x, x), _place(each.y, {}, {**e.labels, **labels}), bound)


def key(ax: Axes, mark: Mark, name: str) -> None:
    """An entry of the legend for a series that was not run, so that no line says what the colour of its marks means."""
    ax.plot([], [], label=f"{name} (printed)", **_open(styles.of([mark.series])[mark.series], mark))


def _open(style: Style, mark: Mark) -> dict[str, Any]:
    """Keyword arguments for `Axes.plot`: the mark of the series, or an arrow for a lower bound, or a bar; white inside.
    Bars lie below the lines, which they would hide where they agree with them."""
    if mark.x[0] == mark.x[1]:
        marker = ">" if mark.bound else style.marker
        shape = {"marker": marker, "markersize": 5.5, "markeredgewidth": 1.1, "zorder": 5}
        return {**shape, "color": style.color, "markerfacecolor": "white", "linestyle": "none"}
    edge = [Stroke(linewidth=3.6, foreground=style.color), Normal()]
    return {"color": "white", "linewidth": 1.6, "solid_capstyle": "butt", "path_effects": edge, "zorder": 1.8}


def of(
    each: Printed, artifact: Artifact, experiments: Sequence[Experiment], labels: Mapping[str, Any]
) -> Iterator[Mark]:
    """The marks of `each` in axes with these labels and experiments."""
    known = [{**e.labels, **labels} for e in experiments]
    rows = reported(artifact.paper, each.table)
    assert rows is not None, f"{artifact.id}: the paper's {each.table} has no reported numbers"
    rows = rows[(rows["metric"] == each.metric) & rows["paper"].notna()]
    needed = {where for where in (each.x, each.y) if isinstance(where, str) and where != "value"}
    for row in rows.to_dict("records"):
        setting = {str(k): v for k, v in row.items() if k != "metric" and not str(k).startswith("paper")}
        if not all(canonical(setting[k]) == canonical(v) for k, v in each.only.items()):
            continue
        free = {k: v for k, v in setting.items() if k not in each.only}
        for e, own in zip(experiments, known, strict=True):
            if needed <= own.keys() and all(canonical(own[k]) == canonical(v) for k, v in free.items() if k in own):
                values = {**setting, "value": row["paper"]}
                x, y = _span(each.x, values, own, e), _place(each.y, values, own)
                yield Mark(str(setting[each.series]), x, y, bool(row["paper_censored"]))
                break


def _place(where: str | float, row: Mapping[str, Any], labels: Mapping[str, Any]) -> float:
    return float(where if not isinstance(where, str) else row[where] if where in row else labels[where])


def _span(where: Any, row: Mapping[str, Any], labels: Mapping[str, Any], e: Experiment) -> tuple[float, float]:
    if isinstance(where, Window):
        return rounds_of(where, e, str(row["transition"]))
    if isinstance(where, tuple):
        return where
    place = _place(where, row, labels)
    return place, place
