"""What a match looks like: lines for the terminal, Markdown, figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from reproduce.play.match import FACTORS, Match
from reproduce.play.scores import summary
from reproduce.report import figures
from reproduce.report.entries import scale_line
from reproduce.results import stamp
from reproduce.results import standing as standing_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reproduce.play.benchmarks import Benchmark

HEADER = ("BENCHMARK", "ALGORITHM", "RATE", "MEAN", "95 % INTERVAL", "DIFFERENCE", "95 % INTERVAL ", "RANK", "STATE")
RIGHT = ("RATE", "MEAN", "DIFFERENCE", "RANK")


def rows(found: pd.DataFrame) -> list[list[str]]:
    """The cells under `HEADER` of a `summary`, but for what does not fit."""
    lines = []
    for one in found[~_refused(found)].to_dict("records"):
        mean, interval = number(one["mean"]), span(one["low"], one["high"])
        difference = number(one["difference"]), span(one["difference_low"], one["difference_high"])
        rank = "" if math.isnan(one["rank"]) else f"{one['rank']:.0f}"
        rate = "" if math.isnan(one["lr"]) else f"{one['lr']:.3g}"
        lines.append([one["benchmark"], one["algorithm"], rate, mean, interval, *difference, rank, one["status"]])
    return lines


def _refused(found: pd.DataFrame) -> pd.Series[bool]:
    return found["status"].str.startswith("refused")


def number(value: float) -> str:
    """Two decimals, three digits of what is small; a true minus sign; "" for none."""
    if math.isnan(value):
        return ""
    value = round(value, 9) + 0.0  # sums in another order differ in their last bits
    text = f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"
    return text.replace("-", "−")


def span(low: float, high: float) -> str:
    """An interval, "" without one."""
    return "" if math.isnan(low) else f"{number(low)} to {number(high)}"


def markdown(match: Match, frame: pd.DataFrame) -> str:
    """The table of every benchmark; with several, one of the means of all before them; how the numbers were made."""
    found = summary(frame)
    out = ["# " + " and ".join(b.name for b in match.benchmarks) + f", {match.benchmarks[0].scale} scale", ""]
    if len(match.benchmarks) > 1:
        out += [*_across(found), ""]
    for benchmark in match.benchmarks:
        metric, unit = benchmark.metric
        head = ["algorithm", "rate", f"{metric}{f' ({unit})' * bool(unit)}", "95 % interval",
                f"minus {match.reference(benchmark).text}", "95 % interval", "rank", "state"]  # fmt: skip
        mine = [line[1:] for line in rows(found[found["benchmark"] == benchmark.name])]
        out += [
            f"## {benchmark.name}",
            "",
            f"{benchmark.panel}. {_substitute(benchmark)}".strip(),
            "",
            *_table(head, mine),
            "",
        ]
    return "\n".join([*out, *(f"- {note}" for note in notes(match))]) + "\n"


def _across(found: pd.DataFrame) -> list[str]:
    """Algorithms by benchmarks: mean, interval, rank."""
    order = _order(found)
    places = list(dict.fromkeys(found["benchmark"]))
    cells = {(r["algorithm"], r["benchmark"]): r for r in found.to_dict("records")}
    lines = []
    for algorithm in order:
        line = [algorithm]
        for place in places:
            r = cells.get((algorithm, place))
            if r is None or math.isnan(r["mean"]):
                line.append("" if r is None else r["status"].partition(":")[0])
            else:
                interval = f" ({span(r['low'], r['high'])})" if not math.isnan(r["low"]) else ""
                line.append(f"{number(r['mean'])}{interval}, {r['rank']:.0f}.")
        lines.append(line)
    return _table(["algorithm", *places], lines)


def _order(found: pd.DataFrame) -> list[str]:
    """The algorithms: those on more benchmarks first, then by their mean rank."""
    ranks = found.groupby("algorithm", sort=False)["rank"].agg(["count", "mean"]).reset_index()
    return list(ranks.sort_values(["count", "mean"], ascending=[False, True], kind="stable")["algorithm"])


def _table(head: list[str], lines: list[list[str]]) -> list[str]:
    rule = "|" + "|".join([" :--- ", *[" ---: "] * (len(head) - 1)]) + "|"
    return [
        f"| {' | '.join(head)} |",
        rule,
        *(f"| {' | '.join(c.replace('|', ' ') for c in line)} |" for line in lines),
    ]


def notes(match: Match) -> list[str]:
    """How the numbers were made."""
    seeds = ", ".join(map(str, match.seeds))
    found = [
        f"Seeds {seeds}. Mean of a run's last evaluations (a tenth; of sessions, one turn of all groups); where models "
        "of several sizes are evaluated, their mean. 95 % t-intervals over seeds; differences are paired by seed.",
    ]
    if match.tune:
        grid = ", ".join(f"{f:g}" for f in FACTORS)
        found.append(
            f"Rates: the best of {len(FACTORS)} ({grid} times the declared one) on seeds "
            f"{', '.join(map(str, match.tuning_seeds))}, by the same number on the same test data."
        )
    refused = sum(bool(e.refused) for e in match.entries)
    if refused:
        found.append(f"{refused} pairs do not fit and are left out (`python -m reproduce play --matrix` says why).")
    jobs = [(e.benchmark.name, j) for e in match.entries if (j := match.reported(e)) is not None]
    said = stamp((name, standing_of(j)) for name, j in jobs)
    return [*found, *([f"Results: {said}."] if said else [])]


def _substitute(benchmark: Benchmark) -> str:
    return f"{benchmark.substitute}." if benchmark.substitute else ""


def figure(match: Match, frame: pd.DataFrame) -> Figure:
    """One benchmark: the curves. Several: a heat map of the differences to the reference."""
    with figures.style():
        return _curves(match) if len(match.benchmarks) == 1 else _heat(match, summary(frame))


def stamp_text(match: Match) -> str:
    """What stands under a picture: scale, stand-ins, seeds."""
    said = tuple(dict.fromkeys(b.substitute for b in match.benchmarks if b.substitute))
    return f"{scale_line(match.benchmarks[0].scale, said)} Seeds: {len(match.seeds)}."


def _curves(match: Match) -> Figure:
    (benchmark,) = match.benchmarks
    metric, unit = benchmark.metric
    frame = match.histories(benchmark)
    timed = bool(frame["time"].notna().all())
    fig, axes = figures.sheet(height=3.0)
    ax = axes[0, 0]
    figures.curves(ax, frame, x="time" if timed else "round", names={})
    ax.set(xlabel="virtual seconds" if timed else "round", ylabel=f"{metric}{f' ({unit})' * bool(unit)}")
    ax.set_title(benchmark.name)
    figures.legend(fig)
    return fig


def _heat(match: Match, found: pd.DataFrame) -> Figure:
    """In the order of the table; what diverged or failed is hatched, what does not fit stays empty."""
    shown = found[~_refused(found)].copy()
    order = _order(shown)[::-1]
    places = [b.name for b in match.benchmarks]
    shown["row"] = shown["algorithm"].map({a: i for i, a in enumerate(order)})
    shown["column"] = shown["benchmark"].map({b: i + len(order) for i, b in enumerate(places)})
    names = {str(i): a for i, a in enumerate([*order, *places])}
    fig, axes = figures.sheet(height=max(1.5, 0.19 * len(order) + 0.9))
    ends = float(shown["difference"].abs().max(skipna=True))
    limits = (-ends, ends) if ends > 0 else (-1.0, 1.0)
    told: dict[str, Any] = {"x": "column", "y": "row", "value": "difference", "limits": limits}
    figures.heatmap(axes[0, 0], shown, **told, label="minus the reference (points)", names=names)
    axes[0, 0].set(xlabel="", ylabel="")
    axes[0, 0].tick_params(axis="x", labelrotation=20)
    return fig
