"""Captions and stamps say of the numbers below what is true of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from unplayed import Unplayed

from reproduce.declare.artifact import Artifact, Curves, Filled, Sheet, function, no_panels
from reproduce.declare.experiment import COLUMNS, Experiment, Panel
from reproduce.papers import artifacts
from reproduce.problem import Quadratic
from reproduce.report import around, captions, entries, figures, formats, tables
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
    for word in ("75", "1 compared", "4.0", "ours −"):
        assert word not in reduced
    whole = text("paper", panels_of)
    assert "| ours − paper | −4" in whole
    assert "Acc: 1 of 1 compared, mean absolute difference 4.00." in whole


@pytest.mark.parametrize("panels", [no_panels, lambda scale: panels_of("paper")])
def test_what_is_the_same_at_all_scales_is_comparable(panels: Any) -> None:
    same = text("reduced", panels)
    assert "Reduced scale; the same as at paper scale." in same
    assert "Acc: 1 of 1 compared, mean absolute difference 4.00." in same
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


def stamp(name: str, scale: str) -> str:
    found = artifact(name)
    stands = list(dict.fromkeys(p.substitute for p in found.panels(scale) if p.substitute))
    line = entries.scale_line(scale, stands, entries.comparable(found, scale))
    if isinstance(found.stamp, str):
        return f"{line} {found.stamp}"
    experiments = tuple(e for p in found.panels(scale) for e in p.experiments)
    run = replace(histories(scale), experiments=experiments)
    return f"{line} {function(found.paper, found.stamp)(run)}"


def test_stamps_state_the_settings_of_the_run() -> None:
    assert "; 50 rounds from the origin" in stamp("fedacs/fig4", "smoke")
    assert "; 1,000 rounds from the origin" in stamp("fedacs/fig4", "paper")
    assert "One rate 0.001," in stamp("fedacs/fig4", "paper")
    assert "rates of K = 5 (the paper gives none); n = 3." in stamp("defedavg/fig7", "smoke")
    assert "rates of K = 10 (the paper gives none); n = 10." in stamp("defedavg/fig7", "reduced")
    assert "rates of K = 50 (the paper gives none); n = 10." in stamp("defedavg/fig7", "paper")
    for number in range(2, 8):
        assert "Loss on up to 10,000 training samples." in artifact(f"defedavg/fig{number}").notes
    assert "raw curves, which reach it earlier than their trailing means" in " ".join(artifact("fedacs/fig9").notes)


FIGURES = [a for a in artifacts() if a.kind == "figure"]
MARKED = {
    "pictures:convergence": (), "pictures:path": (), "pictures:rates": (), "pictures:histogram": (),
    "pictures:choices": ("dots",), "pictures:readings": ("dots",), "pictures:over_lambda": ("bars",),
    "pictures:traded": ("bars",), "pictures:schematic": (), "pictures:clients": (), "pictures:points_in_the_plane": (),
    "pictures:surrogates": (), "pictures:timelines": (), "pictures:patterns": (),
    "fedacs/sensitivity": ("dots",),
}  # fmt: skip
"""Marks of what is not lines with bands."""


@pytest.mark.parametrize("scale", ["smoke", "reduced", "paper"])
@pytest.mark.parametrize("found", FIGURES, ids=lambda a: str(a.id))
def test_captions_are_short_whatever_is_drawn(found: Artifact, scale: str) -> None:
    """With all that can come: half of the panels and series missing, seeds that differ in number, printed numbers."""
    experiments = tuple(e for p in found.panels(scale) for e in p.experiments)
    frame = pd.DataFrame({c: [0, 0, 0] for c in COLUMNS}).assign(seed=[0, 0, 1], algorithm=["a", "b", "b"])
    phrases = (phrase for p in found.panels(scale) for phrase in p.substitute.split("; ") if phrase)
    run = Histories(frame if experiments else frame.iloc[:0], scale, (), tuple(dict.fromkeys(phrases)), (), experiments)
    fig, axes = figures.sheet()
    code = found.draw.fill if isinstance(found.draw, Filled) else found.draw
    marks = MARKED.get(found.id, MARKED.get(getattr(code, "where", ""), ("band",)))
    lines = (found.draw.spread or "band",) if isinstance(found.draw, Curves) else marks
    for gid in lines:
        axes[0, 0].plot([0], [0], gid=gid)
    if isinstance(found.draw, Sheet) and scale == "paper":
        fig.set_label("1 of 4 panels, 1 of 7 series")
        if found.draw.printed:
            axes[0, 0].plot([0], [0], "o", gid="printed")
    said = " ".join([captions.title(found, fig), *captions.caption(found, run, fig)])
    assert len(said.split()) <= captions.MOST, said


def test_what_a_caption_has_no_room_for_is_in_the_note() -> None:
    made = replace(artifact("fedagrac/fig2"), notes=("A remark.",))
    run = Histories(histories("reduced").frame, "reduced", (), ("fewer steps: K 25, 60 rounds",))
    fig, axes = figures.sheet(1, 2)
    axes[0, 1].set_title("(b)")
    around.absent(fig, [("(b)", "no results")])
    assert captions.caption(made, run, fig)[0] == (
        "Reduced scale: fewer steps; not comparable with the paper number by number."
    )
    assert captions.headline(made, run, fig) == "Reduced scale: fewer steps"
    assert captions.note(made, run, fig) == [
        "Stand-ins and settings: fewer steps: K 25, 60 rounds.",
        "A remark.",
        "Not run, no results: (b).",
        "The paper prints no numbers for this figure.",
    ]


def test_a_substitute_leaves_the_seeds_to_the_stamp() -> None:
    """The stamp counts the seeds that were run; a second number would be another one sooner or later."""
    for a in artifacts():
        for scale in ("smoke", "reduced", "paper"):
            for panel in a.panels(scale):
                assert not re.search(r"\bseeds?\b", panel.substitute), (a.id, scale, panel.substitute)
