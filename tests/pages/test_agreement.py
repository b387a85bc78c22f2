"""Printed numbers beside ours: intervals, distances, leads, against scipy and by hand from small tables."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import written
from scipy import stats

from reproduce.declare.paper import papers
from reproduce.errors import UserError
from reproduce.pages import agreement
from reproduce.verdicts import readings

LABELS = {"dataset": "fashion_mnist", "model": "cnn2", "slow_device": "rpi4", "fast_device": "rtx3080ti"}
PERCENT, ROUNDS = "accuracy_after_100_rounds", "rounds_to_60"


def table2(folder: Path, *rows: tuple[str, str, list[float], bool]) -> pd.DataFrame:
    """FedaGrac's Table 2 with these cells: algorithm, metric, a number for each seed, bounds?"""
    cells = [
        {**LABELS, "algorithm": a, "metric": m, "seed": seed, "value": value, "censored": bound}
        for a, m, values, bound in rows
        for seed, value in enumerate(values)
    ]
    written.cells(folder, "fedagrac_table2", pd.DataFrame(cells))
    found = readings.of_table("fedagrac", "table2", folder)
    return found[found["ours"].notna()].set_index(["series", "metric"], drop=False)


def test_a_printed_number_is_inside_the_prediction_interval_of_the_next_run(tmp_path: Path) -> None:
    """The interval is scipy's, and of new normal runs it holds nineteen of twenty."""
    values = [66.0, 71.0, 69.5, 68.0]
    one = table2(tmp_path, ("fedagrac", PERCENT, values, False)).iloc[0]
    scale = np.std(values, ddof=1) * np.sqrt(1 + 1 / 4)
    low, high = stats.t.interval(0.95, 3, np.mean(values), scale)
    assert (one["ours"] - one["half"], one["ours"] + one["half"]) == pytest.approx((low, high))
    assert one["inside"] == (low <= one["printed"] <= high)
    draws = np.random.default_rng(0).normal(size=(20_000, 5))
    half = stats.t.ppf(0.975, 3) * draws[:, :4].std(axis=1, ddof=1) * np.sqrt(1.25)
    assert np.mean(np.abs(draws[:, 4] - draws[:, :4].mean(axis=1)) <= half) == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize(("off", "inside"), [(0.999, True), (1.001, False)])
def test_the_end_of_the_interval_decides(tmp_path: Path, off: float, inside: bool) -> None:
    """Printed are 49; two seeds half a round to each side, so the interval is t(1) sqrt(0.5) sqrt(1.5) wide to each."""
    mean = 49 + off * stats.t.ppf(0.975, 1) * np.sqrt(0.5) * np.sqrt(1.5)
    found = table2(tmp_path, ("fednova", ROUNDS, [mean - 0.5, mean + 0.5], False))
    assert found["inside"].tolist() == [inside]


def test_bounds_and_single_seeds_have_no_interval_and_count_where_they_contradict(tmp_path: Path) -> None:
    """Printed are 49 rounds for FedNova: more than 60 contradicts it, more than 40 says nothing."""
    alone = table2(tmp_path, ("fednova", ROUNDS, [60.0], False)).iloc[0]
    above, below = (table2(tmp_path / str(n), ("fednova", ROUNDS, [n, n + 1.0], True)).iloc[0] for n in (60.0, 40.0))
    assert [one["inside"] for one in (alone, above, below)] == [None] * 3
    assert alone["gap"] == pytest.approx(np.log(60 / 49))
    assert above["gap"] == pytest.approx(np.log(60.5 / 49))
    assert np.isnan(below["gap"])
    assert not above["agrees"]
    with pytest.raises(UserError, match="two numbers"):
        readings.beside("fedagrac", "table2", pd.concat([readings.read("fedagrac", "table2", tmp_path)] * 2))


def frame(printed: list[float], ours: list[float], settings: list[str], unit: str = "%") -> pd.DataFrame:
    rows = {"table": "table1", "metric": "m", "setting": settings, "unit": unit, "bound": False, "printed_bound": False}
    return pd.DataFrame({**rows, "ours": ours, "printed": printed, "series": range(len(ours))})


def test_dealt_out_anew_is_what_all_deals_give() -> None:
    """Two settings of three and one series: all six deals of the three by hand."""
    rows = frame([70.0, 62.0, 50.0, 10.0], [71.0, 60.0, 40.0, 15.0], ["a", "a", "a", "b"])
    each = [np.median(np.abs([*np.subtract(ours, [70, 62, 50]), 5])) for ours in permutations([71, 60, 40])]
    found = agreement.null(rows)
    assert found is not None
    assert found == (pytest.approx(np.mean(each), abs=0.2), pytest.approx(min(each)))
    assert agreement.null(rows.iloc[2:]) is None, "one series a setting"


def test_leads_grow_as_scipy_says() -> None:
    random = np.random.default_rng(1)
    ours = random.uniform(20, 80, 12)
    printed = 10 + 1.3 * ours + random.normal(0, 5, 12)
    settings = [str(k // 3) for k in range(12)]
    for unit, seen in (("%", np.array), ("rounds", np.log)):
        rows = frame([*printed], [*ours], settings, unit).assign(own=[k % 3 == 0 for k in range(12)])
        led = agreement.leads(rows)
        pairs = [(k, k + j) for k in range(0, 12, 3) for j in (1, 2)]
        mine, theirs = ([seen(x)[a] - seen(x)[b] for a, b in pairs] for x in (ours, printed))
        np.testing.assert_allclose(led[["ours", "printed"]], np.column_stack([mine, theirs]))
        fit = stats.linregress(mine, theirs)
        assert agreement.slope(led) == pytest.approx(fit.slope)
        assert led["ours"].corr(led["printed"]) == pytest.approx(fit.rvalue)


def test_what_is_read_otherwise_stands_in_the_place_of_what_is_declared() -> None:
    rows = frame([70.0, 62.0], [75.0, 60.0], ["a", "a"]).assign(reading=readings.DECLARED)
    after = rows.iloc[:1].assign(ours=70.5, reading="a rate")
    of = agreement.Held({}, rows, [], rows, after)
    assert agreement.under(rows, [of])["ours"].tolist() == [70.5, 60.0]
    vain = agreement.Held({"tried": "Four rates."}, rows, [], rows, after)
    assert agreement.under(rows, [vain])["ours"].tolist() == [75.0, 60.0]


def test_every_paper_says_what_it_proposes_and_no_doubted_number_is_compared() -> None:
    for paper in papers():
        found = agreement.declared(paper)
        assert found["own"].any(), paper
        assert not found.duplicated(readings.KEYS).any(), paper
    copied = readings.printed("dynamic_init", "table8").query("algorithm == 'fedprox' and dataset == 'mnist'")
    assert "partial_overlap" not in set(copied["label_distribution"])
