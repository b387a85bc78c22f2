"""Tables to test with: artifacts, cells like a paper's own numbers, and printed numbers written as CSV."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from written import Unplayed

from reproduce.declare.artifact import Artifact, no_panels
from reproduce.declare.experiment import Experiment, Panel
from reproduce.declare.paper import artifacts, printed_settings
from reproduce.report import tables
from reproduce.report.histories import Histories, Source
from reproduce.report.render import check, make, read

TABLE3: dict[str, Any] = {
    "rows": ("dataset", "label_overlap", "dirichlet_alpha", "algorithm"),
    "columns": ("transition", "init_scheme"),
    "series": "init_scheme",
}


@dataclass(frozen=True, eq=False)
class NoProblem:
    name: str = ""
    requires: tuple[str, ...] = ()


def panel(name: str, **labels: Any) -> Panel:
    experiment = Experiment(labels, NoProblem(name), NoProblem(), NoProblem(), Unplayed())
    return Panel(name, (experiment,), seeds=(0,), substitute=f"{name} stands in")


def artifact(
    cells: pd.DataFrame | Callable[[Histories], pd.DataFrame], paper: str = "fiarse", name: str = "none", **fields: Any
) -> Artifact:
    make = cells if callable(cells) else lambda histories: cells
    return Artifact(paper, name, fields.pop("title", "A title"), fields.pop("panels", no_panels), make, **fields)


def printed(paper: str, name: str, noise: float = 0.0) -> pd.DataFrame:
    """The paper's own numbers as cells of three seeds, spread by `noise` around them."""
    said = tables.reported(paper, name)
    assert said is not None
    settings = said[[c for c in said.columns if not c.startswith("paper")]]
    return pd.concat(
        [settings.assign(seed=s, value=said["paper"] + (s - 1) * noise) for s in range(3)], ignore_index=True
    )


def table(made: Artifact, cells: pd.DataFrame, said: pd.DataFrame | None = None, **more: Any) -> tables.Table:
    return tables.build(made, check(made, cells), said, more.pop("scale", "paper"), **more)


def said(rows: str) -> pd.DataFrame:
    """Numbers of a paper, written as its CSV."""
    raw = pd.read_csv(StringIO(rows), dtype=str, keep_default_na=False)
    return raw.drop(columns=["value", "std"]).assign(
        paper=pd.to_numeric(raw["value"], errors="coerce"),
        paper_std=pd.to_numeric(raw["std"], errors="coerce"),
        paper_text=raw["value"],
        paper_censored=False,
    )


LAYOUTS = [(a.paper, a.name) for a in artifacts() if a.kind == "table" and printed_settings(a.paper, a.name)]


def whole(paper: str, name: str, **options: Any) -> tables.Table:
    """A table of a paper as declared, with the printed numbers and words as ours; numbers of three seeds."""
    (made,) = (a for a in artifacts() if (a.paper, a.name) == (paper, name))
    said_there = tables.reported(paper, name)
    assert said_there is not None
    noisy = printed(paper, name, noise=0.5)
    words = said_there["paper"].isna() & ~said_there["paper_text"].isin(["NA", "N/A"])
    noisy = noisy.assign(text=[*(said_there["paper_text"].where(words, "")), *[""] * (2 * len(said_there))])
    keep = noisy["value"].notna() | (noisy["text"] != "")
    return table(made, noisy[keep], said_there, **options)


def render(artifact: Artifact, scale: str, root: Path, sources: Iterable[Source] = ()) -> list[Path]:
    """The files of an artifact made of these results."""
    return make(artifact, read(artifact, scale, sources), root)
