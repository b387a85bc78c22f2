"""Verdicts over several settings: quantifiers, and claims of several parts."""

from pathlib import Path

import numpy as np
import pytest
from verdict_cells import cells, effect, four_settings, interval, one_sided, outcome, runs, verdict


def test_quantifiers(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3, 1, -2)
    check = {"better": "a", "than": ["b"]}
    assert verdict(frame, **check) == "refuted"
    assert verdict(frame, **check, quantifier="any") == "supported"
    assert verdict(frame, **check, quantifier="any", margin=6) == "refuted"
    assert verdict(frame, **check, quantifier={"fraction": 0.75}) == "supported"
    assert verdict(frame, **check, quantifier={"fraction": 0.8}) == "refuted"
    assert verdict(frame, **check, quantifier={"fraction": [0.75, 0.75]}) == "supported"
    assert verdict(frame, **check, quantifier={"fraction": [0, 0.5]}) == "refuted"
    result = outcome(frame, **check, quantifier="mean", margin=1.0)
    assert (result.verdict, effect(result)) == ("supported", pytest.approx(0.75, abs=1e-3))


@pytest.mark.parametrize("seed", range(12))
def test_how_many_settings_are_shown_is_a_partial_conjunction(seed: int, tmp_path: Path) -> None:
    """Against p-values: k of n are shown to be on one side where (n - k + 1) p_(k) <= 2.5 %. `all` and `any` are its
    ends."""
    rng, n = np.random.default_rng(seed), 12
    leads = rng.normal(rng.choice([-2.0, 0.0, 0.3, 2.0], n)[:, None], 1.0, (n, 4))
    lines = [f"{k},{a},{s},acc,{float(leads[k, s]) * (a == 'a')!r}" for k in range(n) for a in "ab" for s in range(4)]
    frame = cells(tmp_path, *lines, columns="n,algorithm,seed,metric,value")
    inside, outside = map(sorted, one_sided(leads))

    def shown(p: list[float], k: int) -> bool:
        return (n - k + 1) * p[k - 1] <= 0.025

    check = {"better": "a", "than": ["b"]}
    found = {}
    for k in range(1, n + 1):
        expected = "supported" if shown(inside, k) else "refuted" if shown(outside, n - k + 1) else "inconclusive"
        found[k] = verdict(frame, **check, quantifier={"fraction": k / n})
        assert found[k] == expected
    assert [verdict(frame, **check, quantifier=q) for q in ("all", "any")] == [found[n], found[1]]


def test_as_many_settings_as_are_allowed_are_not_too_many(tmp_path: Path) -> None:
    """One of four is shown, and nothing of the others."""
    check = {"better": "a", "than": ["b"]}
    frame = four_settings(tmp_path, 5, 0, 0, 0)
    for some, expected in (
        ([0.25, 0.25], "inconclusive"),
        ([0, 0.25], "inconclusive"),
        ([0, 0.2], "refuted"),
        ([0.25, 1], "supported"),
    ):
        assert verdict(frame, **check, quantifier={"fraction": some}) == expected, some


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
    """Asked for at most three quarters, none of them is three quarters away from the bound, not at one."""
    check = {"better": "a", "than": ["b"]}
    frame = four_settings(tmp_path, *[-2.0] * 8)
    found = outcome(frame, **check, quantifier={"fraction": [0, 0.75]})
    assert (found.verdict, effect(found), interval(found)) == ("supported", 0.75, (0.75, 0.75))
    frame = four_settings(tmp_path, *[2.0] * 8)
    for some, slack in (([0.25, 1], 0.75), ([0, 0.75], -0.25)):
        found = outcome(frame, **check, quantifier={"fraction": some})
        assert (found.verdict, effect(found)) == ("supported" if slack > 0 else "refuted", slack)


def test_a_statistic_uses_seeds_that_have_every_setting(tmp_path: Path) -> None:
    frame = four_settings(tmp_path, 5, 3)
    frame = frame[~((frame["n"] == "1") & (frame["seed"] > 0))]
    result = outcome(frame, better="a", than=["b"], quantifier="mean")
    assert (result.verdict, result.seeds[1]) == ("inconclusive", 1)


def test_parts_inherit_and_the_worst_one_decides(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=9, b=5, c=[7])
    good, bad = {"where": {"algorithm": ["a"]}}, {"where": {"algorithm": ["b"]}}
    one, two, three, four = ({"for": {"algorithm": [name]}, "is": "> 6"} for name in "abcd")
    assert verdict(frame, all_of=[one]) == "supported"
    assert verdict(frame, all_of=[one, two]) == "refuted"
    assert verdict(frame, all_of=[one, three]) == "inconclusive"
    assert verdict(frame, all_of=[one, four]) == "supported where run"
    assert verdict(frame, all_of=[two, four]) == "refuted"
    assert verdict(frame, all_of=[three, four]) == "inconclusive"
    assert verdict(frame, all_of=[four, four]) == "not run"
    assert verdict(frame, is_="> 6", all_of=[{"for": good["where"]}]) == "supported"
    assert verdict(frame, is_="> 6", all_of=[{"for": bad["where"]}]) == "refuted"


def test_a_setting_of_which_nothing_is_known_is_not_the_one_that_is_shown(tmp_path: Path) -> None:
    frame = cells(tmp_path, "1,0,skew,1", "1,1,skew,5", "2,0,skew,", "2,1,skew,", columns="n,seed,metric,value")
    result = outcome(frame, metric="skew", is_="> 2")
    assert (result.verdict, effect(result)) == ("inconclusive", pytest.approx(1))


def test_settings_without_a_value_or_with_the_word_none_are_not_numbers_that_lack(tmp_path: Path) -> None:
    assert cells(tmp_path, ",0,acc,1", "None,0,acc,2", columns="n,seed,metric,value")["n"].tolist() == ["", "None"]
