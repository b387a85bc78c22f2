"""What the papers leave open: registers are read strictly, answer every question, and quote cells that are there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy import stats

from reproduce.declare.paper import papers
from reproduce.errors import UserError
from reproduce.pages import choices
from reproduce.pages.choices import QUESTIONS, Register, register, section
from reproduce.pages.page_numbers import cells, lead, played, reread

ROOT = Path(__file__).parents[2]
EFFECT = {
    "what": "FedACS minus FedAvg",
    "cells": "reduced/fedacs_sensitivity",
    "where": {"dataset": "fashion_mnist", "question": "default"},
    "a": {"algorithm": "fedacs"},
    "b": {"algorithm": "fedavg"},
}
CALIBRATED = {**EFFECT, "where": {"dataset": "fashion_mnist", "question": "rate", "answer": "1/50"}}
CHOICE = {
    "open": "a thing",
    "paper": "Not said.",
    "options": {"one": "as run", "other": EFFECT, "third": "not run"},
    "run": "one",
    "why": "It is the first.",
}


@pytest.fixture(scope="module")
def registers() -> dict[str, Register]:
    return {paper: register(paper) for paper in papers()}


def written(folder: Path, choice: dict[str, Any], **more: Any) -> Register:
    """The register of a paper whose file has one choice."""
    folder.mkdir(exist_ok=True)
    raw = {"code": "None.", "answers": dict.fromkeys(QUESTIONS, "Yes."), "choices": [choice], **more}
    (folder / "open_choices.yaml").write_text(yaml.safe_dump(raw))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "papers", lambda: {"fedacs": replace(papers()["fedacs"], folder=folder)})
        return register("fedacs")


def test_every_paper_answers_every_question_in_a_sentence_and_has_measured_effects(
    registers: dict[str, Register],
) -> None:
    """Reading a register computes all its effects: a selection that is not in the committed cells is an error."""
    for found in registers.values():
        assert tuple(found.answers) == QUESTIONS
        assert all(answer.endswith(".") for answer in found.answers.values())
        assert len({c.open for c in found.choices}) == len(found.choices)
        assert sum(c.matters for c in found.choices) >= 3


def test_an_effect_is_the_lead_between_its_two_selections(tmp_path: Path) -> None:
    made = written(tmp_path, {**CHOICE, "options": {"one": EFFECT, "other": CALIBRATED, "third": "not run"}})
    (both,) = made.choices[0].effects
    default = cells("reduced/fedacs_sensitivity")(dataset="fashion_mnist", question="default")
    expected = lead(default(algorithm="fedacs"), default(algorithm="fedavg"))
    link = "[reduced](../../results/reduced/cells/fedacs_sensitivity.csv)"
    assert both.startswith(f"FedACS minus FedAvg ({link}, 7 seeds): *as run* {expected} points; *other* ")
    assert "(4.8 to 11.9)" in both


def test_an_effect_may_be_of_rows_that_play_wrote(tmp_path: Path) -> None:
    tuned = {"cells": "play/reduced/across", "where": {"benchmark": "capacities"}, "b": {"algorithm": "heterofl"}}
    effect = {**EFFECT, **tuned, "a": {"algorithm": "fiarse"}}
    made = written(tmp_path, {**CHOICE, "options": {"one": "as run", "other": effect}})
    rows = played("reduced/across")(benchmark="capacities")
    expected = lead(rows(algorithm="fiarse"), rows(algorithm="heterofl"))
    said = f"FedACS minus FedAvg ([play](../../play/reduced/across.csv), 5 seeds): *other* {expected} points"
    assert made.choices[0].effects == [said]
    assert f"{said} |" in section(made, "")


def test_a_selection_may_be_of_another_reading_of_the_curves(tmp_path: Path) -> None:
    fig2 = {"cells": "reduced/fedagrac_fig2", "where": {"step_async": 1, "lambda": 0.2, "metric": "last10"}}
    best = {**EFFECT, **fig2, "a": {"read": {"best": True}}, "b": {}}
    made = written(tmp_path, {**CHOICE, "options": {"one": "as run", "other": best}})
    others, declared = (reread("reduced/fedagrac_fig2", ROOT, **how)(**fig2["where"]) for how in ({"best": True}, {}))
    assert made.choices[0].effects[0].endswith(f": *other* {lead(others, declared)} points")
    assert not others.seeds.equals(declared.seeds)


def test_a_lead_of_an_alternative_is_clear_if_it_differs_from_that_of_what_is_run(tmp_path: Path) -> None:
    """A lead that excludes zero, as the one that is run does, is no effect of the alternative."""
    shards, centred = (
        {"cells": "reduced/defedavg_sensitivity", "where": {"distribution": "noniid", "metric": "time_to_target_s"},
         "what": "a minus b", "a": {"algorithm": f"defedavg_niid{name}"}, "b": {"algorithm": f"fedavg{name}"}}
        for name in ("_shards", "_centred")
    )  # fmt: skip
    run = {**shards, "a": {"algorithm": "defedavg_niid"}, "b": {"algorithm": "fedavg"}}
    made = written(tmp_path, {**CHOICE, "options": {"one": run, "shards": shards, "centred": centred}})
    rows = cells("reduced/defedavg_sensitivity")(**run["where"])
    leads = {n: rows(**o["a"]).seeds - rows(**o["b"]).seeds for n, o in (("one", run), ("s", shards), ("c", centred))}
    assert [stats.ttest_1samp(leads[n] - leads["one"], 0).pvalue < 0.05 for n in ("s", "c")] == [False, True]
    (said,) = made.choices[0].effects
    assert "*as run*" in said
    assert "*centred*" in said
    assert "*shards*" not in said
    assert stats.ttest_1samp(leads["s"], 0).pvalue < 0.05


def test_a_choice_without_an_effect_is_only_named(tmp_path: Path) -> None:
    """Its interval holds zero, its seeds agree, or nothing of it was run."""
    same = {**EFFECT, "b": {"algorithm": "fedacs"}}
    for i, other in enumerate((EFFECT, same, "No number changes.")):
        made = written(tmp_path / str(i), {**CHOICE, "options": {"one": "as run", "other": other}})
        assert (made.choices[0].matters, made.choices[0].effects) == (False, [])
        assert "a thing" not in section(made, "file")
        assert "1 more choice without a measured effect ([list](file))" in section(made, "file")


NO_ROWS = "option 'other', effect 'FedACS minus FedAvg': results/reduced/cells/fedacs_sensitivity.csv has no"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"whi": "x"}, "choices.0: Additional properties are not allowed ('whi' was unexpected)"),
        ({"run": "fourth"}, "choice 'a thing': unknown option 'fourth'; "),
        ({"options": {"one": "as run", "other": 3}}, "choices.0.options.other: 3"),
        ({"digits": "1"}, "choices.0.options.other.digits: '1'"),
        ({"a": {"algorithm": "fedacd"}}, f"{NO_ROWS} rows with algorithm = fedacd"),
        ({"a": {"algo": "fedacs"}}, f"{NO_ROWS} column 'algo'"),
        ({"where": {}}, "rows are of more than one setting"),
        ({"cells": "reduced/nothing"}, "results/reduced/cells/nothing.csv is not there"),
    ],
)
def test_a_choice_or_an_effect_that_is_not_as_it_should_be_is_a_line_that_names_it(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    if change.keys() <= {*EFFECT, "digits"}:
        change = {"options": {"one": "as run", "other": {**EFFECT, **change}}}
    with pytest.raises(UserError) as error:
        written(tmp_path, {**CHOICE, **change})
    assert str(error.value).startswith(f"{tmp_path}/open_choices.yaml, choice")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
