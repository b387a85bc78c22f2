"""The paper's printed numbers in the pictures: which axes they belong to, and where they lie there."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from reproduce.declare.artifact import Artifact, Printed, Sheet
from reproduce.declare.experiment import COLUMNS
from reproduce.declare.paper import artifacts
from reproduce.report import captions, drawing, figures, styles
from reproduce.report import printed_marks as paper
from reproduce.report.histories import Histories

PAPERS = Path("reproduce/papers")


def artifact(name: str) -> Artifact:
    (found,) = (a for a in artifacts() if a.id == name)
    return found


def marks(name: str, scale: str = "paper", beyond: Mapping[str, Any] | None = None, **labels: Any) -> list[paper.Mark]:
    """The marks of an artifact in the axes with these labels."""
    made = artifact(name)
    assert isinstance(made.draw, Sheet)
    mine = [e for p in made.panels(scale) for e in p.experiments if labels.items() <= e.labels.items()]
    return [m for each in made.draw.printed for m in paper.of(each, made, mine, {**labels, **(beyond or {})})]


def rows(paper: str, table: str, **settings: str) -> list[dict[str, str]]:
    with (PAPERS / paper / "reported" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if settings.items() <= row.items()]


def test_rounds_to_the_target_lie_on_the_target_line() -> None:
    found = {m.series: (m.x, m.y) for m in marks("fedacs/fig6", dataset="mnist")}
    said = rows("fedacs", "table1", dataset="mnist", metric="rounds_to_target")
    assert found == {r["algorithm"]: ((float(r["value"]),) * 2, 70.0) for r in said if r["value"] != "NA"}
    assert found["fedacs"] == ((68, 68), 70)
    assert not marks("fedacs/fig6", "reduced", dataset="mnist"), "no target there, so no line to lie on"


def test_seconds_to_the_target_and_lower_bounds() -> None:
    found = {m.series: m for m in marks("defedavg/fig5", dataset="fashion_mnist", distribution="iid")}
    assert {name: (m.x[0], m.y, m.bound) for name, m in found.items()} == {
        "fedavg": (179.83, 90, False), "favano": (880, 90, True), "asysg": (215.38, 90, False),
        "defedavg_iid": (99.72, 90, False),
    }  # fmt: skip
    assert not marks("defedavg/fig2", "reduced", dataset="fashion_mnist", distribution="iid"), "another target there"


def test_means_lie_over_the_rounds_that_they_are_of() -> None:
    """Table 2, AG News, FedACG: the end of the session before and the first four rounds of sessions 3 and 4."""
    mine = [e for p in artifact("dynamic_init/fig2").panels("paper") for e in p.experiments]
    labels = next(e.labels for e in mine if e.labels["dataset"] == "ag_news" and e.labels["algorithm"] == "fedacg")
    kept = {k: labels[k] for k in ("dataset", "label_overlap", "dirichlet_alpha", "algorithm")}
    found = marks("dynamic_init/fig2", **kept)
    said = rows("dynamic_init", "table2", **{k: str(v) for k, v in kept.items()})
    length = next(e.clock.rounds for e in mine if e.labels["dataset"] == "ag_news")
    begin = {"first": 3 * length, "second": 4 * length}
    expected = {
        (r["init_scheme"], begin[r["transition"]], begin[r["transition"]] + 4.0, float(r["value"])) for r in said
    }
    assert {(m.series, *m.x, m.y) for m in found} == expected
    assert len(expected) == 6


def test_marks_are_open_and_have_the_colour_of_their_series() -> None:
    fig, axes = figures.sheet()
    made = artifact("defedavg/fig5")
    mine = tuple(e for p in made.panels("paper") for e in p.experiments if e.labels["distribution"] == "iid")
    here = Histories(pd.DataFrame({c: [] for c in COLUMNS}), "paper", experiments=mine)
    assert isinstance(made.draw, Sheet)
    paper.draw(
        axes[0, 0], made.draw.printed, made, here, {"dataset": "fashion_mnist", "distribution": "iid"}, pd.DataFrame()
    )
    drawn = {line.get_xdata()[0]: line for line in axes[0, 0].get_lines() if line.get_gid() == "printed"}
    assert drawn[179.83].get_color() == styles.known()["fedavg"].color
    assert {line.get_markerfacecolor() for line in drawn.values()} == {"white"}
    assert (drawn[880].get_marker(), drawn[179.83].get_marker()) == (">", styles.known()["fedavg"].marker)
    assert axes[0, 0].get_legend_handles_labels()[1] == [paper.KEY]
    assert captions.of_marks(made, fig) == "Open marks: the paper's numbers (Table I)."


DECLARED = [(a.id, each) for a in artifacts() if isinstance(a.draw, Sheet) for each in a.draw.printed]


@pytest.mark.parametrize(("name", "each"), DECLARED)
def test_every_declared_source_has_marks_at_paper_scale(name: str, each: Printed) -> None:
    """With whatever labels the axes of the picture add."""
    made = artifact(name)
    mine = [e for p in made.panels("paper") for e in p.experiments]
    sizes = ("1/64", "1/16", "0.04", "0.16")
    assert any([*paper.of(each, made, mine, {"model_size": s, "last": 1})] for s in sizes), each


@pytest.mark.parametrize("name", ["fedacs/fig2", "fedacs/sensitivity", "fedacs/fig6"])
def test_captions_are_silent_where_nothing_of_the_paper_is_drawn(name: str) -> None:
    assert captions.of_marks(artifact(name), Figure()) == ""


def test_numbers_that_cannot_be_compared_are_not_drawn() -> None:
    """At reduced scale; and at paper scale those of sessions that nobody knows."""
    mine = artifact("dynamic_init/fig3").draw, artifact("dynamic_init/fig4").draw
    assert all(isinstance(draw, Sheet) and not draw.printed for draw in mine)
    for scale, drawn in (("reduced", 0), ("paper", 2)):
        assert len(frames(scale)) == drawn, scale


def frames(scale: str) -> list[Any]:
    """The frames in Fig. 4 of FedaGrac, whose best pair of rates the paper names."""
    made = artifact("fedagrac/fig4")
    mine = [e for p in made.panels(scale) for e in p.experiments if e.labels["model"] == "lr"]
    cells = pd.DataFrame([{**e.labels, "seed": 0, "metric": "last10", "value": 50.0} for e in mine])
    frame = pd.DataFrame({c: [0] * len(mine) for c in COLUMNS}).assign(**{k: cells[k] for k in mine[0].labels})
    here = Histories(frame, scale, experiments=tuple(e for p in made.panels(scale) for e in p.experiments))
    fig = drawing.draw(made, here, cells)
    return [patch for ax in fig.axes for patch in ax.patches if patch.get_gid() == "printed"]
