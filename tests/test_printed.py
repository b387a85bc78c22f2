"""The paper's printed numbers in the pictures: which axes they belong to, and where they lie there."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from reproduce.declare.artifact import Artifact, Printed, Sheet
from reproduce.declare.experiment import COLUMNS
from reproduce.papers import artifacts
from reproduce.report import captions, categories, figures, looks
from reproduce.report import marks as paper
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
    return [m for each in made.draw.printed for m in paper.of(each, made, mine, {**labels, **(beyond or {})}, scale)]


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
    """Table 9, half, MNIST, FedAvg: the first ten rounds of sessions 3, 4, 5 of 20 rounds each, one pilot session."""
    found = marks("dynamic_init/fig4", label_distribution="half", dataset="mnist", algorithm="fedavg")
    said = rows("dynamic_init", "table9", label_distribution="half", dataset="mnist", algorithm="fedavg")
    (experiment, *_) = artifact("dynamic_init/fig4").panels("paper")[0].experiments
    length = experiment.clock.rounds
    begin = {"first": 3 * length, "second": 4 * length, "third": 5 * length}
    expected = {
        (r["init_scheme"], begin[r["transition"]] + 1.0, begin[r["transition"]] + 10.0, float(r["value"])) for r in said
    }
    assert {(m.series, *m.x, m.y) for m in found} == expected
    assert len(expected) == 9


def test_numbers_of_submodels_lie_at_their_sizes() -> None:
    found = marks("fiarse/fig3", beyond={"model_size": "1/64", "last": 800}, dataset="cifar100")
    assert {(m.series, m.x[0], m.y) for m in found} == {("fiarse", 800, 35.04)}
    averages = {(m.series, *m.x, m.y) for m in marks("fiarse/fig4", dataset="cifar10")}
    assert ("fiarse", 1 / 64, 1.0, 73.75) in averages
    assert len(averages) == 4


def test_the_best_pair_is_outlined_in_the_panels_of_its_model() -> None:
    fig, axes = figures.sheet(1, 2)
    cells = pd.DataFrame([{"lambda": x, "learning_rate": y, "value": x + y} for x in (0.5, 1.0) for y in (0.005, 0.05)])
    made = artifact("fedagrac/fig4")
    for ax, model in zip(axes[0], ("lr", "alexnet"), strict=True):
        categories.heatmap(ax, cells, x="lambda", y="learning_rate")
        mine = tuple(e for p in made.panels("paper") for e in p.experiments if e.labels["model"] == model)
        here = Histories(pd.DataFrame({c: [] for c in COLUMNS}), "paper", experiments=mine)
        assert isinstance(made.draw, Sheet)
        paper.draw(ax, made.draw.printed, made, here, {"model": model})
    (frame,), none = ([p for p in ax.patches if p.get_gid() == "printed"] for ax in axes[0])
    assert (frame.get_xy(), none) == ((0.5, -0.5), []), "rate 0.005 below, lambda 1 to the right"
    assert captions.of_marks(made, fig) == "Framed boxes: the paper's numbers (Sec. 6.2, LR)."


def test_at_reduced_scale_the_best_pair_is_its_counterpart() -> None:
    """A tenth of the steps at ten times the rate: the same pair is at 0.05, not at 0.005, which the grid has too."""
    _, axes = figures.sheet()
    cells = pd.DataFrame([{"lambda": 1.0, "learning_rate": y, "value": y} for y in (0.005, 0.05)])
    categories.heatmap(axes[0, 0], cells, x="lambda", y="learning_rate")
    made = artifact("fedagrac/fig4")
    mine = tuple(e for p in made.panels("reduced") for e in p.experiments if e.labels["model"] == "lr")
    here = Histories(pd.DataFrame({c: [] for c in COLUMNS}), "reduced", experiments=mine)
    assert isinstance(made.draw, Sheet)
    paper.draw(axes[0, 0], made.draw.printed, made, here, {"model": "lr"})
    (frame,) = (p for p in axes[0, 0].patches if p.get_gid() == "printed")
    assert axes[0, 0].get_yticklabels()[round(frame.get_xy()[1] + 0.5)].get_text() == "0.05"
    assert frame.get_label() == "the paper's best pair, at 10 times the rate"


def test_marks_are_open_and_have_the_colour_of_their_series() -> None:
    fig, axes = figures.sheet()
    made = artifact("defedavg/fig5")
    mine = tuple(e for p in made.panels("paper") for e in p.experiments if e.labels["distribution"] == "iid")
    here = Histories(pd.DataFrame({c: [] for c in COLUMNS}), "paper", experiments=mine)
    assert isinstance(made.draw, Sheet)
    paper.draw(axes[0, 0], made.draw.printed, made, here, {"dataset": "fashion_mnist", "distribution": "iid"})
    drawn = {line.get_xdata()[0]: line for line in axes[0, 0].get_lines() if line.get_gid() == "printed"}
    assert drawn[179.83].get_color() == looks.FEDAVG.color
    assert {line.get_markerfacecolor() for line in drawn.values()} == {"white"}
    assert (drawn[880].get_marker(), drawn[179.83].get_marker()) == (">", "o")
    assert axes[0, 0].get_legend_handles_labels()[1] == [paper.KEY]
    assert captions.of_marks(made, fig) == "Open marks: the paper's numbers (Table I)."


def test_marks_that_are_bars_are_called_so() -> None:
    fig, axes = figures.sheet()
    made, labels = artifact("dynamic_init/fig4"), {"label_distribution": "half", "dataset": "mnist"}
    mine = tuple(e for p in made.panels("paper") for e in p.experiments if labels.items() <= e.labels.items())
    here = Histories(pd.DataFrame({c: [] for c in COLUMNS}), "paper", experiments=mine)
    assert isinstance(made.draw, Sheet)
    paper.draw(axes[0, 0], made.draw.printed, made, here, {**labels, "algorithm": "fedavg"})
    assert captions.of_marks(made, fig) == "Double bars: the paper's numbers (Table 8 and Table 9)."


DECLARED = [(a.id, each) for a in artifacts() if isinstance(a.draw, Sheet) for each in a.draw.printed]


@pytest.mark.parametrize(("name", "each"), DECLARED)
def test_every_declared_source_has_marks_at_paper_scale(name: str, each: Printed) -> None:
    """With whatever labels the axes of the picture add."""
    made = artifact(name)
    mine = [e for p in made.panels("paper") for e in p.experiments]
    sizes = ("1/64", "1/16", "0.04", "0.16")
    assert any([*paper.of(each, made, mine, {"model_size": s, "last": 1}, "paper")] for s in sizes), each


def test_captions_say_where_numbers_are_from_or_that_there_are_none() -> None:
    def text(name: str) -> str:
        return captions.of_marks(artifact(name), Figure())

    assert text("fedacs/fig6") == "The paper's numbers (Table 1) are of other settings than those drawn here."
    assert text("fedacs/fig2") == "The paper prints no numbers for this figure."
    assert text("fedacs/sensitivity") == ""
