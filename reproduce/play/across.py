"""All algorithms on all benchmarks: one table, one heat map, both made from a `summary`.

In it, the first algorithm of each benchmark is the one that the others are compared with.
"""

import math
import re
import textwrap
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap
from matplotlib.figure import Figure

from reproduce.play import scores
from reproduce.play.scores import number, span
from reproduce.play.specs import NAMES
from reproduce.report import figures
from reproduce.report.formats import block, md
from reproduce.report.names import pretty
from reproduce.report.styles import BLUE, DARK, GREY, VERMILLION
from reproduce.text import markdown as grid

EDGE = "†"
BORDERS = (-20.0, -10.0, -3.0, -1.0, 1.0, 3.0, 10.0, 20.0)
"""Of the colours, in points; of distances in percent of the reference's."""
SPELLED = {
    "os_original": "OS (original)", "scaffold_released": "SCAFFOLD (released)", "decay": "FedAvg, decaying rate",
    "fading": "FedAvg, fading rate",
}  # fmt: skip
Cell: TypeAlias = Mapping[Any, Any]
"""A row of `Matrix.cells`."""


class Matrix:
    """The rows of a `summary` by algorithm and benchmark.

    cells: rows with `state` ("ok", "diverged", "failed", "refused"), `edge` and `place`, the rank among what was
    trained: whoever diverged or failed comes last. algorithms: those on more benchmarks first, then by their mean
    place. reasons: why pairs do not fit -> the number of the reason. judged: the benchmarks whose rates were chosen on
    held-out data.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        state = table["status"].str.extract(r"^(\w+)", expand=False)
        signed = table["mean"].where(table["metric"] == "distance", -table["mean"])
        place = signed.groupby(table["benchmark"].where(state != "refused")).rank(method="min", na_option="bottom")
        rows = table.assign(state=state, place=place, edge=table["status"].str.endswith(scores.AT_EDGE))
        self.cells = {(c["algorithm"], c["benchmark"]): c for c in rows.to_dict("records")}
        self.benchmarks = list(dict.fromkeys(table["benchmark"]))
        self.judged = list(dict.fromkeys(rows.loc[rows["chosen_on"].fillna("") != "", "benchmark"]))
        self.references = {b: str(group["algorithm"].iloc[0]) for b, group in table.groupby("benchmark", sort=False)}
        places = rows.groupby("algorithm", sort=False)["place"].agg(["count", "mean"]).reset_index()
        places = places.sort_values(["count", "mean"], ascending=[False, True], kind="stable")
        self.algorithms = list(places["algorithm"])
        self.ranks = [f"{m:.1f} ({n})" if n else "" for m, n in zip(places["mean"], places["count"], strict=True)]
        refused = [self.cells.get((a, b)) for a in self.algorithms for b in self.benchmarks]
        reasons = [reason_of(c) for c in refused if c and c["state"] == "refused"]
        self.reasons: Mapping[str, int] = {text: i for i, text in enumerate(dict.fromkeys(reasons), start=1)}

    def number(self, cell: Cell) -> str:
        """The number, in brackets, of the reason why a pair does not fit."""
        return f"({self.reasons[reason_of(cell)]})"


def reason_of(cell: Cell) -> str:
    """The reason why a pair does not fit."""
    return impersonal(cell["algorithm"], cell["status"].partition(": ")[2])


def impersonal(algorithm: str, reason: str) -> str:
    """The reason with "it" for the algorithm, so that equal reasons are said once."""
    name = algorithm.partition("(")[0]
    cls = NAMES[name].cls.__name__ if name in NAMES else name.partition(":")[2]
    return re.sub(rf"^({cls or name}|{re.escape(name)})\b", "it", reason)


def markdown(table: pd.DataFrame) -> list[str]:
    """Lines: the table of means, intervals and ranks, and what its marks mean."""
    matrix = Matrix(table)
    lines = []
    for algorithm, rank in zip(matrix.algorithms, matrix.ranks, strict=True):
        cells = [matrix.cells.get((algorithm, b)) for b in matrix.benchmarks]
        lines.append([md(algorithm), *(_entry(matrix, c) if c else "" for c in cells), rank])
    units = {"accuracy": "accuracy (%)", "distance": "distance to the optimum"}
    measured = " or ".join(units[m] for m in dict.fromkeys(table["metric"]))
    notes = [
        f"Mean {measured} with its 95 % interval, rank; what diverged or failed has the last rank. Mean ranks are over"
        " as many benchmarks as the brackets say; only those over the same ones can be compared."
    ]
    if any(c["edge"] for c in matrix.cells.values()):
        notes.append(f"{EDGE} The best rate is the first or the last of its grid: another one may be better.")
    notes += [*judged(matrix), *(f"({number}) {reason}." for reason, number in matrix.reasons.items())]
    head = ["algorithm", *map(md, matrix.benchmarks), "mean rank (benchmarks)"]
    return [*grid(head, lines, ":" + "-" * (len(head) - 1)).split("\n"), "", *(f"- {block(line)}" for line in notes)]


def judged(matrix: Matrix) -> list[str]:
    """The data that selected the learning rates, and the benchmarks, if not all."""
    where = "" if matrix.judged == matrix.benchmarks else f" ({', '.join(matrix.judged)})"
    sentence = f"Rates: chosen on a tenth of the training data that no client has, by other seeds{where}."
    return [sentence] if matrix.judged else []


def _entry(matrix: Matrix, cell: Cell) -> str:
    if cell["state"] == "refused":
        return f"no {matrix.number(cell)}"
    interval = span(cell["low"], cell["high"])
    mean = number(cell["mean"]) + (f" ({interval})" if interval else "")
    text = mean if cell["state"] == "ok" else cell["status"].partition(":")[0].partition(";")[0]
    return f"{text}, {cell['place']:.0f}{EDGE * cell['edge']}"


def heat(table: pd.DataFrame) -> Figure:
    """A box for each pair: the difference to the benchmark's reference and the rank; the reference's mean is above.

    Coloured by the difference where its interval excludes zero. Pairs that do not fit have the number of the reason.
    """
    matrix = Matrix(table)
    fig, axes = figures.sheet(height=0.165 * len(matrix.algorithms) + 1.1)
    ax = axes[0, 0]
    gains = np.full((len(matrix.algorithms), len(matrix.benchmarks) + 1), math.nan)
    for i, algorithm in enumerate(matrix.algorithms):
        for j, benchmark in enumerate(matrix.benchmarks):
            if cell := matrix.cells.get((algorithm, benchmark)):
                if cell["state"] == "ok" and excludes_zero(cell):
                    gains[i, j] = gained(cell)
                ink = "white" if gains[i, j] > BORDERS[-2] else GREY if cell["state"] == "refused" else "black"
                ax.text(j, i, _boxed(matrix, cell), ha="center", va="center", fontsize=6, color=ink)
        ax.text(len(matrix.benchmarks), i, matrix.ranks[i], ha="center", va="center", fontsize=6)
    colours = LinearSegmentedColormap.from_list("worse to better", [VERMILLION, "#F2F2F2", BLUE])
    norm = BoundaryNorm(BORDERS, colours.N)
    image = ax.imshow(np.ma.masked_invalid(gains), norm=norm, cmap=colours, aspect="auto", interpolation="none")
    _frame(ax, matrix)
    bar = fig.colorbar(image, ax=ax, pad=0.01, aspect=30, ticks=BORDERS[1:-1])
    unit = {"accuracy": "points", "distance": "percent of its distance, above zero if nearer"}
    measured = " or ".join(unit[metric] for metric in dict.fromkeys(table["metric"]))
    label = f"better than the reference by, in {measured}"
    bar.set_label("\n".join(textwrap.wrap(label, max(20, 5 * len(matrix.algorithms)))), fontsize=7)
    bar.outline.set_visible(False)
    return fig


def _boxed(matrix: Matrix, cell: Cell) -> str:
    """The text about one pair."""
    if cell["state"] == "refused":
        return matrix.number(cell)
    text = cell["state"]
    if text == "ok":
        text = _short(cell["difference"], cell["metric"], "+")
    return f"{text} ({cell['place']:.0f}{EDGE * cell['edge']})"


def gained(cell: Cell) -> float:
    """The gain over the reference, within `BORDERS`: points of accuracy, or percent of the reference's distance."""
    gap = cell["difference"]
    if cell["metric"] == "distance":
        gap = -100 * gap / (cell["mean"] - gap)
    return min(max(gap, BORDERS[0] * 0.999), BORDERS[-1] * 0.999)


def excludes_zero(cell: Cell) -> bool:
    """Tells whether the interval of the difference excludes zero; if seeds agree, whether it exceeds rounding."""
    low, high = cell["difference_low"], cell["difference_high"]
    if math.isnan(low):
        return bool(cell["seeds"] > 1 and abs(cell["difference"]) > 1e-9 * max(1.0, abs(cell["mean"])))
    return bool(low > 0 or high < 0)


def _short(value: float, metric: str, sign: str = "") -> str:
    """A number in a box: percentages and points to a tenth."""
    value = round(value, 9) + 0.0
    return f"{value:{sign if value else ''}{'.1f' if metric == 'accuracy' else '.3g'}}".replace("-", "−")


def printed(algorithm: str) -> str:
    """The algorithm's name as in the papers, with the options that were given: "FedProx(mu=0.01)"."""
    name, bracket, options = algorithm.partition("(")
    return f"{pretty(name, SPELLED)}{bracket}{options}"


def _frame(ax: Axes, matrix: Matrix) -> None:
    """Names around the boxes, and below them what the numbers in brackets mean."""
    heads = []
    for b in matrix.benchmarks:
        cell = matrix.cells[matrix.references[b], b]
        heads.append(
            "\n".join([*textwrap.wrap(b, 11), printed(cell["algorithm"]), _short(cell["mean"], cell["metric"])])
        )
    ax.set_xticks(range(len(heads) + 1), [*heads, "mean rank\n(benchmarks)"], fontsize=6.5)
    ax.set_yticks(range(len(matrix.algorithms)), map(printed, matrix.algorithms))
    ax.xaxis.tick_top()
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    caption = (
        "In the boxes: minus the reference, which is named above with its mean; the rank in brackets, † if the best "
        "rate is the first or the last of its grid. Coloured: the interval of the difference excludes zero. Brackets "
        "alone: does not fit, for the reason with that number in the table. Ranked last: diverged or failed."
    )
    ax.set_xlabel("\n".join(textwrap.wrap(caption, 118)), fontsize=6.5, color=DARK)
