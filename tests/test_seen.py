"""Figures in words: numbers that are there, bounds marked as bounds, of what is drawn, in names that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reproduce import papers
from reproduce.declare.artifact import Artifact, Code, Curves, Filled, Last, Printed, no_panels
from reproduce.pages.seen import seen
from reproduce.store import seal

DRAW = Code("pictures:draw")
HEAD = "dataset,algorithm,metric,seed,value,censored"


def figure(draw: Any = DRAW, **more: Any) -> Artifact:
    given: dict[str, Any] = {"cells": lambda histories: None, "draw": draw, **more}
    return Artifact("fedacs", "toy", "Title", no_panels, **given)


def said(artifact: Artifact, *rows: str, head: str = HEAD) -> str:
    """What is said of an artifact with these cells, in the working directory."""
    cells = Path(f"results/smoke/cells/{artifact.paper}_{artifact.name}.csv")
    cells.parent.mkdir(parents=True, exist_ok=True)
    cells.write_text("\n".join([head, *rows]) + "\n")
    cells.with_suffix(".json").write_text(json.dumps({"cells": seal.of_file(cells)}))
    return seen(artifact, "smoke")


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_elsewhere")
def test_a_bound_is_not_told_as_a_number() -> None:
    rows = (
        "mnist,fedavg,rounds_to_target,0,100,False",
        "mnist,fedavg,rounds_to_target,1,120,False",
        "svhn,fedavg,rounds_to_target,0,390,False",
        "svhn,fedavg,rounds_to_target,1,400,True",
        "mnist,os,rounds_to_target,0,400,True",
        "svhn,os,rounds_to_target,0,400,True",
        "mnist,fedau,rounds_to_target,0,0,True",
        "mnist,fedacs,rounds_to_target,0,,False",
        "svhn,fedacs,rounds_to_target,0,50,False",
        "mnist,moon,rounds_to_target,0,20,False",
        "svhn,moon,rounds_to_target,0,0,True",
    )
    assert said(figure(), *rows) == (
        "Title. Rounds to target, means over seeds, least to greatest over settings: "
        "FedAvg 110, more than 395 in 1 of 2 settings; OS more than 400; FedAU not known; "
        "FedACS 50, no value in 1 of 2 settings; MOON 20, not known in 1 of 2 settings."
    )


@pytest.mark.usefixtures("_elsewhere")
def test_the_first_measure_is_told_not_the_one_with_most_cells() -> None:
    rows = (
        "a,fedavg,a_cost,0,7,",
        "b,fedavg,a_cost,0,7,",
        "a,os,a_cost,0,8,",
        "a,fedavg,last,0,60,",
        "a,os,last,0,61,",
    )
    text = "Title. Last: FedAvg 60; OS 61."
    assert said(figure(cells=(Code("measures:costs"), Last("accuracy", name="last"))), *rows) == text


@pytest.mark.usefixtures("_elsewhere")
def test_where_no_metric_tells_series_apart_all_are_told() -> None:
    rows = ("none,T_max,-1,39", "none,T_min,-1,1")
    assert said(figure(), *rows, head="algorithm,metric,seed,value") == (
        "Title. Largest step count of the drawn static system: 39. Smallest step count of the drawn static system: 1."
    )


@pytest.mark.usefixtures("_elsewhere")
def test_what_is_not_drawn_is_not_told() -> None:
    rows = ("a,os,final_accuracy,0,61,", "a,fedavg,final_accuracy,0,60,", "a,fedavg_side_run,final_accuracy,0,1,")
    drawn = Curves(("panel",), "", order=("fedavg", "os"), ylabel="distance to the\noptimum $\\|X_r - X^*\\|$")
    assert said(figure(drawn), *rows) == (
        "Title. Lines of distance to the optimum over round, one per algorithm. One panel per setting. "
        "Final accuracy (%): OS 61; FedAvg 60."
    )
    only = Filled(("dataset",), "", only={"dataset": ("b", None)}, fill=Code("pictures:fill"))
    assert said(figure(only), *rows) == "Title. One panel per dataset."


@pytest.mark.usefixtures("_elsewhere")
def test_series_are_those_of_the_lines_by_their_printed_names() -> None:
    head = "n,init_scheme,algorithm,metric,seed,value"
    rows = ("10,previous,fedavg,acc_pct_at_end,0,60", "5,average,fedavg,acc_pct_at_end,0,61")
    by_number = Filled((), "", series="n", fill=Code("pictures:fill"))
    assert said(figure(by_number), *rows, head=head) == "Title. Acc at end (%): n = 5: 61; n = 10: 60."
    marks = (Printed("Table 1", series="init_scheme"),)
    named = Filled((), "", printed=marks, fill=Code("pictures:fill", {"names": {"previous": "the last model"}}))
    assert said(figure(named), *rows, head=head) == "Title. Acc at end (%): the last model 60; average 61."


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("fedacs/fig6", "Final accuracy (%)"),
        ("fedacs/theory", "Expected update deviation"),
        ("fedagrac/fig5", "Mean test accuracy of the last ten rounds (%)"),
        ("defedavg/setup", "Mean seconds per aggregation"),
        ("fiarse/fig3", "Test accuracy (%)"),
    ],
)
def test_figures_are_told_by_their_main_number(name: str, metric: str) -> None:
    (found,) = (a for a in papers.artifacts() if a.id == name)
    assert f" {metric}" in seen(found, "reduced")


@pytest.mark.parametrize("artifact", [a for a in papers.artifacts() if a.kind == "figure"], ids=lambda a: str(a.id))
@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_texts_have_neither_formulas_nor_identifiers(artifact: Artifact, scale: str) -> None:
    text = seen(artifact, scale)
    assert not re.search(r"[$\\\n]|\w_\w|\bpct\b|\bnan\b|\blast10\b", text)
    assert "calibrated at server" not in text
