"""Verdicts: each form of a check on hand-made cells, with intervals computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, ttest_1samp

from reproduce.verdicts.claims import Metric
from reproduce.verdicts.intervals import INF, Region, judge, t_interval
from reproduce.verdicts.observations import read_cells
from reproduce.verdicts.verdict import Outcome, evaluate

METRICS = {
    "acc": Metric("acc", "points", "higher", ""),
    "loss": Metric("loss", "loss", "lower", ""),
    "rounds": Metric("rounds", "rounds", "lower", ""),
    "skew": Metric("skew", "skewness", "none", ""),
}
HALF = 2.484138  # half a t-interval of three values with standard deviation 1: 4.302653 / sqrt(3)


def cells(path: Path, *lines: str, columns: str = "algorithm,seed,metric,value") -> pd.DataFrame:
    """Observations of the given lines of a cells file."""
    file = path / "cells.csv"
    file.write_text("\n".join((columns, *lines)) + "\n")
    return read_cells(file, (), METRICS)


def runs(path: Path, metric: str = "acc", column: str = "algorithm", **values: Any) -> pd.DataFrame:
    """One setting; a keyword per value of `column`, with its numbers for seeds 0, 1, ... or the one of a point; '>9' is
    a lower bound."""
    lines = []
    for name, numbers in values.items():
        for seed, value in enumerate(numbers) if isinstance(numbers, list) else [(-1, numbers)]:
            text = str(value)
            lines.append(f"{name.removeprefix('v')},{seed},{metric},{text.lstrip('>')},{text.startswith('>')}")
    return cells(path, *lines, columns=f"{column},seed,metric,value,censored")


def verdict(frame: pd.DataFrame, **check: Any) -> str:
    return outcome(frame, **check).verdict


def outcome(frame: pd.DataFrame, **check: Any) -> Outcome:
    check = {"for" if k == "where" else "is" if k == "is_" else k: v for k, v in check.items()}
    return evaluate({"metric": "acc", **check}, frame, METRICS)


# --- intervals --------------------------------------------------------------------------------------------------------


def test_t_interval_by_hand() -> None:
    assert t_interval([1.0, 2.0, 3.0]) == pytest.approx((2 - HALF, 2 + HALF), abs=1e-5)
    assert t_interval([5.0, 5.0]) == (5.0, 5.0)
    with pytest.raises(ValueError, match="two values"):
        t_interval([1.0])


def test_slack_is_the_distance_to_the_nearest_end() -> None:
    region = Region(-2.0, 4.0)
    assert [region.slack(v) for v in (-3.0, 0.0, 3.0)] == [-1.0, 2.0, 1.0]
    assert region.slack_range(0.0, 3.5) == (0.5, 3.0)  # the middle of the region, 1, lies between
    assert region.slack_range(-9.0, -5.0) == (-7.0, -3.0)
    assert Region(0.0, INF).slack_range(-1.0, 2.0) == (-1.0, 2.0)


def test_strict_regions_leave_their_ends_out() -> None:
    assert Region(low=1.0).holds(1.0)
    assert not Region(low=1.0, strict=True).holds(1.0)
    assert judge([(1.0, 1.0)], Region(low=1.0, strict=True), point=True).says == "against"


# --- forms ------------------------------------------------------------------------------------------------------------


def test_better_by_hand(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[63, 74, 85], b=[60, 70, 80])  # leads 3, 4, 5
    result = outcome(frame, better="a", than=["b"])
    assert (result.verdict, result.n, result.unit) == ("reproduced", 3, "points")
    assert result.effect == pytest.approx(4.0)
    assert result.interval == pytest.approx((4 - HALF, 4 + HALF), abs=1e-5)
    assert verdict(frame, better="a", than=["b"], margin=3.0) == "inconclusive"
    result = outcome(frame, better="a", than=["b"], margin=7.0)
    assert result.verdict == "contradicted"
    assert result.effect == pytest.approx(-3.0)
    assert verdict(frame, better="b", than=["a"]) == "contradicted"
    assert verdict(frame, better="b", than=["a"], direction="lower") == "reproduced"


def test_runs_pair_on_the_seed_not_on_the_line(tmp_path: Path) -> None:
    lines = ["a,0,acc,63", "a,1,acc,74", "a,2,acc,85", "b,2,acc,80", "b,0,acc,60", "b,1,acc,70", "a,3,acc,0"]
    result = outcome(cells(tmp_path, *lines), better="a", than=["b"])
    assert (result.verdict, result.n) == ("reproduced", 3)


def test_a_ratio_margin_is_judged_on_logarithms(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=10, b=20)
    result = outcome(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 1.5})
    assert (result.verdict, result.unit) == ("reproduced", "log ratio")
    assert result.effect == pytest.approx(np.log(2 / 1.5))
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 2.0}) == "reproduced"
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 2.1}) == "contradicted"


def test_ratios_of_seeds_that_agree_have_no_grid(tmp_path: Path) -> None:
    """11 against 13 rounds in every seed: one round more would move the logarithm by 0.08, not by the smallest gap
    between the logarithms of other settings."""
    lines = [
        f"{n},{a},{s},rounds,{v}"
        for n, (first, others) in enumerate(((11, 13), (11, 14), (100, 122)))
        for a, v in (("a", first), ("b", others))
        for s in range(3)
    ]
    frame = cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value")
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 1.001}) == "inconclusive"


def test_order_compares_neighbours(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=1, b=2, c=3)
    assert verdict(frame, metric="rounds", order=["a", "b", "c"]) == "reproduced"
    assert verdict(frame, metric="rounds", order=["a", "c", "b"]) == "contradicted"


def test_equal_wants_the_whole_interval_inside(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[10, 20, 30], b=[9.9, 20.1, 30.0])  # differences 0.1, -0.1, 0: mean 0, half 0.248
    assert verdict(frame, equal=["a", "b"], within=0.25) == "reproduced"
    assert verdict(frame, equal=["a", "b"], within=0.24) == "inconclusive"
    apart = runs(tmp_path, a=12, b=10)
    assert verdict(apart, equal=["a", "b"], within=1.0) == "contradicted"
    assert verdict(apart, equal=["b", "a"], within=1.0) == "contradicted"


def test_an_exact_identity_is_judged_seed_by_seed(tmp_path: Path) -> None:
    assert verdict(runs(tmp_path, a=[0.1], b=[0.1]), equal=["a", "b"], exact=True) == "reproduced"
    assert verdict(runs(tmp_path, a=[1, 2, 3], b=[1, 2, 3.01]), equal=["a", "b"], exact=True) == "contradicted"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("> 3", "reproduced"),
        ("< 3", "contradicted"),
        (">= 4", "inconclusive"),
        ([3.0, 7.0], "reproduced"),
        ([6.6, 9.0], "contradicted"),
        ("== 5", "inconclusive"),
        ({"one_of": [4, 5, 6]}, "reproduced"),
        ({"one_of": [4, 5]}, "inconclusive"),
        ({"one_of": [1]}, "contradicted"),
    ],
)
def test_is_by_hand(tmp_path: Path, said: Any, expected: str) -> None:
    frame = runs(tmp_path, a=[4.5, 5.0, 5.5]) if not isinstance(said, dict) else runs(tmp_path, a=[4, 5, 6, 4, 5, 6])
    assert verdict(frame, is_=said) == expected  # 5 +- 1.242


def test_unreached_and_absent(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=[*[">9"] * 5, "nan"], b=[3, ">9", 4], c=[1, 2, 3, 1, 2, 3])
    said = {name: verdict(frame, metric="rounds", where={"algorithm": [name]}, is_="unreached") for name in "abc"}
    assert said == {"a": "reproduced", "b": "inconclusive", "c": "contradicted"}
    assert verdict(frame, metric="rounds", where={"algorithm": ["d"]}, is_="absent") == "reproduced"
    assert verdict(frame, metric="rounds", where={"algorithm": ["c"]}, is_="absent") == "contradicted"


def test_trend_with_slack(tmp_path: Path) -> None:
    frame = runs(tmp_path, column="n", v5=10, v10=12, v40=11.5)
    assert verdict(frame, over="n", trend="increasing") == "contradicted"
    assert verdict(frame, over="n", trend="increasing", margin=-0.5) == "reproduced"
    assert verdict(frame, over="n", trend="increasing", values=[5, 40], margin=1.5) == "reproduced"
    assert verdict(frame, over="n", trend="decreasing", values=[40, 5]) == "reproduced"


def test_spread(tmp_path: Path) -> None:
    point = runs(tmp_path, column="n", v5=10, v10=10.2, v40=10.1)
    assert verdict(point, over="n", spread=True, at_most=0.2) == "reproduced"
    assert verdict(point, over="n", spread=True, at_most=0.1) == "contradicted"
    assert verdict(point, over="n", spread=True, at_most={"ratio": 1.03}) == "reproduced"
    frame = runs(tmp_path, column="n", v5=[10, 20, 30], v10=[10.2, 20.11, 30], v40=[10.1, 20.21, 30.2])  # about 0.2
    assert verdict(frame, over="n", spread=True, at_most=0.23) == "reproduced"
    assert verdict(frame, over="n", spread=True, at_most=0.1) == "contradicted"
    assert verdict(frame, over="n", spread=True, at_most=0.15, values=[5, 10]) == "inconclusive"


def test_peak(tmp_path: Path) -> None:
    frame = runs(tmp_path, column="n", v0=[70, 71], v1=[75, 72], v2=[71, 75.9], v10=[60, 60], vmore=[99, 99])
    result = outcome(frame, over="n", peak=True, margin=2.0)  # the best inside are 75, 75.9, the best ends 70 and 71
    assert (result.verdict, result.effect) == ("reproduced", pytest.approx(2.95))
    assert verdict(frame, where={"n": [0, 1, 10]}, over="n", peak=True) == "inconclusive"  # leads 5 and 1
    assert verdict(frame, where={"n": [1, 2, 10]}, over="n", peak=True) == "inconclusive"  # leads -4 and 4


def test_peak_of_lower_is_better(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", column="n", v0=9, v1=5, v2=8)
    result = outcome(frame, metric="rounds", over="n", peak=True, margin=1.0)
    assert (result.verdict, result.effect) == ("reproduced", pytest.approx(2.0))


def test_best_at(tmp_path: Path) -> None:
    frame = runs(tmp_path, column="n", v1=[5, 9] * 3, v2=[7, 8] * 3, v3=[1] * 6)
    assert verdict(frame, over="n", best_at=[1, 2]) == "reproduced"
    assert verdict(frame, over="n", best_at=[2]) == "inconclusive"
    assert verdict(frame, over="n", best_at=[3]) == "contradicted"
    gone = runs(tmp_path, column="n", v1=["nan"] * 6, v2=["nan"] * 6)
    assert verdict(gone, over="n", best_at=[1]) == "contradicted", "where all runs diverged none is the best"


def test_rank_correlation(tmp_path: Path) -> None:
    columns = "grid,side,seed,metric,value"
    up = [f"{g},0,{s},acc,{g}" for g in range(5) for s in range(6)]
    same = [f"{g},1,{s},acc,{g * g}" for g in range(5) for s in range(6)]
    other = [f"{g},1,{s},acc,{-g}" for g in range(5) for s in range(6)]
    check = {"over": "side", "correlation": [0, 1], "at_least": 0.8}
    assert verdict(cells(tmp_path, *up, *same, columns=columns), **check) == "reproduced"
    result = outcome(cells(tmp_path, *up, *other, columns=columns), **check)
    assert (result.verdict, result.effect) == ("contradicted", pytest.approx(-1.8))


def test_gap_to_the_best_and_ratio(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[9, 9], b=[7, 8], c=[8, 5])
    check = {"gap": {"of": "a", "minus": {"best_of": ["b", "c"]}}}
    assert outcome(frame, **check, is_=">= 1").effect == pytest.approx(0.0)  # gaps 1 and 1
    assert verdict(runs(tmp_path, a=9, b=7, c=8), **check, is_=">= 1") == "reproduced"
    assert verdict(frame, gap={"of": "c", "minus": {"best_of": "all"}}, is_="<= -0.5") == "inconclusive"
    assert verdict(frame, gap={"of": "a", "minus": {"mean_of": ["a", "a", "b"]}}, is_="> 5") == "contradicted"
    assert verdict(frame, ratio={"of": "a", "to": "b"}, is_=[1.0, 1.5]) == "inconclusive"  # 9/7 and 9/8, wide
    rounds = runs(tmp_path, "rounds", a=[10, 20], b=[40, 80], c=[30, 60])
    quarter = runs(tmp_path, "rounds", a=10, b=40)
    assert verdict(quarter, metric="rounds", ratio={"of": "a", "to": "b"}, is_="== 0.25") == "reproduced"
    assert verdict(rounds, metric="rounds", gap={"of": "b", "minus": {"best_of": "all"}}, is_="> 29") == "inconclusive"


def test_a_trend_of_ratios(tmp_path: Path) -> None:
    lines = [f"{a},{n},-1,rounds,{v}" for a, n, v in (("a", 1, 2), ("b", 1, 1), ("a", 2, 9), ("b", 2, 3))]
    frame = cells(tmp_path, *lines, columns="algorithm,n,seed,metric,value")
    check = {"metric": "rounds", "ratio": {"of": "a", "to": "b"}, "over": "n"}
    assert verdict(frame, **check, trend="increasing", values=[1, 2]) == "reproduced"
    assert outcome(frame, **check, trend="decreasing", values=[1, 2]).effect == pytest.approx(-np.log(1.5))


def test_sums_means_and_unpaired_columns(tmp_path: Path) -> None:
    lines = ["a,x,none,-1,acc,10", "a,y,none,-1,acc,20", "b,x,fixed,-1,acc,4", "b,y,fixed,-1,acc,5"]
    frame = cells(tmp_path, *lines, columns="algorithm,layer,mode,seed,metric,value")
    assert verdict(frame, where={"algorithm": ["a"]}, sum_over=["layer"], is_="== 30") == "reproduced"
    assert verdict(frame, where={"algorithm": ["a"]}, mean_over=["layer"], is_="== 15") == "reproduced"
    assert verdict(frame, better="a", than=["b"]) == "not run"
    assert verdict(frame, better="a", than=["b"], unpaired=["mode"]) == "reproduced"


def test_several_metrics_each_in_its_direction(tmp_path: Path) -> None:
    lines = [f"{a},-1,{m},{v}" for a, m, v in (("a", "acc", 9), ("b", "acc", 5), ("a", "loss", 1), ("b", "loss", 2))]
    frame = cells(tmp_path, *lines)
    assert verdict(frame, metric=["acc", "loss"], better="a", than=["b"]) == "reproduced"
    assert verdict(frame, metric=["acc", "loss"], better="b", than=["a"], quantifier="any") == "contradicted"
    over = {"metric": ["acc", "loss"], "over": "metric", "direction": "higher", "where": {"algorithm": ["a"]}}
    assert verdict(frame, **over, better="acc", than=["loss"]) == "reproduced"


# --- quantifiers and parts --------------------------------------------------------------------------------------------


def four_settings(path: Path, *leads: float) -> pd.DataFrame:
    """Settings n = 0, 1, ...: a is ahead of b by the given lead, give or take 0.001, in seven seeds."""
    lines = [
        f"{n},{a},{s},acc,{v + 0.001 * (s % 3 - 1) * (a == 'a')}"
        for n, lead in enumerate(leads)
        for a, v in (("a", lead), ("b", 0))
        for s in range(7)
    ]
    return cells(path, *lines, columns="n,algorithm,seed,metric,value")


def test_quantifiers(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3, 1, -2)
    check = {"better": "a", "than": ["b"]}
    assert verdict(frame, **check) == "contradicted"
    assert verdict(frame, **check, quantifier="any") == "reproduced"
    assert verdict(frame, **check, quantifier="any", margin=6) == "contradicted"
    assert verdict(frame, **check, quantifier={"fraction": 0.75}) == "reproduced"
    assert verdict(frame, **check, quantifier={"fraction": 0.8}) == "contradicted"
    assert verdict(frame, **check, quantifier={"count": [3, 3]}) == "reproduced"
    assert verdict(frame, **check, quantifier={"count": [0, 2]}) == "contradicted"
    result = outcome(frame, **check, quantifier="mean", margin=1.0)
    assert (result.verdict, result.effect) == ("reproduced", pytest.approx(0.75, abs=1e-3))


@pytest.mark.parametrize("seed", range(12))
def test_how_many_settings_are_shown_is_a_partial_conjunction(seed: int, tmp_path: Path) -> None:
    """Against p-values: k of n are shown to be on one side where (n - k + 1) p_(k) <= 2.5 %. `all` and `any` are its
    ends."""
    rng, n = np.random.default_rng(seed), 12
    leads = rng.normal(rng.choice([-2.0, 0.0, 0.3, 2.0], n)[:, None], 1.0, (n, 4))
    lines = [f"{k},{a},{s},acc,{float(leads[k, s]) * (a == 'a')!r}" for k in range(n) for a in "ab" for s in range(4)]
    frame = cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value")
    inside, outside = (sorted(ttest_1samp(leads, 0, axis=1, alternative=side).pvalue) for side in ("greater", "less"))

    def shown(p: list[float], k: int) -> bool:
        return (n - k + 1) * p[k - 1] <= 0.025

    check = {"better": "a", "than": ["b"]}
    found = {}
    for k in range(1, n + 1):
        expected = "reproduced" if shown(inside, k) else "contradicted" if shown(outside, n - k + 1) else "inconclusive"
        for quantifier in ({"fraction": k / n}, {"count": [k, n]}):
            found[k] = verdict(frame, **check, quantifier=quantifier)
            assert found[k] == expected
    assert [verdict(frame, **check, quantifier=q) for q in ("all", "any")] == [found[n], found[1]]


@pytest.mark.parametrize(
    ("side", "every", "one"), [(1, "reproduced", "inconclusive"), (-1, "inconclusive", "contradicted")]
)
def test_eight_settings_that_none_is_sure_of(side: int, every: str, one: str, tmp_path: Path) -> None:
    """One-sided p = 0.02 in each: alone enough, among eight not. All of them and one of them are `all` and `any`."""
    seeds = np.array([-1.0, 0.0, 1.0])
    leads = side * (seeds + t.ppf(1 - 0.02, 2) / np.sqrt(3))
    assert ttest_1samp(leads, 0, alternative="greater" if side > 0 else "less").pvalue == pytest.approx(0.02)
    lines = [f"{k},{a},{s},acc,{float(leads[s]) * (a == 'a')!r}" for k in range(8) for a in "ab" for s in range(3)]
    frame = cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value")
    check = {"better": "a", "than": ["b"]}
    for quantifier, expected in (
        ("all", every), ({"fraction": 0.95}, every), ({"count": [8, 8]}, every), ({"count": [4, 8]}, "inconclusive"),
        ("any", one), ({"count": [1, 8]}, one), ({"count": [2, 4]}, "inconclusive"),
    ):  # fmt: skip
        assert verdict(frame, **check, quantifier=quantifier) == expected, quantifier


def test_a_number_of_settings_is_exact_only_without_seeds(tmp_path: Path) -> None:
    check = {"better": "a", "than": ["b"], "quantifier": {"fraction": 0.5}}
    drawn = outcome(four_settings(tmp_path, 5, 3, 1, -2), **check).measured
    lines = [f"{n},{a},-1,acc,{n * (a == 'a')}" for n in (1, 2) for a in "ab"]
    points = outcome(cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value"), **check).measured
    assert drawn
    assert points
    assert (drawn.exact, drawn.n, drawn.low, drawn.high) == (False, 7, 0.75, 0.75)
    assert (points.exact, points.n, points.low, points.high) == (True, 0, 1.0, 1.0)


def test_none_and_all_are_no_bounds_of_a_number_of_settings(tmp_path: Path) -> None:
    """Asked for at most seven of eight, none of them is seven settings away from the bound, not at one."""
    check = {"better": "a", "than": ["b"]}
    frame = four_settings(tmp_path, *[-2.0] * 8)
    found = outcome(frame, **check, quantifier={"count": [0, 7]})
    assert (found.verdict, found.effect, found.interval) == ("reproduced", 7.0, (7.0, 7.0))
    frame = four_settings(tmp_path, *[2.0] * 8)
    for some, effect in (({"count": [1, 8]}, 7.0), ({"fraction": [0.25, 1]}, 0.75), ({"count": [0, 7]}, -1.0)):
        found = outcome(frame, **check, quantifier=some)
        assert (found.verdict, found.effect) == ("reproduced" if effect > 0 else "contradicted", effect)


def test_noise_does_not_contradict_most_settings(tmp_path: Path) -> None:
    """All 40 settings have a small lead that no seed is sure of: a fifth of the seeds' signs are wrong."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1.2, (40, 6))
    noise -= noise.mean(axis=1, keepdims=True)
    lines = [
        f"{k},{a},{s},acc,{(a == 'a') * (1 + float(noise[k, s]))!r}" for k in range(40) for a in "ab" for s in range(6)
    ]
    frame = cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value")
    result = outcome(frame, better="a", than=["b"], quantifier={"fraction": 0.95})
    assert result.verdict != "contradicted"
    assert result.measured is not None
    assert (result.measured.value, result.measured.high, result.n) == (1.0, 1.0, 6)


def test_the_reason_counts_the_settings_and_names_the_deciding_one(tmp_path: Path) -> None:
    result = outcome(four_settings(tmp_path, 5, 3, -1, -2), better="a", than=["b"])
    assert "4 settings: 2 for, 2 against, 0 open" in result.reason
    assert "n 3" in result.reason
    assert result.effect == pytest.approx(-2.0, abs=1e-3)


def test_a_statistic_uses_seeds_that_have_every_setting(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3)
    frame = frame[~((frame["n"] == "1") & (frame["seed"] > 0))]
    result = outcome(frame, better="a", than=["b"], quantifier="mean")
    assert (result.verdict, result.n) == ("inconclusive", 1)


def test_parts_inherit_and_the_worst_one_decides(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=9, b=5, c=[7])
    good, bad = {"where": {"algorithm": ["a"]}}, {"where": {"algorithm": ["b"]}}
    one, two, three, four = ({"for": {"algorithm": [name]}, "is": "> 6"} for name in "abcd")
    assert verdict(frame, all_of=[one]) == "reproduced"
    assert verdict(frame, all_of=[one, two]) == "contradicted"
    assert verdict(frame, all_of=[one, three]) == "inconclusive"
    assert verdict(frame, all_of=[one, four]) == "inconclusive"
    assert verdict(frame, all_of=[four, four]) == "not run"
    assert verdict(frame, is_="> 6", all_of=[{"for": good["where"]}]) == "reproduced"
    assert verdict(frame, is_="> 6", all_of=[{"for": bad["where"]}]) == "contradicted"


# --- censored, diverged, single, missing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([10, 11, 12], [">100", ">100", ">100"], "reproduced"),
        ([10, 11, 12], [">100", 90, 80], "reproduced"),
        ([">100", ">100", ">100"], [10, 11, 12], "contradicted"),
        ([">100", ">100", ">100"], [">100", ">100", ">100"], "inconclusive"),
        ([10, 11, ">100"], [">100", ">100", ">100"], "inconclusive"),
        ([10, 11, 12], ["nan", "nan", "nan"], "inconclusive"),
        ([10, 11, 12] * 2, ["nan"] * 6, "reproduced"),
        (["nan"] * 6, [10, 11, 12] * 2, "contradicted"),
        ([10, 11, 12] * 2, ["nan", 90, 80] * 2, "reproduced"),
        (["nan", 11, 12], [90, 80, 70], "inconclusive"),
        (["nan", "nan", "nan"], ["nan", "nan", "nan"], "inconclusive"),
        (["nan", 11, 12], [90, "nan", 80], "inconclusive"),
        (["nan"], [90], "inconclusive"),
    ],
)
def test_censored_and_diverged_runs(tmp_path: Path, a: list[Any], b: list[Any], expected: str) -> None:
    frame = runs(tmp_path, "rounds", a=a, b=b)
    assert verdict(frame, metric="rounds", better="a", than=["b"]) == expected
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 1.1}) == expected


def test_a_bound_supports_by_its_distance_only(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=[10] * 6, b=[">15"] * 6)
    result = outcome(frame, metric="rounds", better="a", than=["b"], margin=4)
    assert (result.verdict, result.effect, result.interval) == ("reproduced", pytest.approx(1.0), (1.0, INF))
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin=6) == "inconclusive"


def test_divergence_of_higher_is_better_and_in_equalities(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[90, 91, 90] * 2, b=["nan"] * 6)
    assert verdict(frame, better="a", than=["b"]) == "reproduced"
    assert verdict(frame, better="b", than=["a"]) == "contradicted"
    assert verdict(frame, equal=["a", "b"], within=5) == "contradicted"
    assert verdict(frame, where={"algorithm": ["b"]}, is_="> 10") == "contradicted"
    unknown = runs(tmp_path, "skew", a=["nan", -1, -2])
    assert verdict(unknown, metric="skew", is_="< 0") == "inconclusive"


def test_one_seed_decides_nothing_but_a_point_does(tmp_path: Path) -> None:
    result = outcome(runs(tmp_path, a=[90], b=[10]), better="a", than=["b"])
    assert (result.verdict, result.n, result.interval) == ("inconclusive", 1, None)
    assert result.effect == pytest.approx(80.0)
    point = cells(tmp_path, "a,-1,acc,90", "b,-1,acc,10")
    assert outcome(point, better="a", than=["b"]).n == 0
    assert verdict(point, better="a", than=["b"]) == "reproduced"
    seedless = cells(tmp_path, "a,acc,90", "b,acc,95", columns="algorithm,metric,value")
    assert verdict(seedless, better="a", than=["b"]) == "contradicted"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"metric": "loss", "is_": "> 0"}, "metric loss is not in the cells"),
        ({"where": {"n": [1]}, "is_": "> 0"}, "column n is not in the cells"),
        ({"where": {"algorithm": ["c"]}, "is_": "> 0"}, "no rows with algorithm = c; the cells have a or b"),
        ({"better": "c", "than": ["b"]}, "algorithm c"),
        ({"over": "n", "better": "c", "than": ["b"]}, "column n is not in the cells"),
        ({"gap": {"of": "a", "minus": "z"}, "is_": "> 0"}, "no rows with algorithm z"),
        ({"over": "algorithm", "trend": "increasing"}, "needs two values"),
    ],
)
def test_what_is_not_there_is_not_run(tmp_path: Path, check: dict[str, Any], reason: str) -> None:
    result = outcome(runs(tmp_path, a=[1, 2], b=[1, 1]), **check)
    assert result.verdict == "not run"
    assert reason in result.reason


def test_a_ratio_whose_halves_are_of_other_settings_is_not_run(tmp_path: Path) -> None:
    frame = cells(tmp_path, "a,100,0,acc,5", "b,20,0,acc,3", columns="algorithm,n,seed,metric,value")
    result = outcome(frame, ratio={"over": "n", "of": 100, "to": 20}, is_="> 1")
    assert result.verdict == "not run"
    assert "no setting has all the numbers" in result.reason


def test_incomplete_cells_can_contradict_but_not_reproduce(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=9, b=5)
    result = outcome(frame, better="a", than=["b", "c"])
    assert result.verdict == "inconclusive"
    assert "incomplete, lacks algorithm c" in result.reason
    assert verdict(frame, better="b", than=["a", "c"]) == "contradicted"
    assert verdict(frame, where={"algorithm": ["a", "c"]}, is_="> 1") == "inconclusive"
    assert verdict(frame, better="a", than=["b", "c"], quantifier="any") == "reproduced"
    assert verdict(frame, better="a", than=["b", "c"], quantifier="mean") == "inconclusive"


def test_a_setting_without_a_partner_makes_the_cells_incomplete(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3)
    frame = frame[~((frame["n"] == "1") & (frame["algorithm"] == "b"))]
    result = outcome(frame, better="a", than=["b"])
    assert (result.verdict, "partner" in result.reason) == ("inconclusive", True)


def test_missing_combinations_are_named(tmp_path: Path) -> None:
    lines = ["x,1,-1,acc,5", "x,2,-1,acc,5", "y,1,-1,acc,5"]
    frame = cells(tmp_path, *lines, columns="dataset,n,seed,metric,value")
    result = outcome(frame, where={"dataset": ["x", "y"], "n": [1, 2]}, is_="> 1")
    assert (result.verdict, "dataset y, n 2" in result.reason) == ("inconclusive", True)


def test_two_numbers_for_one_seed_are_refused(tmp_path: Path) -> None:
    assert "two numbers" in outcome(cells(tmp_path, "a,0,acc,1", "a,0,acc,2"), is_="> 0").reason
    assert verdict(cells(tmp_path, "a,0,acc,1", "a,0,acc,1", "a,1,acc,1.1"), is_="> 0") == "reproduced"
