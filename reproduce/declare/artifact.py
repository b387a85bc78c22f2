"""Artifacts as values: what is run, what is measured, how it is laid out. Imports neither torch nor pandas.

    Artifact   a table or figure of a paper: the panels it reads, its measures, its picture, its layout
    Measure    from histories to numbers: `Last`, `Window`, `Reach`, or a function for what is special
    Sheet      a picture, one axes per combination of labels: `Curves` for lines, `Filled` by a function

`report.metrics` and `report.drawing` give them their meaning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from reproduce.declare.experiment import Panel

Function = Callable[..., Any]
NUMBERS = ("artifact", "metric", "value", "std", "censored", "paper_cell")
"""Columns of reported/*.csv that describe the printed number, not its setting."""


class Later:
    """The functions of a module, which is imported when the first of them is called: `list` and `plan` start without
    pandas. A paper's `artifacts.py` imports the module itself for type checkers, and this for all others."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Function:
        return lambda *args, **options: getattr(import_module(self._module), name)(*args, **options)


@dataclass(frozen=True)
class Last:
    """Mean of the last evaluations of `metric`; over: how many, the label column that holds it, or a field of the
    experiment ("clock.dense_last")."""

    metric: str
    over: int | str = 1
    name: str = ""


@dataclass(frozen=True)
class Window:
    """Mean of `metric` over the evaluations `first` to `last`, both included, counted from the start of each of the
    `sessions` (name -> session), with the name in the column `transition`.

    A window longer than a session is left out. origin: the attribute of the experiment with the session that has the
    number 0 there ("": the first).
    """

    metric: str
    first: int
    last: int
    sessions: Mapping[str, int]
    name: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Reach:
    """The first round at which `metric` is at the target; a run that misses it has a lower bound.

    target, horizon: a number, or the label column that holds each run's; horizon "" is as far as the runs went, and one
    with a dot an attribute of the experiment, such as "clock.rounds".
    by_key: of every sub-key of the metric, in the column `key`, in place of the main number.
    """

    metric: str = "accuracy"
    target: float | str = "target_accuracy"
    horizon: float | str = ""
    name: str = "rounds_to_target"
    by_key: bool = False


Measure = Last | Window | Reach | Function


@dataclass(frozen=True)
class Printed:
    """The paper's numbers in a picture: open marks in the colours of their series.

    source: what the caption calls them, such as "Table 1".
    table, metric: the rows of reported/<table>.csv; each belongs to the axes whose experiments have its labels, as
    far as they have such labels at all.
    x, y: where a mark is: "value" is the printed number, another text a label of the axes, such as the
    target, a number itself, two numbers from where to where, a Window the rounds of which it is the mean.
    only: label -> value that the rows, or the experiments, must have. series: the column that names the series.
    They are drawn where they can be compared with ours: at paper scale, and where all scales run the same.
    """

    source: str
    table: str
    metric: str
    x: str | float | tuple[float, float] | Window = "value"
    y: str | float = "value"
    only: Mapping[str, Any] = field(default_factory=dict)
    series: str = "algorithm"


@dataclass(frozen=True)
class Sheet:
    """The layout of a picture with one axes per combination of labels.

    axes: the labels whose combinations make the axes, from left to right in lines of `across` (0: all in one line), in
    the order of `only` if it lists the values of all of them, else as declared; a line names those without results.
    title: of an axes, with labels in braces, printed as in tables; {letter} is a, b, ... and puts titles to the
    left. only: label -> values that are drawn (None: the experiments without the label). series: the label that tells
    lines apart; a line of text names those that an axes lacks. printed: the paper's numbers.
    sheet: options of `figures.sheet`.
    """

    axes: tuple[str, ...]
    title: str
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    series: str = field(default="algorithm", kw_only=True)
    across: int = 0
    ylabel: str = ""
    printed: tuple[Printed, ...] = ()
    sheet: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Filled(Sheet):
    """A picture whose axes are filled by a function of (ax, histories, cells), both of the axes' labels only.

    each: (lines, columns) of axes for a combination; with more than one the function gets their array, and returns
    which labels each has beyond the combination's, or None for axes without printed numbers.
    alike: axes that agree in these labels are compared: the function gets `limits`, the least and the greatest mean
    over seeds of their cells.
    """

    fill: Function = field(kw_only=True)
    each: tuple[int, int] = (1, 1)
    alike: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curves(Sheet):
    """Lines of the mean over seeds of `metric` over the rounds, one per value of `series`.

    order: the series that are drawn, in this order (empty: all). smooth: trailing mean over so many evaluations.
    spread: see `figures.curves`. every: draw only the rounds that are multiples of it. target: the label column of a
    dotted line. also: a function of (axes, rows of all rounds drawn) that adds what is special.
    """

    metric: str = "accuracy"
    order: tuple[str, ...] = ()
    spread: Literal["band", "bars", "end"] | None = None
    smooth: int = 1
    every: int = 1
    ylabel: str = "accuracy (%)"
    target: str = ""
    also: Function | None = None


@dataclass(frozen=True)
class Doubt:
    """Printed numbers that cannot be what the table says: the cells whose columns have these values, and why."""

    cells: Mapping[str, tuple[str, ...]]
    why: str


def no_panels(scale: str) -> tuple[Panel, ...]:
    """The panels of an artifact that needs no training."""
    return ()


@dataclass(frozen=True)
class Artifact:
    """A table or a figure of a paper.

    panels(scale): the panels it reads; an empty tuple for an artifact without training.
    cells: the measures; together they give the tidy per-seed numbers, columns = setting columns + `algorithm`, `seed`,
        `metric`, `value` and optionally `censored` (True: `value` is a lower bound) and `text`. Setting columns are
        named as in `reported/<name>.csv`; claims select from these rows, tables put the paper's number beside them.
    draw: the picture, a `Sheet` or a function of (histories, cells) that returns a figure; None for a table.
    rows, columns: the setting columns that make the rows and columns of the printed table.
    series: the column whose values are compared: the best of them is bold.
    metrics: those to print (empty: those that both we and the paper have; the CSV has all).
    labels: columns that describe a cell without telling cells apart, such as its target. drop: labels of the runs that
        only say how to measure, such as the number of evaluations of a mean; the cells do not have them.
    decimals: of all metrics, or per metric (2 for the others). names: how to print a value or a column.
    doubts: printed numbers that are marked and left out of the comparison with ours.
    stamp: what the caption of a figure says of its marks: a text, or a function of the histories that gives it.
    notes: what stands below a table, or in the note beside a figure, whose caption has at most 60 words.
    """

    paper: str
    name: str
    title: str = ""
    panels: Callable[[str], tuple[Panel, ...]] = no_panels
    cells: tuple[Measure, ...] | Function = ()
    draw: Sheet | Function | None = None
    rows: tuple[str, ...] = ("algorithm",)
    columns: tuple[str, ...] = ("metric",)
    series: str = "algorithm"
    metrics: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    decimals: int | Mapping[str, int] = 2
    names: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stamp: str | Function = ""
    doubts: tuple[Doubt, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def kind(self) -> str:
        return "table" if self.draw is None else "figure"
