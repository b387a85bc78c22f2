"""The comparison of our numbers with the published ones at paper scale, table by table: as declared, and with
alternatives fitted to published numbers (`verdicts.readings`), each on the numbers that it was not chosen on.

A difference is what a paper proposes minus what it is compared with in the same setting: points, or the logarithm of a
ratio.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from reproduce.declare.paper import papers
from reproduce.pages.page_numbers import FUNCTIONS, filled
from reproduce.report.figures import sheet, style
from reproduce.report.names import heading, pretty
from reproduce.text import markdown
from reproduce.verdicts import readings
from reproduce.verdicts.claims import listed
from reproduce.verdicts.readings import DECLARED, KEYS, Held, Rows, gaps

PICTURE = Path("figures/paper/agreement.png")
DRAWS = 1000
FEW = 3
"""Of fewer leads there is neither slope nor correlation."""
HEAD = ("table", "compared", "inside", "median distance", "the same permuted (2.5 %)", "leads (slope, correlation)")
COLUMNS = (
    "Distances are points, or logarithms of ratios: 0.1 is about 10 % "
    "([columns](index.md#how-to-read-the-comparison-with-published-numbers))."
)
READ = ("hypothesis", "published numbers", "chosen on", "distance", "within 1 point or 10 %")
WORDS = {"sure": "Confidence", "tried": "Tried", "stays": "Unexplained",
         "impossible": "Impossible numbers", "otherwise": "Other explanation"}  # fmt: skip


def declared(paper: str) -> Rows:
    """The printed numbers of a paper beside ours."""
    return pd.concat([readings.of_table(paper, table) for table in readings.tables(paper)], ignore_index=True)


def held(paper: str) -> list[Held]:
    """The readings of a paper that have cells, those that were tried in vain too."""
    return readings.held(paper, readings.register(papers()[paper].folder)["readings"])


def under(numbers: Rows, alternatives: Iterable[Held]) -> Rows:
    """The numbers with those of readings in the place of declared ones; where two readings have one, of the first."""
    after = [each.after for each in alternatives if "tried" not in each.of]
    return pd.concat([*after, numbers]).drop_duplicates(KEYS).reset_index(drop=True)


def by_table(paper: str, alternatives: Sequence[Held]) -> list[tuple[str, Rows, Rows]]:
    """Returns (label, declared, replaced) per table and unit of a paper. label: "Table 1, rounds". declared: the
    published numbers beside ours. replaced: the same, with the numbers of fitted alternatives where there are any.
    Tables without a comparable number are left out."""
    numbers, tables = declared(paper), list[tuple[str, Rows, Rows]]()
    read = under(numbers, alternatives)
    for (table, unit), before in numbers.groupby(["table", "unit"], sort=False):
        after = read[(read["table"] == table) & (read["unit"] == unit)]
        name = str(table).replace("table", "Table ") + f", {unit}" * (unit != "%")
        tables += [(name, before, after)] * bool(after["gap"].notna().any())
    return tables


def moved(rows: Rows) -> bool:
    """Tells whether some of them have a fitted alternative."""
    return bool((rows["reading"] != DECLARED).any())


# --- what the numbers say ---------------------------------------------------------------------------------------------


def null(rows: Rows) -> tuple[float, float] | None:
    """The median distance if ours are dealt out anew among the series of their setting: mean and 2.5 % point of `DRAWS`
    deals; None where no setting has two series."""
    random, keys = np.random.default_rng(0), ["table", "metric", "setting"]
    groups = rows.groupby(keys, sort=False).ngroup().sort_values(kind="stable")
    if groups.is_unique:
        return None
    columns = {str(name): column.to_numpy() for name, column in rows.loc[groups.index].items()}
    medians = []
    for _ in range(DRAWS):
        dealt = np.lexsort((random.random(len(groups)), groups))
        ours = {name: columns[name][dealt] for name in ("ours", "bound")}
        medians.append(np.nanmedian(np.abs(gaps({**columns, **ours}))))
    return float(np.mean(medians)), float(np.quantile(medians, 0.025))


def leads(rows: Rows) -> Rows:
    """`ours` and `printed` of what a paper proposes minus every other series in the same setting, bounds left out."""
    exact = rows[~rows["bound"] & ~rows["printed_bound"]]
    both = exact[["ours", "printed"]]
    exact = exact.assign(**both.mask(exact["unit"] != "%", both.map(np.log)))
    pairs = exact[exact["own"]].merge(exact[~exact["own"]], on=["table", "metric", "setting"], suffixes=("", "_other"))
    return pd.DataFrame({name: pairs[name] - pairs[f"{name}_other"] for name in both})


def slope(led: Rows) -> float:
    """The slope of the printed leads over ours, by least squares."""
    return float(led["ours"].cov(led["printed"]) / led["ours"].var())


def inside(rows: Rows) -> str:
    """Numbers of one unit in our prediction intervals, of those that have one, and half of such an interval in the
    median: "26 of 99 (± 1.2 points)", "5 of 5 (± 118 %)" of what is printed. Then those that have none: "1 without"."""
    bounded, percent = rows.dropna(subset=["half"]), (rows["unit"] == "%").all()
    without = int(rows["gap"].notna().sum()) - len(bounded)
    half = (bounded["half"] if percent else 100 * bounded["half"] / bounded["printed"]).median()
    width = f"{half:.2g} %" if not percent else "1 point" if f"{half:.2g}" == "1" else f"{half:.2g} points"
    text = f"{int(bounded['inside'].sum())} of {len(bounded)} (± {width})"
    return (text if len(bounded) else "–") + f", {without} without" * bool(without)


def line(name: str, rows: Rows) -> list[str]:
    """A line under `HEAD`."""
    pairs = rows[rows["gap"].notna()]
    chance, led = null(pairs), leads(pairs)
    dealt = "{:.2g} ({:.2g})".format(*chance) if chance else "–"
    fit = f"{len(led)} ({slope(led):.2f}, {led['ours'].corr(led['printed']):.2f})" if len(led) >= FEW else "–"
    fit = fit.replace("-", "−")
    return [name, f"{len(pairs):,} of {len(rows):,}", inside(rows), f"{pairs['gap'].abs().median():.2g}", dealt, fit]


# --- pages ------------------------------------------------------------------------------------------------------------


def section(paper: str) -> str:
    """Markdown: the agreement with published numbers, fitted alternatives, findings; "" for a paper without any."""
    file, alternatives = readings.register(papers()[paper].folder), held(paper)
    lines = []
    for name, before, after in by_table(paper, alternatives):
        plain, fitted = line(name, before), line("the same, with fitted alternatives", after)
        lines += [plain, *([fitted] if plain[1:4] != fitted[1:4] else [])]
    parts = [COLUMNS, markdown(HEAD, lines, ":" + "-" * 5)] if lines else []
    parts += ["\n".join(f"{k}. **Hypothesis: {of['says']}** {prose(of)}" for k, of in enumerate(file["readings"], 1))]
    if alternatives:
        parts += [
            "Distances are those with the declared settings → with the fitted alternative. Unless stated otherwise, it "
            "was chosen on other numbers."
        ]
        parts += [markdown(READ, [row for each in alternatives for row in reading(each, file["readings"])])]
    findings = [f"- {getattr(papers()[paper].module('findings'), of['id'])()} {prose(of)}" for of in file["findings"]]
    parts += ["Findings from the published numbers alone:", "\n".join(findings)] if findings else []
    return "\n\n".join(filter(None, parts))


def prose(entry: Mapping[str, Any]) -> str:
    """The text of an entry, with its numbers."""
    functions = {f.__name__: f for f in FUNCTIONS}
    texts = ((word, entry[key]) for key, word in WORDS.items() if key in entry)
    return " ".join(f"*{word}:* {' '.join(filled(text, functions).split())}" for word, text in texts)


def reading(one: Held, every: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    """The lines of a reading under `READ`, one for each unit; it has its number in all readings of the paper."""
    of = one.of
    where = [f"table {', '.join(t.removeprefix('table') for t in of['tables'])}", *_rows(of.get("where", {}))]
    on = f"the other values of {_columns(of['blocks'])}" if "blocks" in of else "–" if "tried" in of else "elsewhere"
    on = "; ".join(_rows(of["chosen_on"])) if "chosen_on" in of else on
    each = f", for each {_columns(of['within'])}" if "within" in of else ""
    says = f"{1 + every.index(of)}" + ", only tried" * ("tried" in of)
    for unit, after in one.after.groupby("unit"):
        pair = one.before.loc[after.index], after
        rms = " → ".join(f"{(rows['gap'] ** 2).mean() ** 0.5:.2f}" for rows in pair)
        near = " → ".join(f"{rows['agrees'].mean():.0%}" for rows in pair)
        what = "points" if unit == "%" else f"(logarithm of {unit})"
        yield [says, f"{len(after)}: {'; '.join(where)}", f"{on}{each}", f"{rms} {what}", near]


def _columns(names: Iterable[str]) -> str:
    return " and ".join(heading(c).lower() for c in names)


def _rows(where: Mapping[str, Any]) -> list[str]:
    return [f"{heading(c).lower()} {', '.join(pretty(v) for v in listed(values))}" for c, values in where.items()]


def summary() -> str:
    """Markdown: a line for each paper: by table how many printed numbers are inside, and where they come from."""
    rows = []
    for paper, of in papers().items():
        numbers, tables = declared(paper), by_table(paper, held(paper))
        parts = [(name, inside(a), inside(b)) for name, a, b in tables]
        lines = [f"{name}: {a}" + f"; with fitted alternatives {b}" * (a != b) for name, a, b in parts]
        link, run = f"[{of.name}](docs/papers/{paper}.md)", f"{numbers['gap'].notna().sum()} of {len(numbers):,}"
        rows.append([link, run, "<br>".join(lines) or "–", readings.register(of.folder)["summary"]])
    return markdown(("paper", "published numbers compared", "inside", "what explains the differences"), rows)


def figure() -> Figure:
    """The published numbers over ours, a panel for each paper and unit, and another one with fitted alternatives."""
    panels = []
    for paper, of in papers().items():
        numbers = declared(paper)
        for unit, after in under(numbers, held(paper)).groupby("unit"):
            before = numbers[numbers["unit"] == unit]
            both = pd.concat([before, after])[["ours", "printed"]].dropna()
            states = {DECLARED: before} | ({"fitted alternatives": after} if moved(after) else {})
            for state, part in states.items() if len(both) else ():
                flags = part["inside"].dropna()
                title = f"{of.name},\n{state}: {flags.sum()} of {len(flags)}"
                panels.append((title, str(unit), part[part["gap"].notna()][::-1], both))  # the readings are drawn last
    with style():
        fig, axes = sheet(-(-len(panels) // 4), 4, height=1.75)
        for ax, (title, unit, rows, both) in zip(axes.flat, panels, strict=False):
            _panel(ax, unit, rows, both)
            ax.set_title(title, fontsize="small")
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
    return fig


def _panel(ax: Axes, unit: str, rows: Rows, both: Rows) -> None:
    low, high = both.min().min(), both.max().max()
    ends = np.array((max(0.0, low - 3), min(100.0, high + 3)) if unit == "%" else (low / 1.5, high * 1.5))
    ax.plot(ends, ends, color="#404040", linewidth=0.8, zorder=1)
    colours = np.where(rows["reading"] == DECLARED, "#0072b2", "#d55e00")
    ax.scatter(rows["ours"], rows["printed"], s=12, c=colours, alpha=0.6, linewidth=0)
    ax.set(xlabel=f"reproduced ({unit})", ylabel=f"published ({unit})", box_aspect=1, xlim=ends, ylim=ends)
    if unit == "%":
        ax.set(xticks=ax.get_yticks(), xlim=ends)
        return
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ends[1] < 20 * ends[0] else (1,)))
        axis.set_major_formatter("{x:,.0f}")
    ax.minorticks_off()
