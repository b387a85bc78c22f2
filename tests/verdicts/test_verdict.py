"""Verdicts: each form of a check on hand-made cells, with intervals computed by hand; and in words: what people read of
an effect, and what they never read: identifiers and logarithms."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from verdict_cells import cells, effect, interval, outcome, runs, verdict

from reproduce.verdicts import wording
from reproduce.verdicts.judging import INF, Region, Unit, t_interval
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured, Outcome


def number(found: Outcome) -> float:
    """The deciding number."""
    assert found.measured
    return found.measured.value


HALF = 2.484138  # half a t-interval of three values with standard deviation 1: 4.302653 / sqrt(3)


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
    assert Unit([(1.0, 1.0)], Region(low=1.0, strict=True), quantity="point").judged.says == "against"


def test_better_by_hand(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[63, 74, 85], b=[60, 70, 80])  # leads 3, 4, 5
    result = outcome(frame, better="a", than=["b"])
    assert result.measured is not None
    assert (result.verdict, result.seeds[1], result.measured.unit) == ("supported", 3, "points")
    assert effect(result) == pytest.approx(4.0)
    assert interval(result) == pytest.approx((4 - HALF, 4 + HALF), abs=1e-5)
    assert verdict(frame, better="a", than=["b"], margin=3.0) == "inconclusive"
    result = outcome(frame, better="a", than=["b"], margin=7.0)
    assert result.verdict == "refuted"
    assert effect(result) == pytest.approx(-3.0)
    assert verdict(frame, better="b", than=["a"]) == "refuted"
    assert verdict(frame, better="b", than=["a"], direction="lower") == "supported"


def test_runs_pair_on_the_seed_not_on_the_line(tmp_path: Path) -> None:
    lines = ["a,0,acc,63", "a,1,acc,74", "a,2,acc,85", "b,2,acc,80", "b,0,acc,60", "b,1,acc,70", "a,3,acc,0"]
    result = outcome(cells(tmp_path, *lines), better="a", than=["b"])
    assert (result.verdict, result.seeds[1]) == ("supported", 3)


def test_a_ratio_margin_is_judged_on_logarithms(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=10, b=20)
    result = outcome(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 1.5})
    assert result.verdict == "supported"
    assert effect(result) == pytest.approx(np.log(2 / 1.5))
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 2.0}) == "supported"
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin={"ratio": 2.1}) == "refuted"


def test_order_compares_neighbours(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=1, b=2, c=3)
    assert verdict(frame, metric="rounds", order=["a", "b", "c"]) == "supported"
    assert verdict(frame, metric="rounds", order=["a", "c", "b"]) == "refuted"


def test_equal_wants_the_whole_interval_inside(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[10, 20, 30], b=[9.9, 20.1, 30.0])  # differences 0.1, -0.1, 0: mean 0, half 0.248
    assert verdict(frame, equal=["a", "b"], within=0.25) == "supported"
    assert verdict(frame, equal=["a", "b"], within=0.24) == "inconclusive"
    apart = runs(tmp_path, a=12, b=10)
    assert verdict(apart, equal=["a", "b"], within=1.0) == "refuted"
    assert verdict(apart, equal=["b", "a"], within=1.0) == "refuted"


def test_an_exact_identity_is_judged_seed_by_seed(tmp_path: Path) -> None:
    assert verdict(runs(tmp_path, a=[0.1], b=[0.1]), equal=["a", "b"], exact=True) == "supported"
    assert verdict(runs(tmp_path, a=[1, 2, 3], b=[1, 2, 3.01]), equal=["a", "b"], exact=True) == "refuted"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("> 3", "supported"),
        ("< 3", "refuted"),
        (">= 4", "inconclusive"),
        ([3.0, 7.0], "supported"),
        ([6.6, 9.0], "refuted"),
        ("== 5", "inconclusive"),
        ({"one_of": [4, 5, 6]}, "supported"),
        ({"one_of": [4, 5]}, "inconclusive"),
        ({"one_of": [1]}, "refuted"),
    ],
)
def test_is_by_hand(tmp_path: Path, said: Any, expected: str) -> None:
    frame = runs(tmp_path, a=[4.5, 5.0, 5.5]) if not isinstance(said, dict) else runs(tmp_path, a=[4, 5, 6, 4, 5, 6])
    assert verdict(frame, is_=said) == expected  # 5 +- 1.242


def test_unreached(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=[*[">9"] * 5, "nan"], b=[3, ">9", 4], c=[1, 2, 3, 1, 2, 3])
    said = {name: verdict(frame, metric="rounds", where={"algorithm": [name]}, is_="unreached") for name in "abc"}
    assert said == {"a": "supported", "b": "inconclusive", "c": "refuted"}


def test_trend_with_slack(tmp_path: Path) -> None:
    frame = runs(tmp_path, column="n", v5=10, v10=12, v40=11.5)
    assert verdict(frame, over="n", trend="increasing") == "refuted"
    assert verdict(frame, over="n", trend="increasing", margin=-0.5) == "supported"
    assert verdict(frame, over="n", trend="increasing", values=[5, 40], margin=1.5) == "supported"
    assert verdict(frame, over="n", trend="decreasing", values=[40, 5]) == "supported"


def test_spread(tmp_path: Path) -> None:
    point = runs(tmp_path, column="n", v5=10, v10=10.2, v40=10.1)
    assert verdict(point, over="n", spread=True, at_most=0.2) == "supported"
    assert verdict(point, over="n", spread=True, at_most=0.1) == "refuted"
    assert verdict(point, over="n", spread=True, at_most={"ratio": 1.03}) == "supported"
    frame = runs(tmp_path, column="n", v5=[10, 20, 30], v10=[10.2, 20.11, 30], v40=[10.1, 20.21, 30.2])  # about 0.2
    assert verdict(frame, over="n", spread=True, at_most=0.23) == "supported"
    assert verdict(frame, over="n", spread=True, at_most=0.1) == "refuted"
    assert verdict(frame, over="n", spread=True, at_most=0.15, values=[5, 10]) == "inconclusive"


def test_one_of_several_beats_the_best_of_both_ends(tmp_path: Path) -> None:
    """An inner value of a column ahead of both its ends, each inner value judged by itself."""
    check = {"over": "n", "better": [1, 2], "than": [{"best_of": [0, 10]}], "quantifier": "any"}
    ahead = runs(tmp_path, column="n", v0=[70, 71, 70], v1=[75, 76, 75.5], v2=[60, 61, 62], v10=[50, 72, 50])
    assert verdict(ahead, **check) == "supported"  # n = 1 alone
    taken_in_turns = runs(tmp_path, column="n", v0=[70] * 6, v1=[74, 60] * 3, v2=[60, 74] * 3, v10=[50] * 6)
    assert verdict(taken_in_turns, **check) == "inconclusive", "the best of both in each seed would be ahead"


def test_the_best_of_fewer_is_not_the_best_and_a_spread_needs_two(tmp_path: Path) -> None:
    """Seeds that lack one of the values say nothing of the best, the mean or the spread of all."""
    frame = runs(tmp_path, column="n", v1=[5, 5.2, 4.9, 9, 9, 9], v2=[7, 7.1, 7.2])
    spread = {"over": "n", "spread": True, "at_most": 3}
    assert outcome(frame, **spread).seeds == (3, 3)
    assert number(outcome(frame, **spread)) == pytest.approx(2.0667, abs=1e-3)
    assert outcome(frame, gap={"over": "n", "of": {"mean_of": [1, 2]}, "minus": 1}, is_="> 0").seeds == (3, 3)
    assert outcome(frame, sum_over=["n"], is_="< 14").seeds == (3, 3)
    alone = outcome(runs(tmp_path, column="n", v1=[5, 5.2, 4.9]), **spread, values=[1, 2])
    assert (alone.verdict, alone.reason) == ("not run", "a spread needs two values of n")


def test_transfer_of_the_best_setting(tmp_path: Path) -> None:
    """The price of choosing on one side and using on the other, by hand: the dearer of both directions."""
    columns = "grid,side,seed,metric,value"

    def sides(one: list[float], two: list[float]) -> pd.DataFrame:
        lines = [
            f"{g},{side},{s},acc,{v + g * s / 100}"
            for side, vs in enumerate((one, two))
            for g, v in enumerate(vs)
            for s in range(3)
        ]
        return cells(tmp_path, *lines, columns=columns)

    check = {"over": "side", "transfer": [0, 1], "at_most": 1.0}
    near = outcome(sides([3, 9, 8.5], [1, 6, 6.5]), **check)  # 9 is best: 6 against 6.5; 6.5 is best: 8.5 against 9
    assert (near.verdict, number(near)) == ("supported", pytest.approx(0.51))
    far = outcome(sides([9, 8.9], [1, 4]), **check)  # one way 3, the other 0.1
    assert (far.verdict, number(far)) == ("refuted", pytest.approx(3.01))
    lower = cells(
        tmp_path,
        *(f"{g},{side},0,rounds,{v}" for g, side, v in ((0, 0, 5), (1, 0, 9), (0, 1, 7), (1, 1, 4))),
        columns=columns,
    )
    assert number(outcome(lower, metric="rounds", **check)) == pytest.approx(4.0)
    assert verdict(sides([3, 9], [1, 6])[lambda f: f["side"] == "0"], **check) == "not run"


def test_gap_to_the_best_and_ratio(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[9, 9], b=[7, 8], c=[8, 5])
    check = {"gap": {"of": "a", "minus": {"best_of": ["b", "c"]}}}
    assert effect(outcome(frame, **check, is_=">= 1")) == pytest.approx(0.0)  # gaps 1 and 1
    assert outcome(frame, **check, is_=">= 1").measured.what == "difference"
    assert outcome(frame, ratio={"of": "a", "to": "b"}, is_="> 1").measured.what == "ratio"
    assert outcome(frame, where={"algorithm": ["a"]}, is_="> 1").measured.what == "value"
    assert verdict(runs(tmp_path, a=9, b=7, c=8), **check, is_=">= 1") == "supported"
    assert verdict(frame, gap={"of": "c", "minus": {"best_of": "all"}}, is_="<= -0.5") == "inconclusive"
    assert verdict(frame, gap={"of": "a", "minus": {"mean_of": ["a", "a", "b"]}}, is_="> 5") == "refuted"
    assert verdict(frame, ratio={"of": "a", "to": "b"}, is_=[1.0, 1.5]) == "inconclusive"  # 9/7 and 9/8, wide
    rounds = runs(tmp_path, "rounds", a=[10, 20], b=[40, 80], c=[30, 60])
    quarter = runs(tmp_path, "rounds", a=10, b=40)
    assert verdict(quarter, metric="rounds", ratio={"of": "a", "to": "b"}, is_="== 0.25") == "supported"
    assert verdict(rounds, metric="rounds", gap={"of": "b", "minus": {"best_of": "all"}}, is_="> 29") == "inconclusive"


def test_a_trend_of_ratios(tmp_path: Path) -> None:
    lines = [f"{a},{n},-1,rounds,{v}" for a, n, v in (("a", 1, 2), ("b", 1, 1), ("a", 2, 9), ("b", 2, 3))]
    frame = cells(tmp_path, *lines, columns="algorithm,n,seed,metric,value")
    check = {"metric": "rounds", "ratio": {"of": "a", "to": "b"}, "over": "n"}
    assert verdict(frame, **check, trend="increasing", values=[1, 2]) == "supported"
    assert effect(outcome(frame, **check, trend="decreasing", values=[1, 2])) == pytest.approx(-np.log(1.5))


def test_sums_and_unpaired_columns(tmp_path: Path) -> None:
    lines = ["a,x,none,-1,acc,10", "a,y,none,-1,acc,20", "b,x,fixed,-1,acc,4", "b,y,fixed,-1,acc,5"]
    frame = cells(tmp_path, *lines, columns="algorithm,layer,mode,seed,metric,value")
    assert verdict(frame, where={"algorithm": ["a"]}, sum_over=["layer"], is_="== 30") == "supported"
    assert verdict(frame, better="a", than=["b"]) == "not run"
    assert verdict(frame, better="a", than=["b"], unpaired=["mode"]) == "supported"


def test_several_metrics_each_in_its_direction(tmp_path: Path) -> None:
    lines = [f"{a},-1,{m},{v}" for a, m, v in (("a", "acc", 9), ("b", "acc", 5), ("a", "loss", 1), ("b", "loss", 2))]
    frame = cells(tmp_path, *lines)
    assert verdict(frame, metric=["acc", "loss"], better="a", than=["b"]) == "supported"
    assert verdict(frame, metric=["acc", "loss"], better="b", than=["a"], quantifier="any") == "refuted"
    over = {"metric": ["acc", "loss"], "over": "metric", "direction": "higher", "where": {"algorithm": ["a"]}}
    assert verdict(frame, **over, better="acc", than=["loss"]) == "supported"


def lead(value: float, region: tuple[float, float], **change: object) -> Measured:
    given = {"what": "lead", "unit": "percent", "setting": "", "value": value, "low": 1.0, "high": 3.0}
    return Measured(**(given | {"region": region, "strict": False, "exact": False, "n": 3} | change))  # type: ignore


def test_what_a_verdict_is_beside_the_print() -> None:
    found = Verdict("supported", id="p/c", artifact="p/fig1", source="table", paper_numbers="refuted")
    assert wording.beside_print(found) == ["read off a table", "refuted by the paper's own numbers"]
    assert wording.beside_print(replace(found, source="sentence", paper_numbers="supported")) == []


def test_a_measured_number_and_what_is_demanded_of_it() -> None:
    assert wording.measured(lead(2.0, (1.5, math.inf))) == "lead 2 points (1 to 3), 3 seeds"
    assert wording.measured(lead(2.0, (0, 1), low=None, high=None, n=1)) == "lead 2 points, no interval, 1 seed"
    assert wording.measured(lead(2.0, (0, 1), low=2.0, high=2.0, n=0, exact=True)) == "lead 2 points"
    assert wording.measured(lead(2.0, (0, 1), low=2.0, high=2.0)) == "lead 2 points (2 to 2), 3 seeds"
    assert wording.measured(lead(80.0, (0, 1), what="value")).startswith("value 80 %")
    assert wording.required(lead(2.0, (1.5, math.inf))) == "at least 1.5 points"
    assert wording.required(lead(2.0, (0.0, math.inf), strict=True)) == "more than 0 points"
    assert wording.required(lead(2.0, (-math.inf, 3.0))) == "at most 3 points"
    assert wording.required(lead(2.0, (-math.inf, math.inf))) == "no bound"
    assert wording.demanded(lead(2.0, (-1.0, 1.0)), ours=True) == "−1 to 1 points (a number of ours)"
    assert wording.required(lead(2.0, (0.0, 0.5), what="ratio", unit="")) == "at most 0.5"


def test_names_are_those_of_print_and_paths_stay() -> None:
    said = wording.named("no rows with dataset = fashion_mnist; fedacs - fednova: -0.3, n 10", {"fedacs": "FedACS*"})
    assert said == "no rows with dataset = Fashion-MNIST; FedACS* − FedNova: −0.3, n 10"
    path = "dynamic_init/table1 (render it first)"
    assert wording.named(f"no values of {path}") == f"no values of {path}"
