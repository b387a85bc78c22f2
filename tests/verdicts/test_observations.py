"""Verdicts on runs that are censored, diverged, alone or missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from verdict_cells import cells, effect, four_settings, interval, outcome, runs, verdict

from reproduce.verdicts.judging import INF, Region, Unit, level_at
from reproduce.verdicts.observations import matches


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([10, 11, 12], [">100", ">100", ">100"], "supported"),
        ([10, 11, 12], [">100", 90, 80], "supported"),
        ([">100", ">100", ">100"], [10, 11, 12], "refuted"),
        ([">100", ">100", ">100"], [">100", ">100", ">100"], "inconclusive"),
        ([10, 11, ">100"], [">100", ">100", ">100"], "inconclusive"),
        ([10, 11, 12], ["nan", "nan", "nan"], "inconclusive"),
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


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([10, 11, 12] * 2, ["nan"] * 6, "supported"),
        (["nan"] * 6, [10, 11, 12] * 2, "refuted"),
        ([10, 11, 12] * 2, ["nan", 90, 80] * 2, "supported"),
        ([10, 11, 12] * 2, ["nan", 90, 9] * 2, "inconclusive"),
        ([10, 11], ["nan"] * 2, "inconclusive"),
    ],
)
def test_of_diverged_runs_there_is_a_median_and_no_mean(
    tmp_path: Path, a: list[Any], b: list[Any], expected: str
) -> None:
    frame = runs(tmp_path, "rounds", a=a, b=b)
    check = {"metric": "rounds", "better": "a", "than": ["b"]}
    assert verdict(frame, **check) == "inconclusive"
    assert outcome(frame, **check, quantity="median").quantity == "median"
    assert verdict(frame, **check, quantity="median") == expected


def test_a_bound_supports_by_its_distance_only(tmp_path: Path) -> None:
    frame = runs(tmp_path, "rounds", a=[10] * 6, b=[">15"] * 6)
    result = outcome(frame, metric="rounds", better="a", than=["b"], margin=4)
    assert (result.verdict, effect(result)) == ("supported", pytest.approx(1.0))
    ends = interval(result)
    assert ends is not None
    low, high = ends  # whole rounds that agree get the spread of one seed one round off
    assert 0 < low < 1
    assert high == INF
    assert verdict(frame, metric="rounds", better="a", than=["b"], margin=6) == "inconclusive"


def test_divergence_of_higher_is_better_and_in_equalities(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=[90, 91, 90] * 2, b=["nan"] * 6)
    median = {"quantity": "median"}
    assert verdict(frame, better="a", than=["b"], **median) == "supported"
    assert verdict(frame, better="b", than=["a"], **median) == "refuted"
    assert verdict(frame, equal=["a", "b"], within=5, **median) == "refuted"
    assert verdict(frame, where={"algorithm": ["b"]}, is_="> 10", **median) == "refuted"
    unknown = runs(tmp_path, "skew", a=["nan", -1, -2])
    assert verdict(unknown, metric="skew", is_="< 0") == "inconclusive"


@pytest.mark.parametrize(("look", "needed"), [(1, 6), (2, 7), (5, 10)])
@pytest.mark.parametrize("quantity", ["share", "median"])
def test_fewer_seeds_than_a_sign_test_needs_never_decide(look: int, needed: int, quantity: str) -> None:
    """However clear they are: 2 / 2^n is to be at most the error of the look."""
    assert 2 / 2**needed <= 1 - level_at(look) + 1e-12 < 2 / 2 ** (needed - 1)
    for n, says in ((needed, "for"), (needed - 1, "inconclusive")):
        seeds = [(1.0, 1.0)] * n
        assert Unit(seeds, Region(0.5, strict=True), quantity=quantity, level=level_at(look)).judged.says == says


def test_one_seed_decides_nothing_but_a_point_does(tmp_path: Path) -> None:
    result = outcome(runs(tmp_path, a=[90], b=[10]), better="a", than=["b"])
    assert (result.verdict, result.seeds[1], interval(result)) == ("inconclusive", 1, None)
    assert effect(result) == pytest.approx(80.0)
    point = cells(tmp_path, "a,-1,acc,90", "b,-1,acc,10")
    assert outcome(point, better="a", than=["b"]).seeds == (0, 0)
    assert verdict(point, better="a", than=["b"]) == "supported"
    seedless = cells(tmp_path, "a,acc,90", "b,acc,95", columns="algorithm,metric,value")
    assert verdict(seedless, better="a", than=["b"]) == "refuted"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"metric": "loss", "is_": "> 0"}, "metric loss is not in the cells"),
        ({"where": {"n": [1]}, "is_": "> 0"}, "column n is not in the cells"),
        ({"where": {"algorithm": ["c"]}, "is_": "> 0"}, "no rows with algorithm = c; the values have a or b"),
        ({"where": {"algorithm": {"min": 2}}, "is_": "> 0"}, "no rows with algorithm = min 2"),
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


def test_two_sides_without_a_seed_in_common_are_not_compared(tmp_path: Path) -> None:
    result = outcome(cells(tmp_path, "a,0,acc,9", "a,1,acc,8", "b,2,acc,1"), better="a", than=["b"])
    assert (result.verdict, "no seed in common" in result.reason) == ("not run", True)


def test_incomplete_cells_support_or_contradict_but_do_not_reproduce(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=9, b=5)
    result = outcome(frame, better="a", than=["b", "c"])
    assert (result.verdict, result.settings, result.seeds) == ("supported where run", 1, (0, 0))
    assert "incomplete, lacks algorithm c" in result.reason
    assert verdict(frame, better="b", than=["a", "c"]) == "refuted"
    assert verdict(frame, where={"algorithm": ["a", "c"]}, is_="> 1") == "supported where run"
    assert verdict(frame, better="b", than=["a", "c"], quantifier="any") == "inconclusive"
    assert verdict(frame, better="a", than=["b", "c"], quantifier="any") == "supported"
    assert verdict(frame, better="a", than=["b", "c"], quantifier="mean") == "supported where run"
    assert verdict(frame, better="b", than=["a", "c"], quantifier="mean") == "inconclusive"


def test_a_setting_without_a_partner_makes_the_cells_incomplete(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3)
    frame = frame[~((frame["n"] == "1") & (frame["algorithm"] == "b"))]
    result = outcome(frame, better="a", than=["b"])
    assert (result.verdict, "partner" in result.reason) == ("supported where run", True)
    assert (result.settings, result.seeds) == (1, (7, 7))


def test_missing_combinations_are_named(tmp_path: Path) -> None:
    lines = ["x,1,-1,acc,5", "x,2,-1,acc,5", "y,1,-1,acc,5"]
    frame = cells(tmp_path, *lines, columns="dataset,n,seed,metric,value")
    result = outcome(frame, where={"dataset": ["x", "y"], "n": [1, 2]}, is_="> 1")
    assert (result.verdict, "dataset y, n 2" in result.reason) == ("supported where run", True)


def test_two_numbers_for_one_seed_are_refused(tmp_path: Path) -> None:
    assert "two numbers" in outcome(cells(tmp_path, "a,0,acc,1", "a,0,acc,2"), is_="> 0").reason
    assert verdict(cells(tmp_path, "a,0,acc,1", "a,0,acc,1", "a,1,acc,1.1"), is_="> 0") == "supported"


@pytest.mark.parametrize(("condition", "kept"), [
    (2, [1]), ([1, "none"], [0, 3]), ({"min": 2}, [1, 2]), ({"max": 2}, [0, 1]), ({"min": 2, "max": 2}, [1]),
    ({"not": [2, 3]}, [0, 3]), ({"min": 1, "not": 2}, [0, 2]),
])  # fmt: skip
def test_which_rows_a_condition_keeps(condition: Any, kept: list[int]) -> None:
    column = pd.Series(["1", "2", "3", "none"])
    assert np.flatnonzero(matches(column, condition)).tolist() == kept
