"""What a run is: the records that declare it, and the digest that names it.

    Experiment = Problem x System x Algorithm x Clock, all numbers fixed;  Run = Experiment + seed.
    Panel      = experiments with their seeds that are trained together (a column of a table, an axes of a figure).
    Artifact   = a table or figure of a paper: the panels it reads, and the functions from their histories to numbers
                 and pictures.

Everything here is a frozen value and imports neither torch nor pandas, so that listing, planning and every start of
Snakemake stay fast.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SCALES = ("smoke", "reduced", "paper")
PACKAGE = Path(__file__).parent
PLUMBING = ("data", "sources", "formats", "store", "download", "cost", "__init__")
"""Files that bring data and results from and to the disk or count costs: they move numbers and make none.
What a data set holds is pinned by its checksum instead."""

Label = str | int | float | bool


class Problem(Protocol):
    """What is optimised: model, loss, clients' data, test sets (`reproduce.problems`)."""

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the data sets that must be in the data folder; empty for embedded data."""


@dataclass(frozen=True)
class Experiment:
    """One line of a figure or one cell of a table: the four parts of a run with all numbers fixed.

    `labels` are the columns that tell this experiment from its neighbours in the results (algorithm, dataset, ...);
    they do not enter the digest, so the same training under two names is trained once.
    """

    labels: Mapping[str, Label]
    problem: Problem
    system: Any
    algorithm: Any
    clock: Any

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of the declaration and of the source code that gives it its meaning."""
        parts = [canonical(p) for p in (self.problem, self.system, self.algorithm, self.clock)]
        return _sha(json.dumps(parts, sort_keys=True), *(_file_sha(f) for f in sorted(code_files(self))))


@dataclass(frozen=True)
class Panel:
    """Experiments that are trained together, and the seeds of each.

    `name` is unique within paper and scale and makes file names. `substitute` says in one phrase what stands in for
    the paper's setting at a smaller scale; it is stamped into every caption. Artifacts that share runs name the same.
    """

    name: str
    experiments: tuple[Experiment, ...]
    seeds: tuple[int, ...]
    substitute: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9-]+", self.name):
            raise ValueError(f"panel name '{self.name}' must consist of a-z, 0-9 and '-'")
        if not self.seeds:
            raise ValueError(f"panel '{self.name}' has an empty list of seeds")

    @property
    def requires(self) -> tuple[str, ...]:
        """Data sets that any of the experiments needs."""
        return tuple(sorted({name for e in self.experiments for name in e.problem.requires}))


@dataclass(frozen=True)
class Artifact:
    """A table or a figure of a paper.

    panels(scale): the panels it reads; an empty tuple for an artifact without training.
    cells(histories): the tidy per-seed numbers, columns = setting columns + `algorithm`, `seed`, `metric`, `value` and
        optionally `censored` (True: `value` is a lower bound). Setting columns are named as in `reported/<name>.csv`;
        claims select from these rows and tables put the paper's number beside them.
    draw(histories, cells): a matplotlib figure; None for a table.
    rows, columns: the setting columns that make the rows and columns of the printed table.
    """

    paper: str
    name: str
    title: str
    panels: Callable[[str], tuple[Panel, ...]]
    cells: Callable[[Histories], pd.DataFrame]
    draw: Callable[[Histories, pd.DataFrame], Figure] | None = None
    rows: tuple[str, ...] = ("algorithm",)
    columns: tuple[str, ...] = ("metric",)
    decimals: int = 2
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def kind(self) -> str:
        return "table" if self.name.startswith("table") else "figure"


def no_panels(scale: str) -> tuple[Panel, ...]:
    """The panels of an artifact that needs no training."""
    return ()


def canonical(value: Any) -> Any:
    """`value` as JSON-ready data: dataclasses become {"type": name, field: ...}, mappings sorted, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: canonical(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(k): canonical(v) for k, v in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [canonical(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{value!r} cannot be part of an experiment: use numbers, strings, tuples and frozen dataclasses")


def code_files(experiment: Experiment) -> set[Path]:
    """The source files that decide the result: the engine, and the files of every record in the experiment."""
    rooms = ("engine", "problems", "systems")
    sources = (f for room in rooms for f in (PACKAGE / room).glob("*") if f.suffix in (".py", ".c", ".h"))
    files = {f for f in sources if f.stem not in PLUMBING}
    files.add(PACKAGE / "streams.py")
    stack: list[Any] = [experiment.problem, experiment.system, experiment.algorithm, experiment.clock]
    while stack:
        value = stack.pop()
        if dataclasses.is_dataclass(value):
            classes = (c for c in inspect.getmro(type(value)) if c.__module__.startswith("reproduce."))
            files |= {Path(inspect.getfile(c)) for c in classes}
            stack += [getattr(value, f.name) for f in dataclasses.fields(value)]
        elif isinstance(value, list | tuple):
            stack += value
    return files


@cache
def _file_sha(path: Path) -> str:
    """Digest of what a source file does: comments, docstrings and layout do not enter."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _sha(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
