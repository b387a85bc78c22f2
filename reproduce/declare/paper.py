"""Papers as values: what one is called, what it has and proposes, how its series are drawn, what its metrics are.

A paper is a folder with a `paper.yaml`, in `reproduce/papers/` or in the folder that REPRODUCE_PAPERS names; nothing
else knows it. Its `artifacts.py` declares tables and figures, whose words and layouts `artifacts.yaml` may have. Its
`metrics.yaml` says what the numbers in them are.
"""

import csv
import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from reproduce.declare.artifact import NUMBERS, Artifact, Doubt
from reproduce.declare.experiment import PACKAGE
from reproduce.errors import UserError
from reproduce.files import mismatch, read_yaml, record

ANY, PERCENT, SHARE, SIZE = (-math.inf, math.inf), (0.0, 100.0), (0.0, 1.0), (0.0, math.inf)
RANGES = {
    "percent": PERCENT, "share": SHARE, "fraction": SHARE, "probability": SHARE, "distance": SIZE, "loss": SIZE,
    "s": SIZE, "rounds": SIZE, "aggregations": SIZE,
}  # fmt: skip
"""Unit -> what numbers in it can be, if the metric does not say otherwise; others can be anything."""


@dataclass(frozen=True)
class Metric:
    """A number of the cells. better: higher, lower or none; it orders runs, and says what divergence means. range: of
    its values. point: it has one value for all seeds. compared: are printed numbers compared with ours?"""

    unit: str
    better: str
    text: str
    range: tuple[float, float] = ANY
    point: bool = False
    compared: bool = True

    @property
    def sign(self) -> int:
        """1 if more is better, -1 if less is, 0 if neither."""
        return {"higher": 1, "lower": -1}.get(self.better, 0)


RECORDED = {
    "accuracy": Metric("percent", "higher", "accuracy on the test data", PERCENT),
    "macro_f1": Metric("percent", "higher", "macro F1 on the test data", PERCENT),
    "balanced_accuracy": Metric("percent", "higher", "mean accuracy of the classes on the test data", PERCENT),
    "auc": Metric("percent", "higher", "mean area under the curve of each class against the rest", PERCENT),
    "distance": Metric("distance", "lower", "distance to the optimum", SIZE),
    "train_loss": Metric("loss", "lower", "loss on training data", SIZE),
}
"""What runs record, and papers and plays read as it is."""
TEXT = {"type": "string", "minLength": 1}
METRIC = record(
    ("unit", "better", "text"), unit=TEXT, better={"enum": ["higher", "lower", "none"]}, text=TEXT,
    range={"prefixItems": [{"type": "number"}] * 2, "minItems": 2},
    point={"type": "boolean"}, compared={"type": "boolean"},
)  # fmt: skip
TEXTS, BY_NAME = {"type": "array", "items": TEXT}, {"type": "object", "additionalProperties": TEXT}
DIGITS = {"type": "integer", "minimum": 0}
LAYOUT = record(
    ("title",), title=TEXT, stamp=TEXT, notes=TEXTS, names=BY_NAME, series=TEXT,
    **dict.fromkeys(("rows", "columns", "metrics", "labels", "drop"), TEXTS),
    decimals={"anyOf": [DIGITS, {"type": "object", "additionalProperties": DIGITS}]},
    doubts={
        "type": "array",
        "items": record(("cells", "why"), why=TEXT, cells={"type": "object", "additionalProperties": TEXTS}),
    },
)  # fmt: skip
"""The fields of an `Artifact` that are words and layout."""


@cache
def metrics(folder: Path) -> Mapping[str, Metric]:
    """The metrics of the paper in a folder; none without a `metrics.yaml`."""
    raw = _entries(folder / "metrics.yaml", METRIC)
    return {name: Metric(**m | {"range": tuple(m.get("range", RANGES.get(m["unit"], ANY)))}) for name, m in raw.items()}


def _entries(file: Path, schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The entries of a YAML file by their names, each of which has the schema; none without a file."""
    raw: dict[str, dict[str, Any]] = read_yaml(file) if file.is_file() else {}
    if problem := mismatch(raw, {"type": "object", "additionalProperties": schema}):
        raise UserError(f"{file}: {problem}")
    return raw


def _layout(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `artifacts.yaml` as fields of an `Artifact`."""
    doubts = [Doubt({k: tuple(v) for k, v in d["cells"].items()}, d["why"]) for d in entry.get("doubts", ())]
    fields = {**entry, "doubts": doubts}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def metric(name: str, paper: str = "") -> Metric:
    """A metric of the paper, else one that runs record, else that of any paper, else one of which nothing is said."""
    declared = papers()[paper].metrics if paper in papers() else {}
    return declared.get(name) or _metrics().get(name) or Metric("", "none", "")


@cache
def _metrics() -> Mapping[str, Metric]:
    return {name: m for paper in papers().values() for name, m in paper.metrics.items()} | RECORDED


@dataclass(frozen=True)
class Series:
    """The look of a series. name: in print ("": that of its class). look: colour, dashes and marker in every figure
    (`report.styles`)."""

    look: str
    name: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper. authors: their family names. arxiv: its number there. venue: with the year, if it was printed elsewhere.

    figures, tables: how many it has, numbered from 1. proposed: its own values of the `series` that its tables compare.
    series: its values -> how they are written and drawn. names: other words of its settings -> in print. benchmarks:
    alias -> scale -> one of its panels, as `play` takes it.
    """

    folder: Path
    package: str
    name: str
    authors: str
    title: str
    arxiv: str
    venue: str = ""
    figures: int = 0
    tables: int = 0
    proposed: tuple[str, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    benchmarks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def link(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}"

    @property
    def where(self) -> str:
        return self.venue or f"arXiv 20{self.arxiv[:2]}"

    @property
    def place(self) -> str:
        """The paper's folder as it is named to people: relative to the repository if it lies there."""
        return str(self.folder.relative_to(PACKAGE.parent) if self.folder.is_relative_to(PACKAGE) else self.folder)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return metrics(self.folder)

    def module(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}")

    def file(self, name: str) -> Path:
        """A file of its folder; UserError if it is not there."""
        if not (path := self.folder / name).is_file():
            raise UserError(f"{self.place}/{name} is not there")
        return path

    @cached_property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Figures before tables, 2 before 10. TypeError for a name that occurs twice, UserError for words on none."""
        layouts = _entries(self.folder / "artifacts.yaml", LAYOUT)
        ordered = sorted(self.module("artifacts").ARTIFACTS, key=lambda artifact: natural(artifact.name))
        if extra := layouts.keys() - {artifact.name for artifact in ordered}:
            raise UserError(f"{self.place}/artifacts.yaml: artifacts.py has no '{min(extra)}'")
        for one, other in pairwise(ordered):
            if one.name == other.name:
                raise TypeError(f"{self.place}/artifacts.py: two artifacts have the name '{one.name}'")
        return tuple(replace(a, **_layout(layouts[a.name])) if a.name in layouts else a for a in ordered)

    @property
    def declared(self) -> tuple[Artifact, ...]:
        """The artifacts that are figures and tables of the paper."""
        return tuple(a for a in self.artifacts if a.name.startswith(("fig", "table")))

    def with_numbers(self, scale: str, results: Path = Path("results")) -> int:
        """The number of declared artifacts that have cells at a scale, whole or in part."""
        return sum(has_numbers(scale, artifact.id, results) for artifact in self.declared)


@cache
def papers() -> Mapping[str, Paper]:
    """Key -> paper, as they are found. UserError for a folder of a user's own that has none."""
    files = [(file, "reproduce.papers.") for file in sorted((PACKAGE / "papers").glob("*/paper.yaml"))]
    if folder := os.environ.get("REPRODUCE_PAPERS"):
        own_files = sorted(Path(folder).absolute().glob("*/paper.yaml"))
        if not own_files:
            raise UserError(f"REPRODUCE_PAPERS: no folder in {folder} has a paper.yaml")
        sys.path.append(str(own_files[0].parents[1]))
        files += [(file, "") for file in own_files]
    return {file.parent.name: _read(file, f"{package}{file.parent.name}") for file, package in files}


def _read(file: Path, package: str) -> Paper:
    try:
        raw = read_yaml(file)
        raw |= {"proposed": tuple(raw["proposed"]), "series": {k: Series(**v) for k, v in raw["series"].items()}}
        return Paper(file.parent, package, **raw)
    except (TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{file}: {error}; docs/extending.md shows one") from error


def artifacts(paper: str = "") -> tuple[Artifact, ...]:
    """All artifacts, or those of one paper."""
    return tuple(a for key, each in papers().items() if paper in ("", key) for a in each.artifacts)


def natural(name: str) -> list[str | int]:
    """Sort key that puts fig2 before fig10: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]


def has_numbers(scale: str, artifact: str, results: Path = Path("results")) -> bool:
    """Tells whether an artifact ("fedacs/fig6") has cells at a scale."""
    file = results / scale / "cells" / f"{artifact.replace('/', '_')}.csv"
    return file.is_file() and file.read_bytes().count(b"\n") > 1


def total() -> str:
    """Figures and tables declared of those that the papers have."""
    every = papers().values()
    return f"{sum(len(p.declared) for p in every)} of {sum(p.figures + p.tables for p in every)}"


@cache
def printed_settings(paper: str, name: str) -> tuple[Mapping[str, str], ...]:
    """The distinct settings of the paper's reported/<name>.csv, `algorithm` included, as text and in its order; none if
    it prints no numbers there."""
    path = papers()[paper].folder / "reported" / f"{name}.csv"
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in NUMBERS} for row in csv.DictReader(file)]
    return tuple(dict(items) for items in dict.fromkeys(tuple(row.items()) for row in rows))
