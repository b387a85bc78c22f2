"""Captions say of the numbers below what is true of them."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from written import Unplayed

from reproduce.declare.artifact import Artifact, no_panels
from reproduce.declare.experiment import COLUMNS, Experiment, Panel
from reproduce.declare.paper import artifacts
from reproduce.problem import Quadratic
from reproduce.report import captions, entries, figures, formats, tables
from reproduce.report.histories import Histories

CELLS = pd.DataFrame({"algorithm": "a", "seed": [0, 1], "metric": "acc", "value": [70.0, 72.0]})
PAPER = pd.DataFrame(
    {"algorithm": ["a"], "metric": ["acc"], "paper": [75.0], "paper_std": [float("nan")], "paper_text": ["75"]}
).assign(paper_censored=False)


def panels_of(scale: str) -> tuple[Panel, ...]:
    experiment = Experiment({"algorithm": "a"}, Quadratic(2, 2), None, None, Unplayed(5 if scale == "reduced" else 9))
    return (Panel("p", (experiment,), (0, 1), "fewer rounds" if scale == "reduced" else ""),)


def text(scale: str, panels: Any) -> str:
    made = Artifact("toy", "table1", "T", panels, lambda histories: CELLS)
    return formats.markdown(tables.build(made, CELLS, PAPER, scale))


def test_numbers_that_are_not_comparable_are_not_compared() -> None:
    reduced = text("reduced", panels_of)
    assert "not comparable with the paper number by number" in reduced
    assert "|  | paper, its scale | 75 |" in reduced
    for word in ("4.0", "ours\xa0−"):
        assert word not in reduced
    whole = text("paper", panels_of)
    assert "| ours\xa0−\xa0paper | −4" in whole


@pytest.mark.parametrize("panels", [no_panels, lambda scale: panels_of("paper")])
def test_what_is_the_same_at_all_scales_is_comparable(panels: Any) -> None:
    same = text("reduced", panels)
    assert "Reduced scale; the same as at paper scale." in same
    assert "| ours\xa0−\xa0paper | −4" in same
    assert "not comparable" not in same


def test_figures_that_are_the_same_at_all_scales_say_so() -> None:
    same = {a.id for a in artifacts() if entries.comparable(a, "reduced")}
    assert {"fedacs/fig2", "fedacs/fig7", "fedagrac/fig1", "defedavg/fig1", "fedacs/table3"} <= same
    assert not same & {"fedacs/fig6", "dynamic_init/table3", "fedagrac/fig4", "defedavg/table1", "fiarse/fig3"}
    assert {a.id for a in artifacts() if entries.comparable(a, "smoke")} < same


def histories(scale: str, seeds: int = 2) -> Histories:
    frame = pd.DataFrame({c: [0] * seeds for c in COLUMNS}).assign(seed=range(seeds), algorithm="a")
    return Histories(frame, scale)


def artifact(name: str) -> Artifact:
    (found,) = (a for a in artifacts() if a.id == name)
    return found


def test_what_a_caption_has_no_room_for_is_in_the_note() -> None:
    made = replace(artifact("fedagrac/fig2"), notes=("A remark.",))
    run = Histories(histories("reduced").frame, "reduced", (), ("fewer steps: K 25, 60 rounds",))
    fig, axes = figures.sheet(1, 2)
    axes[0, 1].set_title("(b)")
    captions.absent(fig, [("(b)", "no results")])
    captions.say(fig, captions.headline(made, run, fig))
    assert captions.caption(made, run, fig)[0] == (
        "Reduced scale: fewer steps; not comparable with the paper number by number."
    )
    assert fig.get_suptitle() == (
        "Reduced scale: fewer steps; not comparable with the paper number by number. 2 seeds."
    )
    assert captions.note(made, run, fig) == [
        "Substitutes and settings: fewer steps: K 25, 60 rounds.",
        "A remark.",
        "Not run, no results: (b).",
        "The paper publishes a picture without numbers, so its curves could not be read.",
    ]
