"""Our numbers against the printed ones, over all tables of a scale: how many agree, and whether the leads do.

`python -m reproduce agreement` prints the counts and draws the picture. Both are read from the rendered tables
(`tables/<scale>/*.csv`). Settings, sizes of networks, costs of a machine and ratios of other rows are no results and
are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reproduce.errors import UserError
from reproduce.papers import PAPERS, artifacts, proposed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNITS = {
    "accuracy_after_transition_pct": "%", "accuracy_first10_rounds_pct": "%", "accuracy_after_100_rounds": "%",
    "test_accuracy_percent": "%", "rounds_to_target": "rounds", "rounds_to_60": "rounds",
    "computation_time_to_target_s": "seconds", "time_to_target_s": "seconds",
}  # fmt: skip
"""The metrics that are results, and their units."""
POINTS, SHARE = 1.0, 0.1
"""A number agrees within one point of percent, or within a tenth of what is printed."""
NUMBERS = ("mean", "std", "seeds", "paper", "paper_std", "difference", "censored", "status", "paper_censored")


def numbers(scale: str, tables: Path = Path("tables")) -> pd.DataFrame:
    """A row for each printed number that has one of ours: `paper`, `table`, `metric`, `unit`, `setting` (its labels as
    text), `series` (what is compared), `own` (is that what the paper proposes?), `ours`, `printed`, `agrees`, `seeds`.

    Lower bounds (targets not reached) are left out on either side. UserError if nothing is rendered at the scale.
    """
    import pandas as pd

    files = [(paper, file) for paper in PAPERS for file in sorted((tables / scale).glob(f"{paper}_table*.csv"))]
    found = [_of(paper, file) for paper, file in files]
    if not any(len(rows) for rows in found):
        raise UserError(f"no table of scale {scale} has a printed number beside ours: snakemake {scale} makes them")
    return pd.concat(found, ignore_index=True)


def _of(paper: str, file: Path) -> pd.DataFrame:
    import pandas as pd

    rows: pd.DataFrame = pd.read_csv(file, keep_default_na=False, dtype=str)
    ours, printed = (pd.to_numeric(rows[name], errors="coerce") for name in ("mean", "paper"))
    bound = (rows[["censored", "paper_censored"]] == "True").any(axis=1)
    kept = rows["metric"].isin(list(UNITS)) & ours.notna() & printed.notna() & ~bound
    series = next((a.series for a in artifacts() if f"{a.paper}_{a.name}" == file.stem), "algorithm")
    rest = [str(c) for c in rows.columns if c not in (*NUMBERS, series)]
    unit = rows["metric"].map(UNITS)
    told = rows[rest].apply(lambda c: c.mask(c.str.fullmatch(r"[\d.]+"), f"{c.name} " + c))  # "70" alone says nothing
    gap = (ours - printed).abs()
    return pd.DataFrame(
        {
            "paper": paper,
            "table": file.stem.removeprefix(f"{paper}_"),
            "metric": rows["metric"],
            "unit": unit,
            "setting": told.agg(" ".join, axis=1),
            "series": rows[series],
            "own": rows[series].isin(proposed(paper)),
            "ours": ours,
            "printed": printed,
            "agrees": gap.le(POINTS).where(unit == "%", gap.le(SHARE * printed)),
            "seeds": pd.to_numeric(rows["seeds"], errors="coerce"),
        }
    )[kept].astype({"seeds": int})


def leads(found: pd.DataFrame) -> pd.DataFrame:
    """What a paper proposes minus every other series in the same setting, in the columns of `numbers` and with
    `series_other`; printed ties have no sign and are left out."""
    keys = ["paper", "table", "metric", "unit", "setting"]
    pairs = found[found["own"]].merge(found[~found["own"]], on=keys, suffixes=("", "_other"))
    pairs = pairs.assign(ours=pairs["ours"] - pairs["ours_other"], printed=pairs["printed"] - pairs["printed_other"])
    return pairs.loc[pairs["printed"] != 0, [*keys, "series", "series_other", "ours", "printed", "seeds"]]


HEAD = ("table", "numbers", "agree", "leads", "same sign", "median size")


def counts(scale: str, tables: Path = Path("tables")) -> list[list[str]]:
    """The lines of the table under `HEAD`, one for each table that a paper prints, and one of all. At other scales than
    the paper's the numbers are of other data or lengths: there only leads are compared."""
    found = numbers(scale, tables)
    gaps = leads(found)
    names = list(dict.fromkeys(zip(found["paper"], found["table"], strict=True)))
    groups = [(f"{p}/{t}", *(f[(f["paper"] == p) & (f["table"] == t)] for f in (found, gaps))) for p, t in names]
    lines = []
    for name, mine, led in [*groups, ("all", found, gaps)]:
        agree = f"{mine['agrees'].mean():.0%}" if scale == "paper" else "–"
        sign = f"{(led['ours'] * led['printed'] > 0).mean():.0%}" if len(led) else "–"
        size = f"{(led['ours'] / led['printed']).median():.2f}" if len(led) else "–"
        lines.append([name, f"{len(mine):,}", agree, f"{len(led):,}", sign, size])
    return lines


SAID = {True: "what the paper proposes", False: "what it is compared with"}


def figure(scale: str) -> Figure:
    """Ours over printed, a panel for each paper and unit; the grey band is what counts as agreement."""
    from reproduce.pages.short import about
    from reproduce.report.figures import sheet, style

    groups = numbers(scale).groupby(["paper", "unit"])
    panels = [(str(p), str(u), mine) for (p, u), mine in groups]
    panels.sort(key=lambda panel: (PAPERS.index(panel[0]), panel[1]))
    columns = min(3, len(panels))
    with style():
        fig, axes = sheet(-(-len(panels) // columns), columns, height=2.3)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, (paper, unit, mine) in zip(axes.flat, panels, strict=False):
            _panel(ax, mine, unit)
            ax.set_title(f"{about(paper).name}\n{100 * mine['agrees'].mean():.0f} % of {len(mine)} agree")
        handles, names = axes.flat[0].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside lower center", ncols=2)
    return fig


def _panel(ax: Axes, mine: pd.DataFrame, unit: str) -> None:
    import seaborn
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ends = _ends(mine, unit)
    ax.plot(ends, ends, color="#404040", linewidth=0.8, zorder=1)
    ax.fill_between(ends, *_band(ends, unit), color="#d9d9d9", linewidth=0, zorder=0.5)
    order = [SAID[False], SAID[True]]
    seaborn.scatterplot(
        x=mine["printed"], y=mine["ours"], hue=mine["own"].map(SAID), hue_order=order, style=mine["own"].map(SAID),
        style_order=order, palette=["#0072b2", "#d55e00"], s=14, linewidth=0.4, alpha=0.7, ax=ax,
    )  # fmt: skip
    for legend in filter(None, [ax.get_legend()]):  # one for all panels stands below
        legend.remove()
    ax.set(xlim=ends, ylim=ends, xlabel=f"printed ({unit})", ylabel=f"ours ({unit})", box_aspect=1)
    if unit != "%":
        ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ends[1] < 100 * ends[0] else (1,)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _ends(mine: pd.DataFrame, unit: str) -> tuple[float, float]:
    low, high = mine[["ours", "printed"]].min().min(), mine[["ours", "printed"]].max().max()
    return (max(0.0, low - 3), min(100.0, high + 3)) if unit == "%" else (low / 1.5, high * 1.5)


def _band(ends: tuple[float, float], unit: str) -> tuple[list[float], list[float]]:
    low = [e - POINTS if unit == "%" else e * (1 - SHARE) for e in ends]
    return low, [e + POINTS if unit == "%" else e * (1 + SHARE) for e in ends]
