"""Agreement: which numbers agree, which leads there are, counted by hand from small tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from reproduce.pages import agreement

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
    """A lower bound above the printed number (99 for 50) is a number that does not agree; what was not run is none."""
    found = agreement.numbers("paper", tables)
    ran = found[found["ours"].notna()]
    assert ran["agrees"].tolist() == [True, False, True, True, False, False, False]
    assert set(found["unit"]) == {"%", "rounds"}
    assert len(found) == len(ran) + 1


@pytest.mark.parametrize(("ours", "bound", "printed", "other", "said"), [
    (30, True, 50, False, None), (60, True, 50, False, False), (30, False, 50, True, False),
    (60, False, 50, True, None), (60, True, 50, True, None), (50, False, 50, False, True),
])  # fmt: skip
def test_bounds_disagree_only_where_they_contradict(
    tmp_path: Path, ours: int, bound: bool, printed: int, other: bool, said: bool | None
) -> None:
    row = f"mnist,fedavg,rounds_to_target,{ours},,3,{printed},,,{bound},run,{other}\n"
    more = "mnist,fedagrac,rounds_to_target,50,,3,50,,,False,run,False\n"
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper/fedagrac_table1.csv").write_text(HEAD + row + more)
    found = agreement.numbers("paper", tmp_path).iloc[0]
    assert (None if pd.isna(found["ours"]) else bool(found["agrees"])) == said


def test_by_chance_is_what_all_deals_give(tables: Path) -> None:
    """Percent: of 70.5, 60, 71 for 70, 62, 70 four of nine pairs agree. Rounds: of 10, 30, >99 for 11, 20, 50 one of
    nine (10 for 11), and 30 for 20 of a9a never."""
    found = agreement.numbers("paper", tables)
    mean, most = agreement.null(found[found["ours"].notna()])
    assert mean == pytest.approx((3 * 4 / 9 + 3 * 1 / 9) / 7, abs=0.02)
    assert most == pytest.approx(3 / 7)


def test_a_lead_is_within_one_setting_and_printed_ties_have_none(tables: Path) -> None:
    found = agreement.leads(agreement.numbers("paper", tables))
    assert found[["series_other", "ours", "printed"]].values.tolist() == [
        ["fedavg", 10.5, 8.0],
        ["fedavg", -20.0, -9.0],
    ]


def test_every_paper_says_what_it_proposes_and_every_printed_result_counts() -> None:
    found = agreement.numbers("paper")
    assert set(found.loc[found["own"], "paper"]) == set(found["paper"])
    whole, apart = (
        [int(line[1].replace(",", "")) for line in agreement.counts("paper", papers=p)] for p in (True, False)
    )
    assert sum(whole) == sum(apart)


def test_what_does_not_agree_is_read_in_other_ways() -> None:
    """The best evaluation is at or above the declared one in every setting, and only accuracies are read so."""
    assert ("dynamic_init", "table3") not in agreement.unexplained()
    found = agreement.numbers("paper")
    found = found[(found["paper"] == "fedagrac") & (found["table"] == "table2") & found["ours"].notna()]
    declared = found.reset_index(drop=True)
    best = dict(agreement.tried("fedagrac", "table2"))["the best evaluation"].reset_index(drop=True)
    assert (best["printed"] == declared["printed"]).all()
    gap, percent = best["ours"] - declared["ours"], best["unit"] == "%"
    assert (gap[percent] > 0).any()
    assert (gap[percent] >= 0).all()
    assert (gap[~percent].abs() < 1e-6).all()
