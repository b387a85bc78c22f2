"""Our numbers against the printed ones, over all tables of a scale: how many agree, beside what chance would give.

Read from the rendered tables (`tables/<scale>/*.csv`). Settings, sizes of networks, costs of a machine and ratios of
other rows are no results and are left out. Of tables that agree no better than by chance, the curves are read in other
ways, too (`Reading`), or by another window of the cells.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from reproduce import papers as home
from reproduce.declare.artifact import Measure, Window
from reproduce.errors import UserError
from reproduce.pages.quotes import stored
from reproduce.pages.short import about
from reproduce.papers import PAPERS, artifacts, proposed
from reproduce.report import around, formats, metrics, render, tables
from reproduce.report.figures import sheet, style
from reproduce.report.histories import label_columns
from reproduce.report.metrics import Reading, read_as
from reproduce.text import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNITS = {
    "accuracy_after_transition_pct": "%", "accuracy_first10_rounds_pct": "%", "accuracy_after_100_rounds": "%",
    "test_accuracy_percent": "%", "rounds_to_target": "rounds", "rounds_to_60": "rounds",
    "computation_time_to_target_s": "seconds", "time_to_target_s": "seconds",
}  # fmt: skip
"""The metrics that are results, and their units."""
PICTURE = Path("figures/paper/agreement.png")
POINTS, SHARE = 1.0, 0.1
"""A number agrees within one point of percent, or within a tenth of what is printed."""
NUMBERS = ("mean", "std", "seeds", "paper", "paper_std", "difference", "censored", "status", "paper_censored")


def numbers(scale: str, tables: Path = Path("tables")) -> pd.DataFrame:
    """A row for each printed number: `paper`, `table`, `metric`, `unit`, `setting` (its labels as text), `series` (what
    is compared), `own` (is that what the paper proposes?), `ours` (NaN: not run), `printed`, `bound`, `printed_bound`
    (targets not reached), `distance` (points of percent, or a share of what is printed), `agrees`, `seeds`.

    UserError if nothing is rendered at the scale.
    """
    files = [(paper, file) for paper in PAPERS for file in sorted((tables / scale).glob(f"{paper}_table*.csv"))]
    read = [(paper, file.stem, pd.read_csv(file, keep_default_na=False, dtype=str)) for paper, file in files]
    there = [(paper, stem.removeprefix(f"{paper}_"), table) for paper, stem, table in read if len(table)]
    found = [rows for paper, name, table in there if len(rows := of(paper, name, table))]
    if not any(rows["ours"].notna().any() for rows in found):
        raise UserError(f"no table of scale {scale} has a printed number beside ours: snakemake {scale} makes them")
    return pd.concat(found, ignore_index=True).astype(dict.fromkeys(("own", "bound", "printed_bound", "agrees"), bool))


def of(paper: str, table: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers of one table, from the rows of its CSV as text."""
    ours, printed = (pd.to_numeric(rows[name], errors="coerce") for name in ("mean", "paper"))
    series = next((a.series for a in artifacts() if a.id == f"{paper}/{table}"), "algorithm")
    rest = [str(c) for c in rows.columns if c not in (*NUMBERS, series)]
    told = rows[rest].apply(lambda c: c.mask(c.str.fullmatch(r"[\d.]+"), f"{c.name} " + c))  # "70" alone says nothing
    found = pd.DataFrame(
        {
            "paper": paper,
            "table": table,
            "metric": rows["metric"],
            "unit": rows["metric"].map(UNITS),
            "setting": told.agg(" ".join, axis=1),
            "series": rows[series],
            "own": rows[series].isin(proposed(paper)),
            "ours": ours,
            "printed": printed,
            "bound": rows["censored"] == "True",
            "printed_bound": rows["paper_censored"] == "True",
            "seeds": pd.to_numeric(rows["seeds"], errors="coerce"),
        }
    )
    found = found[found["unit"].notna() & printed.notna()]
    bound, other, percent = found["bound"], found["printed_bound"], found["unit"] == "%"
    # Two lower bounds say nothing of each other, and no more does one that is below the other's number. One that
    # contradicts it does not agree.
    ours = ours.mask((bound & (other | (ours <= printed))) | (other & (ours >= printed)))
    gap = (ours - printed).abs()
    near = gap.le(POINTS).where(percent, gap.le(SHARE * printed)) & ~(bound | other)
    return found.assign(ours=ours, distance=gap.where(percent, gap / printed), agrees=near)


DRAWS = 1000


def null(found: pd.DataFrame) -> tuple[float, float]:
    """The share that agrees if ours are dealt out anew among the series of their setting: mean and 97.5 % point of
    `DRAWS` deals. A setting with one series keeps its own."""
    import numpy as np

    random = np.random.default_rng(0)
    groups = found.groupby(["table", "metric", "setting"], sort=False).ngroup().to_numpy()
    order = np.argsort(groups, kind="stable")
    there = found.iloc[order]
    ours, printed, bound, other = (there[name].to_numpy() for name in ("ours", "printed", "bound", "printed_bound"))
    near = np.where(there["unit"] == "%", POINTS, SHARE * printed)
    shares = []
    for _ in range(DRAWS):
        dealt = np.lexsort((random.random(len(ours)), groups[order]))
        shares.append(((np.abs(ours[dealt] - printed) <= near) & ~bound[dealt] & ~other).mean())
    return float(np.mean(shares)), float(np.quantile(shares, 0.975))


def leads(found: pd.DataFrame) -> pd.DataFrame:
    """What a paper proposes minus every other series in the same setting, in the columns of `numbers` and with
    `series_other` and `favours` (is the printed lead one of the proposed?); bounds and printed ties are left out."""
    found = found[found["ours"].notna() & ~found["bound"] & ~found["printed_bound"]]
    keys = ["paper", "table", "metric", "unit", "setting"]
    pairs = found[found["own"]].merge(found[~found["own"]], on=keys, suffixes=("", "_other"))
    pairs = pairs.assign(ours=pairs["ours"] - pairs["ours_other"], printed=pairs["printed"] - pairs["printed_other"])
    pairs = pairs.assign(favours=(pairs["printed"] > 0) == (pairs["unit"] == "%"))
    return pairs.loc[pairs["printed"] != 0, [*keys, "series", "series_other", "ours", "printed", "seeds", "favours"]]


HEAD = (
    "table", "printed", "ours", "agree", "by chance (97.5 %)", "median distance", "leads", "same sign",
    "always the proposed",
)  # fmt: skip


def apart(paper: str, table: str) -> str:
    """The name of the tables that have a line of their own where others of their paper share one: nearly all of their
    numbers agree."""
    return ", Tables 3 and 5" if paper == "dynamic_init" and table in ("table3", "table5") else ""


def counts(scale: str, tables: Path = Path("tables"), papers: bool = False) -> list[list[str]]:
    """The lines of the table under `HEAD`, one for each table that a paper prints; papers: one for each paper instead.

    At other scales than the paper's the numbers are of other data or lengths: there only leads are compared."""
    found, printed, lines = numbers(scale, tables), _printed(), dict[str, list[tuple[str, str]]]()
    for paper, table in printed:
        lines.setdefault(paper + (apart(paper, table) if papers else f"/{table}"), []).append((paper, table))
    of = found.set_index(["paper", "table"]).index
    return [
        _line(name, found[of.isin(keys)], sum(map(printed.__getitem__, keys)), scale) for name, keys in lines.items()
    ]


def _printed() -> dict[tuple[str, str], int]:
    """(paper, table) -> how many results it prints."""
    files = [(paper, f) for paper in PAPERS for f in sorted(Path(home.__path__[0], paper).glob("reported/table*.csv"))]
    sizes = {(paper, f.stem): int(pd.read_csv(f)["metric"].isin(list(UNITS)).sum()) for paper, f in files}
    return {key: size for key, size in sizes.items() if size}


def _line(name: str, found: pd.DataFrame, printed: int, scale: str) -> list[str]:
    mine = found[found["ours"].notna()]
    led = leads(mine)
    line = [name, f"{printed:,}", f"{len(mine):,}", *["–"] * 3, f"{len(led):,}", "–", "–"]
    if len(mine) and scale == "paper":
        chance, most = null(mine)
        line[3], line[5] = near(mine)
        line[4] = f"{chance:.0%} ({most:.0%})"
    if len(led):
        line[7] = f"{(led['ours'] * led['printed'] > 0).mean():.0%}"
        line[8] = f"{led['favours'].mean():.0%}"
    return line


def near(mine: pd.DataFrame) -> tuple[str, str]:
    """The share that agrees, and the median distance of each unit."""
    median = mine.groupby("unit")["distance"].median()
    gaps = [f"{gap:.2g} points" if unit == "%" else f"{gap:.0%} of {unit}" for unit, gap in median.items()]
    return f"{mine['agrees'].mean():.0%}", ", ".join(gaps)


def section(paper: str) -> str:
    """Markdown: the counts of a paper's tables at paper scale that have numbers of ours, and a line for each other way
    to read those that agree no better than by chance; "" where there are none."""
    lines = [(name.split("/"), rest) for name, *rest in counts("paper")]
    mine = [[table, *rest] for (of, table), rest in lines if of == paper and rest[1] != "0"]
    names = [table for of, table in unexplained() if of == paper]
    rows = [[name, said, *near(found)] for name in names for said, found in tried(paper, name)]
    parts = [markdown(HEAD, mine, ":" + "-" * 8)] if mine else []
    if names:
        more = " Read otherwise, the same curves come as near as this:" * bool(rows)
        parts.append(f"No better than by chance: {', '.join(names)}.{more}")
    if rows:
        parts.append(markdown(("table", "read as", "agree", "median distance"), rows, "::--"))
    return "\n\n".join(parts)


SAID = {True: "what the paper proposes", False: "what it is compared with"}


def figure(scale: str) -> Figure:
    """Ours over printed, a panel for each paper and unit; the grey band is what counts as agreement."""
    found = numbers(scale)
    found = found[found["ours"].notna()]
    others = [apart(*key) for key in zip(found["paper"], found["table"], strict=True)]
    panels: list[tuple[Any, pd.DataFrame]] = [
        *found.groupby([pd.Categorical(found["paper"], PAPERS), pd.Series(others, found.index), "unit"], observed=True)
    ]
    columns = min(4, len(panels))
    with style():
        fig, axes = sheet(-(-len(panels) // columns), columns, height=2.1)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, ((paper, other, unit), mine) in zip(axes.flat, panels, strict=False):
            _panel(ax, mine, unit)
            name = textwrap.fill(about(paper).name + other, 24)
            ax.set_title(f"{name}\n{100 * mine['agrees'].mean():.0f} % of {len(mine)} agree", fontsize="medium")
        around.legend(fig)
    return fig


def _panel(ax: Axes, mine: pd.DataFrame, unit: str) -> None:
    import numpy as np
    import seaborn
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    low, high = mine[["ours", "printed"]].min().min(), mine[["ours", "printed"]].max().max()
    ends = np.array((max(0.0, low - 3), min(100.0, high + 3)) if unit == "%" else (low / 1.5, high * 1.5))
    near = POINTS if unit == "%" else SHARE * ends
    ax.plot(ends, ends, color="#404040", linewidth=0.8, zorder=1)
    ax.fill_between(ends, ends - near, ends + near, color="#d9d9d9", linewidth=0, zorder=0.5)
    order, own = [SAID[False], SAID[True]], mine["own"].map(SAID)
    seaborn.scatterplot(
        x=mine["printed"], y=mine["ours"], hue=own, hue_order=order, style=own, style_order=order,
        palette=["#0072b2", "#d55e00"], s=14, linewidth=0.4, alpha=0.7, ax=ax,
    )  # fmt: skip
    for legend in filter(None, [ax.get_legend()]):  # one for all panels stands below
        legend.remove()
    ax.set(xlabel=f"printed ({unit})", ylabel=f"ours ({unit})", box_aspect=1)
    if unit != "%":
        ax.set(xscale="log", yscale="log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ends[1] < 20 * ends[0] else (1,)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set(xlim=ends, ylim=ends)


# --- tables that agree no better than by chance: what else was tried, and how near that comes ---

READINGS = {
    "the best evaluation": Reading(best=True),
    "the last evaluation": Reading(tail=1),
    "the mean of the last ten": Reading(tail=10),
    "first hit of the raw curve": Reading(hit=1),
    "first hit of the mean of five evaluations": Reading(hit=5),
    "first hit of the mean curve": Reading(pooled=True),
}
WINDOWS = [(first, first + length - 1) for first in (0, 1, 6, 11) for length in (5, 10)]
"""Rounds of a session that an accuracy after a transition may be the mean of; 0 is the end of the session before."""


@cache
def unexplained() -> list[tuple[str, str]]:
    """(paper, table) at paper scale of those that do not agree more often than 97.5 % of deals do."""
    found = numbers("paper")
    groups = found[found["ours"].notna()].groupby(["paper", "table"], sort=False)
    no_better = (name for name, mine in groups if mine["agrees"].mean() <= null(mine)[1])
    return [(str(paper), str(table)) for paper, table in no_better]


def tried(paper: str, table: str) -> list[tuple[str, pd.DataFrame]]:
    """Ways to read a table -> its numbers, where some of ours are others then; of the windows the nearest."""
    artifact = next(a for a in artifacts(paper) if a.name == table)
    histories, reported = stored(artifact, "paper"), tables.reported(paper, table)
    measures = [] if callable(artifact.cells) else artifact.cells

    def read_so(reading: Reading, cells: Sequence[Measure]) -> pd.DataFrame:
        made = replace(artifact, cells=tuple(cells)) if cells else artifact
        with read_as(reading):
            found = render.check(made, metrics.cells(made, histories))
        text = io.StringIO(formats.csv(tables.build(made, found, reported, "paper")))
        read = of(paper, table, pd.read_csv(text, keep_default_na=False, dtype=str))
        return read[read["ours"].notna()]

    usual = read_so(Reading(), measures)
    windows = [m for m in measures if isinstance(m, Window) and (m.name or m.metric) in set(usual["metric"])]
    # Seeds of other lengths ended at their targets: they say nothing of another hit.
    run = label_columns(histories.frame)
    lengths = histories.frame.groupby([*run, "seed"], dropna=False)["round"].max()
    early = bool((lengths.groupby(run, dropna=False).nunique() > 1).any())
    read = {k: r for k, r in READINGS.items() if not (windows or (early and (r.hit or r.pooled)))}
    ways = [(said, read_so(reading, measures)) for said, reading in read.items()]
    moved = {}
    for first, last in WINDOWS if windows else ():
        try:
            moved[first, last] = read_so(Reading(), [replace(m, first=first, last=last) for m in windows])
        except ValueError:  # rounds that were not evaluated
            continue
    if moved:
        first, last = max(moved, key=lambda w: moved[w]["agrees"].mean())
        ways.append((f"of {len(moved)} windows the nearest: rounds {first} to {last}", moved[first, last]))
    return [(said, found) for said, found in ways if len(found) and not found["ours"].equals(usual["ours"])]
