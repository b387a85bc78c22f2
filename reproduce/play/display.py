"""The display of a match: lines for the terminal, Markdown, figures."""

import math
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from reproduce import files
from reproduce.play import across
from reproduce.play.match import TUNING_SEEDS, Match
from reproduce.play.scores import AT_EDGE, number, span, summary
from reproduce.report import captions, figures
from reproduce.report.entries import scale_line
from reproduce.report.formats import block, md
from reproduce.text import counted, named_seeds
from reproduce.text import markdown as grid

HEADER = ("BENCHMARK", "ALGORITHM", "RATE", "MEAN", "95 % INTERVAL", "DIFFERENCE", "95 % INTERVAL ", "RANK", "STATE")
BESIDE = {
    "worst_client": "worst client", "client_spread": "spread over clients",
    "to_target": "to target", "bytes_to_target": "MB to target",
}  # fmt: skip
"""Columns before the last two, if they are asked for, and their names."""
RIGHT = ("RATE", "MEAN", "DIFFERENCE", "RANK", *(name.upper() for name in BESIDE.values()))


def header(table: pd.DataFrame) -> list[str]:
    """The names of the columns of `rows`."""
    return [*HEADER[:-2], *(words.upper() for name, words in BESIDE.items() if name in table), *HEADER[-2:]]


def rows(table: pd.DataFrame) -> list[list[str]]:
    """The cells under `header` of a `summary`, but for what does not fit."""
    lines, columns = [], [name for name in BESIDE if name in table]
    for one in table[~table["status"].str.startswith("refused")].to_dict("records"):
        mean, interval = number(one["mean"]), span(one["low"], one["high"])
        difference = number(one["difference"]), span(one["difference_low"], one["difference_high"])
        rank = "" if math.isnan(one["rank"]) else f"{one['rank']:.0f}"
        rate = "" if math.isnan(one["lr"]) else f"{one['lr']:.3g}"
        clients = [number(one[name] / (1e6 if name == "bytes_to_target" else 1)) for name in columns]
        named = [one["benchmark"], one["algorithm"], rate]
        state = one["status"].partition(": ")[0].replace(AT_EDGE, f" {across.EDGE}")
        lines.append([*named, mean, interval, *difference, *clients, rank, state])
    return lines


def markdown(match: Match, frame: pd.DataFrame) -> str:
    """The table of every benchmark; with several, one of the means of all before them; how the numbers were made."""
    table = summary(frame)
    out = [f"# {md(', '.join(b.name for b in match.benchmarks))} at {match.benchmarks[0].scale} scale", ""]
    if len(match.benchmarks) > 1:
        out += [*across.markdown(table), ""]
    for benchmark in match.benchmarks:
        beside = [words for name, words in BESIDE.items() if name in table]
        interval = "95 % interval"
        head = ["algorithm", "rate", benchmark.measured, interval, f"minus {md(benchmark.reference)}", interval]
        head += [*beside, "rank", "state"]
        lines = [[*map(md, line[1:])] for line in rows(table[table["benchmark"] == benchmark.name])]
        out += [
            f"## {md(benchmark.name)}",
            "",
            block(f"{benchmark.declared}." + (f" {benchmark.substitute}." if benchmark.substitute else "")),
            "",
            grid(head, lines, ":" + "-" * (len(head) - 1)),
            "",
        ]
    return "\n".join([*out, *(f"- {block(note)}" for note in notes(match))]) + "\n"


def notes(match: Match) -> list[str]:
    """The failures, and how the numbers were made."""
    measured = " or ".join(dict.fromkeys(b.measured for b in match.benchmarks)).capitalize()
    references = " or ".join(dict.fromkeys(b.reference for b in match.benchmarks))
    spread = "95 % t-intervals over seeds" if len(match.seeds) > 1 else "One seed has no interval"
    lines = [f"{e.spec.text} on {e.benchmark.name} failed: {e.failed}" for e in match.entries if e.failed]
    lines += [
        f"{named_seeds(match.seeds).capitalize()}. {measured}: mean of a run's last evaluations (a tenth; of sessions, "
        f"one turn of all groups); where models of several sizes are evaluated, their mean. {spread}. Differences are "
        f"to {references}, paired by seed.",
    ]
    if any(b.by_client for b in match.benchmarks):
        lines.append(
            "A client's accuracy is that on its own part of the test set if that is split, else on the test samples in "
            "the proportions of its labels. The spread is the standard deviation over clients."
        )
    lines += [
        f"To target: the round, or the virtual second, of the first evaluation at {b.target:g} or better, and the "
        "megabytes that all clients together were sent and sent until then; empty where a seed does not reach it."
        for b in match.benchmarks[:1]
        if b.target is not None
    ]
    if match.tune:
        rates = ", ".join(f"{f:g}" for f in match.factors)
        lines.append(
            f"Rates: the best of {len(match.factors)} ({rates} times the declared one) on seeds "
            f"{', '.join(map(str, TUNING_SEEDS))}, by the same number."
        )
        lines += across.judged(across.Matrix(summary(match.frame())))
    if any(e.edge for e in match.entries):
        lines.append(f"{across.EDGE} The best rate is at the edge of its grid: `--grid` tries others.")
    refused = sum(bool(e.refused) for e in match.entries)
    if refused:
        lines.append(f"Left out: {counted(refused, 'pair')} that cannot be.")
    for own, other in match.twins():
        lines.append(
            f"{own.text} gives the numbers of {other.text}, to the last digit, wherever both were trained: what it "
            "adds has no effect here. A bound that is never reached? A hook that is not called? (A server step that "
            "needs each client's update returns None from `reduction`.)"
        )
    return lines


def write(match: Match, frame: pd.DataFrame, output: Path) -> list[str]:
    """Write OUTPUT.md, .csv and, if a run has numbers, .png and .pdf; returns the endings of what was written."""
    named, endings = output.with_name, [".md", ".csv"]
    files.write_text(named(output.name + ".md"), markdown(match, frame))
    files.write_text(named(output.name + ".csv"), frame.to_csv(index=False, lineterminator="\n"))
    if not any(match.reported(e) for e in match.entries):
        return endings
    with figures.style():
        fig = _curves(match) if len(match.benchmarks) == 1 else across.heat(summary(frame))
        captions.say(fig, headline(match, fig))
        figures.save(fig, output)
    return [*endings, ".png", ".pdf"]


def headline(match: Match, fig: Figure) -> str:
    """The text above a picture: scale, substitutes, seeds, and what bands are."""
    substitutes = tuple(dict.fromkeys(b.substitute for b in match.benchmarks if b.substitute))
    seeds = f"{counted(len(match.seeds), 'seed').capitalize()}."
    return " ".join([scale_line(match.benchmarks[0].scale, substitutes), seeds, *captions.marks(fig)])


def _curves(match: Match) -> Figure:
    (benchmark,) = match.benchmarks
    frame = match.histories(benchmark).assign(metric=benchmark.metric[0])
    timed = bool(frame["time"].notna().all())
    fig, axes = figures.sheet(height=3.0)
    ax = axes[0, 0]
    figures.curves(ax, frame, x="time" if timed else "round")
    ax.set(xlabel="virtual seconds" if timed else "round", ylabel=benchmark.measured)
    ax.set_title(benchmark.name)
    captions.legend(fig)
    return fig
