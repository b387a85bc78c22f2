"""Agreement: which numbers agree, which leads there are, counted by hand from small tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduce.errors import UserError
from reproduce.pages import agreement
from reproduce.pages.short import about

HEAD = "dataset,algorithm,metric,mean,std,seeds,paper,paper_std,difference,censored,status,paper_censored\n"


def row(algorithm: str, metric: str, mean: object, paper: object, bound: bool = False, data: str = "mnist") -> str:
    return f"{data},{algorithm},{metric},{mean},,3,{paper},,,{bound},run,False\n"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables/paper"
    folder.mkdir(parents=True)
    percent, rounds = "accuracy_after_100_rounds", "rounds_to_target"
    text = HEAD + row("fedagrac", percent, 70.5, 70) + row("fedavg", percent, 60, 62) + row("fednova", percent, 71, 70)
    text += (
        row("fedagrac", rounds, 10, 11) + row("fedavg", rounds, 30, 20) + row("scaffold", rounds, 99, 50, bound=True)
    )
    text += (
        row("fedavg", rounds, 30, 20, data="a9a") + row("fedavg", "learning_rate", 0.1, 0.1) + row("x", rounds, "", 1)
    )
    (folder / "fedagrac_table1.csv").write_text(text)
    return tmp_path / "tables"


def test_numbers_agree_within_a_point_or_a_tenth(tables: Path) -> None:
    found = agreement.numbers("paper", tables)
    assert found["agrees"].tolist() == [True, False, True, True, False, False]
    assert set(found["unit"]) == {"%", "rounds"}


def test_a_lead_is_within_one_setting_and_printed_ties_have_none(tables: Path) -> None:
    found = agreement.leads(agreement.numbers("paper", tables))
    assert found[["series_other", "ours", "printed"]].values.tolist() == [
        ["fedavg", 10.5, 8.0],
        ["fedavg", -20.0, -9.0],
    ]


def test_nothing_rendered_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="snakemake paper"):
        agreement.numbers("paper", tmp_path)


def test_every_paper_says_what_it_proposes_and_every_metric_has_a_unit() -> None:
    found = agreement.numbers("paper")
    assert set(found.loc[found["own"], "paper"]) == set(found["paper"])
    assert len(agreement.counts("paper")) == found.groupby(["paper", "table"]).ngroups + 1


def test_the_picture_has_a_panel_for_each_paper_and_unit() -> None:
    axes = [ax for ax in agreement.figure("paper").axes if ax.get_visible()]
    found = agreement.numbers("paper")
    assert len(axes) == found.groupby(["paper", "unit"]).ngroups
    titles = [re.fullmatch(r"(.+)\n\d+ % of (\d+) agree", ax.get_title()) for ax in axes]
    said = [(title[1], int(title[2])) for title in titles if title]
    groups = found.groupby(["paper", "unit"]).size()
    assert sorted(said) == sorted((about(str(paper)).name, n) for (paper, _), n in groups.items())
