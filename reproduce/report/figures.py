"""Figures for print: one style, colours that survive greyscale and colour blindness, bands over seeds, a caption.

A `draw` function of an artifact makes the sheet with `sheet`, fills the axes with `curves`, `bars` or `heatmap` and
ends with `legend`; `reproduce.report.render` adds the caption line (`stamp`) and writes the files (`save`). Sizes are
in inches.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.report.entries import scale_line
from reproduce.report.names import heading, pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow (invisible on white), and a grey.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#808080"
DASHES: Mapping[str, Any] = {
    "solid": "-", "dashed": (0, (5, 1.6)), "dotted": (0, (1, 1.3)), "dashdot": (0, (5, 1.4, 1, 1.4)),
    "long": (0, (7, 2.4)), "dashdotdot": (0, (4, 1.3, 1, 1.3, 1, 1.3)),
}  # fmt: skip
LINES = (
    (BLUE, "solid", "o"), (VERMILLION, "dashed", "s"), (GREEN, "dashdot", "^"), (PURPLE, "dotted", "D"),
    (ORANGE, "long", "v"), (SKY, "dashdotdot", "P"), (BLACK, "dashed", "X"), (GREY, "dashdot", "h"),
)  # fmt: skip
# A series keeps its line in every figure. The method a paper proposes is always the first: blue, solid, on top.
FIXED = {
    "proposed": 0, "previous": 1, "average": 2, "continuous": 3, "random_pilot": 4,
    "defedavg_iid": 0, "defedavg_niid": 0, "fedacs": 0, "fedagrac": 0, "fiarse": 0,
    "fedavg": 1, "heterofl": 1, "fedprox": 4, "scaffold": 2, "fedacg": 5, "moon": 6,
    "favano": 2, "asysg": 3, "fedbuff": 4, "ca_fedavg": 2, "fedvarp": 4, "fednova": 3, "fedau": 5, "os": 6,
    "fedrolex": 2, "scalefl": 3, "fjord": 4, "pruning_greedy": 5, "fiarse_layerwise": 6, "fedlin": 5,
}  # fmt: skip
FULL, HALF = 7.0, 3.4
TEXT = 6.5

RC: Mapping[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 7.5, "axes.titlesize": 8, "axes.labelsize": 7.5,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7.5, "axes.titlepad": 4, "axes.labelpad": 2.5,
    "axes.linewidth": 0.6, "axes.edgecolor": "#404040", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#d9d9d9", "grid.linewidth": 0.5,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "xtick.major.pad": 2, "ytick.major.pad": 2, "lines.linewidth": 1.2, "lines.markersize": 3.9,
    "patch.linewidth": 0.5, "hatch.linewidth": 0.5, "legend.frameon": False, "legend.handlelength": 3.4,
    "legend.columnspacing": 1.4, "legend.handletextpad": 0.5, "axes.formatter.useoffset": False,
    "pdf.fonttype": 42, "ps.fonttype": 42, "savefig.dpi": 200, "svg.hashsalt": "reproduce", "image.cmap": "cividis",
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How one series is drawn."""

    color: str
    dashes: Any
    marker: str
    first: bool = False

    @property
    def plot(self) -> dict[str, Any]:
        """Keyword arguments for `Axes.plot`."""
        edge = {"markeredgecolor": "white", "markeredgewidth": 0.35}
        look = {"color": self.color, "linestyle": self.dashes, "marker": self.marker, **edge}
        return {**look, "linewidth": 1.5 if self.first else 1.1, "zorder": 3 if self.first else 2.5}


def style() -> AbstractContextManager[None]:
    """The style of all figures: `with style(): ...` around drawing and saving."""
    from matplotlib import style as mpl_style

    # From matplotlib's defaults, so that a matplotlibrc on the machine does not show in the figures.
    return mpl_style.context(["default", dict(RC)])


def lines(series: Iterable[object]) -> dict[str, Look]:
    """A line for each of the `series`: the fixed one of its name, or the next that is free (more than 8: repeated)."""
    names = list(dict.fromkeys(map(str, series)))
    slots: dict[str, int] = {}
    for name in names:
        slot = FIXED.get(name)
        if slot is not None and slot not in slots.values():
            slots[name] = slot
    for name in names:
        free = [k for k in range(len(LINES)) if k not in slots.values()]
        slots.setdefault(name, free[0] if free else len(slots) % len(LINES))
    return {n: Look(LINES[k][0], DASHES[LINES[k][1]], LINES[k][2], k == 0) for n in names for k in [slots[n]]}


def sheet(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = FULL,
    height: float | None = None,
    sharex: bool | str = False,
    sharey: bool | str = False,
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes, shape (rows, columns); `height` of one row of panels (default: from its width)."""
    from matplotlib.figure import Figure

    each = height or min(2.3, max(1.5, 0.8 * width / columns))
    with style():
        fig = Figure(figsize=(width, each * rows), layout="constrained")
        engine: Any = fig.get_layout_engine()
        engine.set(w_pad=0.04, h_pad=0.04, wspace=0.03, hspace=0.04)
        axes = fig.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)  # type: ignore[arg-type]
    return fig, axes


def curves(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str = "round",
    y: str = "value",
    series: str = "algorithm",
    order: Sequence[object] | None = None,
    band: str | None = "minmax",
    styles: Mapping[str, Look] | None = None,
    names: Mapping[str, str] | None = None,
    markers: int = 8,
) -> None:
    """One line per value of `series`: the mean over seeds, and what the seeds span.

    band: "minmax", "sd" (mean ± sample standard deviation) or None. Needs the columns `series`, `seed`, `x` and `y`;
    seeds that were evaluated at different times are put on a common grid by linear interpolation. A line stops, with a
    cross, where the first of its seeds has no finite value any more (diverged).
    """
    if band not in ("minmax", "sd", None):
        raise ValueError(f"band '{band}': use 'minmax', 'sd' or None")
    found = list(dict.fromkeys(frame[series]))
    wanted = [s for s in order if s in found] if order is not None else found
    styles = styles or lines(wanted)
    if "status" in frame:
        frame = frame.assign(**{y: frame[y].where(frame["status"] != "diverged")})
    for k, name in enumerate(wanted):
        line = styles[str(name)]
        at, values = _grid(frame[frame[series] == name], x, y)
        alive = np.isfinite(values).all(axis=0)
        end = len(at) if alive.all() else int(np.argmin(alive))
        if not end:
            ax.plot([], [], label=f"{pretty(name, names)} (diverged)", **line.plot)
            continue
        at, values, cut = at[:end], values[:, :end], end < len(alive)
        mean = values.mean(axis=0)
        every = max(1, len(at) // markers)
        # Markers of neighbouring lines are shifted against each other so that they do not hide one another.
        ax.plot(at, mean, label=pretty(name, names), markevery=(k * every // max(1, len(wanted)), every), **line.plot)
        if band and len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            low, high = (mean - spread, mean + spread) if band == "sd" else (values.min(axis=0), values.max(axis=0))
            ax.fill_between(at, low, high, color=line.color, alpha=0.16, linewidth=0, zorder=1.5)
        if cut:
            ax.plot(
                at[-1:],
                mean[-1:],
                marker="x",
                color=line.color,
                markersize=6,
                markeredgewidth=1.4,
                zorder=4,
                gid="diverged",
            )
    ax.margins(x=0.02)


def bars(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str,
    y: str = "value",
    series: str = "algorithm",
    order: Sequence[object] | None = None,
    styles: Mapping[str, Look] | None = None,
    names: Mapping[str, str] | None = None,
) -> None:
    """Groups of bars along `x`, one bar per series: mean over seeds, with a whisker from the least to the greatest."""
    groups = list(dict.fromkeys(frame[x]))
    found = list(dict.fromkeys(frame[series]))
    wanted = [s for s in order if s in found] if order is not None else found
    styles, wide = styles or lines(wanted), 0.8 / len(wanted)
    hatches = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oooo")
    for k, name in enumerate(wanted):
        values = [frame.loc[(frame[series] == name) & (frame[x] == g), y].dropna().to_numpy(float) for g in groups]
        mean = np.array([v.mean() if len(v) else np.nan for v in values])
        ends = np.array([[v.min(), v.max()] if len(v) else [np.nan] * 2 for v in values]).T
        whisker = np.abs(ends - mean) if any(len(v) > 1 for v in values) else None
        ax.bar(
            np.arange(len(groups)) + (k - (len(wanted) - 1) / 2) * wide,
            mean, 0.92 * wide, yerr=whisker, label=pretty(name, names), color=styles[str(name)].color,
            edgecolor="white", hatch=hatches[k % len(hatches)], error_kw={"elinewidth": 0.8, "ecolor": "#303030"},
        )  # fmt: skip
    ax.set_xticks(np.arange(len(groups)), [pretty(g, names) for g in groups])
    ax.grid(visible=False, axis="x")


def heatmap(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str = "value",
    digits: int = 1,
    limits: tuple[float, float] | None = None,
    label: str = "",
    names: Mapping[str, str] | None = None,
) -> None:
    """Mean of `value` (over seeds) per pair of `x` (ascending to the right) and `y` (ascending upwards), printed in its
    box; a pair whose seeds all lack a value (diverged) is a hatched box, a pair that was not run stays empty."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    means = frame.groupby([y, x])[value].mean().unstack().sort_index().sort_index(axis=1)
    run = frame.groupby([y, x])[value].size().unstack().reindex(index=means.index, columns=means.columns).notna()
    data = means.to_numpy(float)
    finite = data[np.isfinite(data)]
    low, high = limits or ((finite.min(), finite.max()) if len(finite) else (0.0, 1.0))
    norm = Normalize(low, high)
    image = ax.imshow(np.ma.masked_invalid(data), norm=norm, aspect="auto", origin="lower")
    for (i, j), number in np.ndenumerate(data):
        if np.isfinite(number):
            r, g, b, _ = image.cmap(norm(number))
            ink = "black" if 0.299 * r + 0.587 * g + 0.114 * b > 0.5 else "white"
            ax.text(j, i, f"{number:.{digits}f}", ha="center", va="center", color=ink, fontsize=6.5)
        elif run.to_numpy()[i, j]:
            hatched: dict[str, Any] = {"fill": False, "hatch": "/////", "edgecolor": "#a0a0a0", "linewidth": 0}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **hatched))
            white = {"fc": "white", "ec": "none", "pad": 0.8}
            ax.text(j, i, "div.", ha="center", va="center", fontsize=6.5, bbox=white)
    ax.set_xticks(range(len(means.columns)), [pretty(v, names) for v in means.columns])
    ax.set_yticks(range(len(means.index)), [pretty(v, names) for v in means.index])
    ax.set(xlabel=heading(x, names), ylabel=heading(y, names))
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, pad=0.02, aspect=18, label=label)
    bar.outline.set_visible(False)


def missing(ax: Axes, reason: str) -> None:
    """An empty panel that says why, e.g. `missing(ax, "needs svhn")`."""
    # Not `set_xticks`: panels that share an axis share its ticks.
    ax.tick_params(which="both", bottom=False, left=False, labelbottom=False, labelleft=False)
    ax.grid(visible=False)
    ax.spines[:].set(visible=True, color="#c0c0c0", linestyle=(0, (4, 3)))
    text = "\n".join(textwrap.wrap(f"not run: {reason}", 24))
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="#707070", fontsize=7.5)


def legend(fig: Figure, columns: int | None = None) -> None:
    """One legend below all panels, every label once, as many columns as the width holds."""
    entries: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(text, handle)
    if entries:
        widest = max(map(len, entries))
        fits = max(1, int(fig.get_figwidth() / (0.055 * widest + 0.55)))
        ncols = columns or -(-len(entries) // -(-len(entries) // fits))  # rows of equal length
        fig.legend(entries.values(), entries.keys(), loc="lower center", ncols=ncols, borderaxespad=0.1)
        _arrange(fig, -(-len(entries) // ncols) * 0.155 + 0.06)


def stamp(
    fig: Figure,
    scale: str,
    substitutes: Sequence[str] = (),
    seeds: tuple[int, int] = (0, 0),
    note: str = "",
    same: bool = False,
) -> None:
    """The small line at the bottom: scale, what stands in for what, fewest and most seeds of a line, and a `note`.

    same: see `entries.scale_line`.
    """
    low, high = seeds
    count = f"{low} to {high} seeds." if low != high else f"{high} seed{'s' if high != 1 else ''}." if high else ""
    crossed = any(line.get_gid() == "diverged" for ax in fig.axes for line in ax.get_lines())
    cross = "Cross: from here on a seed has no value (diverged)." if crossed else ""
    text = " ".join(filter(None, [scale_line(scale, substitutes, same), count, cross, note]))
    wrapped = textwrap.wrap(text, int(fig.get_figwidth() * 20))
    y = 0.03 / fig.get_figheight()
    fig.text(0.01, y, "\n".join(wrapped), fontsize=TEXT, color="#505050", va="bottom", linespacing=1.15, gid="stamp")
    _arrange(fig, len(wrapped) * 0.112 + 0.05)


def save(fig: Figure, path: Path) -> list[Path]:
    """Write `path`.pdf (TrueType fonts embedded) and `path`.png (200 dpi) without dates, so that equal figures give
    equal files; returns both paths. `path` has no ending."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(fig)
    files = [path.with_name(path.name + ending) for ending in (".pdf", ".png")]
    with style():
        fig.savefig(files[0], format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
        fig.savefig(files[1], format="png", metadata={"Software": None})
    return files


def _grid(frame: pd.DataFrame, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """x (points,) and the values (seeds, points) of one series."""
    runs = [run.sort_values(x) for _, run in frame.dropna(subset=[x]).groupby("seed")]
    ats = [run[x].to_numpy(float) for run in runs]
    values = [run[y].to_numpy(float) for run in runs]
    if not runs:
        return np.empty(0), np.empty((0, 0))
    if x == "time" and any(len(a) != len(ats[0]) or not np.array_equal(a, ats[0]) for a in ats):
        at = np.linspace(max(a[0] for a in ats), min(a[-1] for a in ats), 200)
        return at, np.stack([np.interp(at, a, v) for a, v in zip(ats, values, strict=True)])
    at = np.unique(np.concatenate(ats))
    table = np.full((len(runs), len(at)), np.nan)
    for k, (a, v) in enumerate(zip(ats, values, strict=True)):
        table[k, np.searchsorted(at, a)] = v
    return at, table


def _arrange(fig: Figure, inches: float) -> None:
    """Reserve `inches` more at the bottom of the figure: it grows, panels keep their size, the legend stays above the
    stamp."""
    engine: Any = fig.get_layout_engine()
    height = fig.get_figheight()
    below = getattr(fig, "_reserved", 0.0) + inches
    fig.set_figheight(height + inches)
    fig._reserved = below  # type: ignore[attr-defined]
    stamps = [t for t in fig.texts if t.get_gid() == "stamp"]
    depth = max(((t.get_text().count("\n") + 1) * 0.112 + 0.05 for t in stamps), default=0.0)
    total = height + inches
    for text in stamps:
        text.set_y(0.03 / total)
    for box in fig.legends:
        box.set_bbox_to_anchor((0.0, depth / total, 1.0, 1.0), transform=fig.transFigure)
    if engine is not None and hasattr(engine, "set"):
        engine.set(rect=(0, below / total, 1, 1 - below / total))
