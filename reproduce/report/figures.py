"""Figures for print: one style, and intervals over seeds. Styles of series are in `report.styles`.

A picture makes its axes with `sheet`, fills them with `curves`, or with `dots` or a `heatmap` of `report.categories`,
and ends with the `legend` of `report.captions`; `save` writes it. Sizes are in inches. All of it follows the width that
`style` was given: in a column there are fewer axes beside each other, and letters keep their size.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox, TransformedBbox

from reproduce import files
from reproduce.declare.paper import metric
from reproduce.report.metrics import t_interval
from reproduce.report.names import pretty
from reproduce.report.styles import BLUE, DASHES, GREEN, GREY, PURPLE, SMALL, VERMILLION, Style
from reproduce.report.styles import of as styles_of

Spread: TypeAlias = Literal["band", "bars", "end", "seeds"] | None
FULL = 7.0
LEAST = 1.4
"""The width below which axes do not stand beside each other."""
COLUMN = 6.4
"""The height of all axes in a column, at most, unless they become too low."""
MANY, FEW = 3, 4
STRIP = 0.022
"""Of the width of axes, that an interval at the end of a line takes beside them, where x has no values."""
PAD = 0.04
"""Around axes, a legend and a text, in inches."""
DIVERGED = re.compile(r" \((\d+ of \d+ )?diverged\)$")
"""The text that `curves` adds to the name of a series of which seeds diverged; the group is there if some did not."""

RC: Mapping[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 7.5, "axes.titlesize": 8, "axes.labelsize": 7.5,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7.5, "axes.titlepad": 4, "axes.labelpad": 2.5,
    "axes.linewidth": 0.6, "axes.edgecolor": "#404040", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#d9d9d9", "grid.linewidth": 0.5,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "xtick.major.pad": 2, "ytick.major.pad": 2, "lines.linewidth": 1.2, "lines.markersize": 3.9,
    "patch.linewidth": 0.5, "hatch.linewidth": 0.5, "legend.frameon": False, "legend.handlelength": 3.4,
    "legend.columnspacing": 1.4, "legend.handletextpad": 0.5, "axes.formatter.useoffset": False,
    "axes.prop_cycle": f"cycler(color={[BLUE, VERMILLION, GREEN, PURPLE]})",
    "pdf.fonttype": 42, "ps.fonttype": 42, "savefig.dpi": 200, "svg.hashsalt": "reproduce", "image.cmap": "cividis",
}  # fmt: skip


def style(width: float = FULL) -> AbstractContextManager[None]:
    """The style of all figures: `with style(): ...` around drawing and saving. width: of figures, at most."""
    # From matplotlib's defaults, so that a matplotlibrc on the machine does not show in the figures.
    return mpl_style.context(["default", {**RC, "figure.figsize": (width, width)}])


def page() -> float:
    """The width that the style was given."""
    return float(rcParams["figure.figsize"][0])


def fits(least: float = LEAST) -> int:
    """The number of axes of at least this width in a row."""
    return max(1, int(page() / least))


def sheet(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = FULL,
    height: float | None = None,
    sharex: bool | str = False,
    sharey: bool | str = False,
    least: float = LEAST,
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes, shape (rows, columns); a row with more axes than fit goes on in the next line.

    height: of one row of axes (default: from its width). least: the width of an axes.
    """
    lines = -(-columns // fits(least))
    across = -(-columns // lines)
    tall = height or min(2.3, max(1.5, 0.8 * width / across))
    if page() < FULL:  # rows that were beside each other stand below each other
        tall = min(tall, max(1.2, COLUMN / (rows * lines)))
    fig = _figure(width, rows * lines * tall)
    more: dict[str, Any] = {"sharex": sharex, "sharey": sharey, "squeeze": False}
    axes = fig.subplots(rows * lines, across, **more).reshape(rows, lines * across)
    for ax in axes[:, columns:].flat:
        ax.set_visible(False)
    return fig, axes[:, :columns]


def stack(heights: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """A figure and axes of these heights, below one another."""
    fig = _figure(FULL, sum(heights))
    return fig, list(fig.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])


def _figure(width: float, height: float) -> Figure:
    """A figure as wide as the style allows."""
    fig = Figure(figsize=(min(width, page()), height), layout="constrained")
    engine: Any = fig.get_layout_engine()
    engine.set(w_pad=PAD, h_pad=PAD, wspace=0.03, hspace=0.04)
    return fig


def curves(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str = "round",
    series: str = "algorithm",
    order: Sequence[object] | None = None,
    spread: Spread = None,
    styles: Mapping[str, Style] | None = None,
    names: Mapping[str, str] | None = None,
    markers: int = 8,
    start: float = -np.inf,
) -> None:
    """One line per value of `series`: the mean over seeds, and its 95 % t-interval, which one seed has none of.

    spread: the interval as a "band", as ten "bars" per line, as one bar beside the axes for the "end" of each line, or
    thin lines of the "seeds". By itself it is at the end where there are more than `MANY` lines, whose bands would hide
    one another, and of fewer than `FEW` seeds it is their lines, beside which an interval is as high as the axes.
    start: the least `x` that is drawn; what lies before it still says which seeds diverged. Needs the columns `series`,
    `seed`, `metric`, `value` and `x`; seeds that were evaluated at different times are put on a common grid by linear
    interpolation.

    A seed that diverged, early or late, is left out from the first round on: results say it of the whole run, and a
    line that seeds leave one by one would jump. Cells keep what such a seed has from before: the value of a round, the
    mean of a window that it outlasted, when it reached a target; only means of the last rounds are without it. The
    label counts such seeds; if all diverged, it is all that there is. A line ends where the first of its seeds does,
    as one that was followed only to its target. It ends with a cross where a seed has no finite value any more
    although its run went on, as a loss that overflows.
    """
    present = list(dict.fromkeys(frame[series]))
    selected = [s for s in order if s in present] if order is not None else present
    styles = styles or styles_of(selected)
    spread = spread or ("end" if len(selected) > MANY else "band" if frame["seed"].nunique() >= FEW else "seeds")
    for k, name in enumerate(selected):
        style, of_series = styles[str(name)], frame[frame[series] == name]
        kept = lasting(of_series)
        table = _table(kept[kept[x] >= start], x, kept["seed"].unique())
        alive = np.isfinite(table.to_numpy(float)).all(axis=1)
        line = table if alive.all() else table.iloc[: int(np.argmin(alive))]
        if line.empty:
            ended = len(kept) and table.empty  # before `start`, at its target
            ax.plot([], [], label=pretty(name, names) + ("" if ended else " (diverged)"), **style.plot)
            continue
        shift = k / len(selected)
        rows = line.melt(ignore_index=False).assign(metric=of_series["metric"].iloc[0])
        label, marked = pretty(name, names) + _lost(of_series, kept), (0.8 * shift / markers, 0.8 / markers)
        mean(ax, rows.index, rows, spread=spread, shift=shift, label=label, markevery=marked, **style.plot)
        if spread == "seeds" and line.shape[1] > 1:
            ax.plot(line.index, line, color=style.color, linewidth=0.4, alpha=0.7, zorder=1.6, gid="seeds")
        if spread == "end" and line.shape[1] > 1:
            low, high = interval(rows)(line.iloc[-1])
            beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "gid": "end"}
            at, strip = 1 + STRIP * (k + 1), TransformedBbox(Bbox([[1, 0], [2, 1]]), ax.transAxes)
            bar = ax.plot([at, at], [low, high], color=style.color, linewidth=1.0, zorder=2.4, **beside)
            dot = ax.plot(at, line.iloc[-1].mean(), **{**style.plot, "linestyle": "none", "markersize": 3.2}, **beside)
            for mark in (*bar, *dot):
                mark.set_clip_path(None)
                mark.set_clip_box(strip)
        if len(line) < len(table):
            cross: dict[str, Any] = {"marker": "x", "markersize": 6, "markeredgewidth": 1.4}
            ax.plot(line.index[-1:], line[-1:].mean(axis=1), color=style.color, zorder=4, gid="diverged", **cross)
    ax.margins(x=0.02)


def mean(ax: Axes, x: Iterable[float], rows: pd.DataFrame, *, spread: Spread, shift: float = 0.0, **line: Any) -> None:
    """One line: the means of `rows` with equal `x`, and their intervals as in `curves`; bars moved by the share `shift`
    of their distance, so that neighbouring lines do not hide them. line: keyword arguments for `Axes.plot`."""
    import seaborn

    every, spread = max(1, len(set(x)) // 10), spread if spread not in ("end", "seeds") else None
    error_style: dict[str, Any] = {"alpha": 0.16, "linewidth": 0, "zorder": 1.5}
    if spread == "bars":
        error_style = {"elinewidth": 0.7, "capsize": 1.4, "capthick": 0.7, "zorder": 2}
        error_style["errorevery"] = (int(shift * every), every)
    # On a logarithmic axis seaborn hands out logarithms; the means are those of the values all the same.
    shown, ends = ax.yaxis.get_transform().transform, interval(rows)
    values = ax.yaxis.get_transform().inverted().transform
    seaborn.lineplot(
        x=x, y=rows["value"].to_numpy(float), estimator=lambda y: float(shown(fmean(values(y)))),
        errorbar=(lambda y: shown(ends(values(y)))) if spread and rows["seed"].nunique() > 1 else None,
        err_style=spread, err_kws={**error_style, "gid": spread}, legend=False, ax=ax, **line,
    )  # fmt: skip


def interval(rows: pd.DataFrame) -> Callable[[Any], np.ndarray]:
    """The `errorbar` of seaborn for rows of one metric: the 95 % t-interval of a mean, within what it can be."""
    ends = metric(str(rows["metric"].iloc[0])).range
    return lambda values: np.clip(t_interval(list(values)), *ends)


def lasting(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one series without those of seeds that diverged: a row says so, or none has a finite value."""
    kept = frame["seed"].isin(frame.loc[np.isfinite(frame["value"].astype(float)), "seed"])
    if "status" in frame:
        kept &= ~frame["seed"].isin(frame.loc[frame["status"] == "diverged", "seed"])
    return frame[kept]


def _lost(rows: pd.DataFrame, kept: pd.DataFrame) -> str:
    """A remark on the seeds of a series that are left out; "" for none."""
    seeds, remaining = rows["seed"].nunique(), kept["seed"].nunique()
    return f" ({seeds - remaining} of {seeds} diverged)" if remaining < seeds else ""


def reference(
    ax: Axes, value: float, label: str = "", dashes: str = "dotted", upright: bool = False, color: str = GREY
) -> None:
    """A thin line across the axes at `value`: a target, a limit, the beginning of a session."""
    line: dict[str, Any] = {"color": color, "linewidth": 0.9, "linestyle": DASHES[dashes], "gid": "reference"}
    (ax.axvline if upright else ax.axhline)(value, zorder=1.2, label=label or None, **line)


def chance(ax: Axes, classes: int) -> None:
    """The accuracy of guessing one of the classes, where a line ends near it: in the lowest fifth of what is above."""
    lines = [np.asarray(line.get_ydata(), dtype=float)[-1:] for line in ax.lines if line.get_gid() is None]
    if classes and any(end < 20 + 80 / classes for line in lines for end in line):
        reference(ax, 100 / classes, "chance", "dashed")


def plain_log(ax: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic `which` axis with plain numbers at 1, 2 and 5 times powers of ten, or at the powers where others
    would not fit."""
    ax.set(**{f"{which}scale": "log"})
    axis, needed = (ax.xaxis, 0.9) if which == "x" else (ax.yaxis, 0.35)

    def text(value: float, _: float) -> str:
        size = ax.bbox.width if which == "x" else ax.bbox.height
        low, high = np.log10(axis.get_view_interval())
        fits = size / ax.figure.dpi > needed * (high - low)  # inches per power of ten
        return f"{value:g}" if fits or np.log10(value).round(6) % 1 == 0 else ""

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(text)


def direct(ax: Axes) -> None:
    """Names at the ends of the lines in place of their entries of the legend."""
    lines: Any = ax.get_legend_handles_labels()[0]
    handles = [line for line in lines if line.get_gid() is None and len(line.get_ydata())]
    named(ax, {line.get_label(): (line.get_ydata()[-1], line.get_color()) for line in handles})
    for line in handles:
        line.set_label(f"_{line.get_label()}")


def named(ax: Axes, places: Mapping[str, tuple[float, str]]) -> None:
    """Names with their colours at the right of lines that end at these values: as near as they can be without lying on
    one another, and thin leaders to the lines."""
    low, high = ax.yaxis.get_transform().transform(np.array(ax.get_ylim()))
    shown = ax.yaxis.get_transform().transform
    at = {text: float(shown([y])[0] - low) / (high - low) for text, (y, _) in places.items()}
    inches = ax.bbox.height / ax.figure.dpi
    tall = {text: (text.count("\n") + 1) * 0.1 / inches for text in at}
    strip: list[float] = [np.asarray(line.get_xdata(), float)[0] for line in ax.lines if line.get_gid() == "end"]
    side = max((at + STRIP / 2 for at in strip), default=1.0)
    ordered, free = sorted(at, key=lambda text: at[text]), -1.0
    for i, text in enumerate(ordered):  # from below, with room for those above
        middle = max(min(at[text], 1 - sum(tall[t] for t in ordered[i + 1 :]) - tall[text] / 2), free + tall[text] / 2)
        free = middle + tall[text] / 2
        style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "axes fraction", "annotation_clip": False}
        # A leader ends where its name begins, not in the middle of it, where it would cross the one below.
        thin = {"color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        style["arrowprops"] = {"arrowstyle": "-", **thin}
        style |= {"va": "center", "fontsize": SMALL, "color": places[text][1]}
        ax.annotate(text, (side, at[text]), (side + 0.05, middle), **style)


def save(fig: Figure, path: Path) -> list[Path]:
    """Write `path`.pdf (TrueType fonts embedded), without the line above, and `path`.png (200 dpi), without dates, so
    that equal figures give equal files; returns both paths. `path` has no ending."""
    with style():
        lay_out(fig)
        png = _written(fig, path, "png", ("Software",))
        width, height = fig.get_size_inches()
        for text in (text for text in fig.texts if text.get_gid() == "above"):
            height = round(text.get_window_extent().y0 / fig.dpi, 3)
            text.set_visible(False)
        below = Bbox.from_extents(0, 0, width, height)
        pdf = _written(fig, path, "pdf", ("CreationDate", "Creator", "Producer"), bbox_inches=below)
    return [pdf, png]


def _written(fig: Figure, path: Path, kind: str, without: Iterable[str], **more: Any) -> Path:
    save = partial(fig.savefig, format=kind, metadata=dict.fromkeys(without), **more)
    return files.write(path.with_name(f"{path.name}.{kind}"), save)


def lay_out(fig: Figure) -> None:
    """Find the places of all parts, beside which the panels keep their height, once: each file that is written would
    else find them again. They are rounded, since their last digits follow from addresses in memory."""
    FigureCanvasAgg(fig)
    fig.set_dpi(RC["savefig.dpi"])
    parts = [*fig.legends, *(text for text in fig.texts if text.get_visible())]
    more = sum(part.get_window_extent().height / fig.dpi + 2 * PAD for part in parts)
    fig.set_figheight(fig.get_figheight() + more)
    engine = fig.get_layout_engine()
    assert engine is not None
    engine.execute(fig)
    fig.set_layout_engine(None)
    for ax in fig.axes:
        ax.set_position(np.round(ax.get_position(original=True).bounds, 6).tolist())


def _table(rows: pd.DataFrame, x: str, seeds: np.ndarray) -> pd.DataFrame:
    """The values of one series: a row per `x` that all `seeds` have, ascending, and a column per seed; infinite where
    a run had no finite one."""
    finite = rows.dropna(subset=[x]).assign(value=rows["value"].astype(float).fillna(np.inf))
    table = finite.pivot_table("value", x, "seed", aggfunc="last").reindex(columns=seeds)
    return (table.interpolate("index", limit_area="inside") if x == "time" else table).dropna()
