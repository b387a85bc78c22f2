"""What counts as evidence: diverged, agreeing and censored seeds, ties, ratios, many settings at once."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from verdict_cells import cells, one_sided, outcome, runs, verdict

from reproduce.verdicts.judging import INF, NO_INFORMATION, Region, Unit, median_interval, t_interval

AHEAD = Region(0.0, INF, strict=True)


def test_one_diverged_winner_of_twenty_does_not_undo_a_lead_and_is_named(tmp_path: Path) -> None:
    frame = runs(tmp_path, a=["nan"] + [90 + 0.1 * s for s in range(19)], b=[40] * 20)
    result = outcome(frame, better="a", than=["b"], quantity="median")
    assert result.verdict == "supported"
    assert "1 of 20 with a diverged run" in outcome(frame, better="a", than=["b"]).reason
    half = runs(tmp_path, a=["nan"] * 10 + [90] * 10, b=[40] * 20)
    assert verdict(half, better="a", than=["b"], quantity="median") == "inconclusive"


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_interval_of_the_median_is_the_inverted_sign_test(level: float) -> None:
    """0 lies outside exactly if the sign test rejects, whatever the sizes of the values."""
    for n, positive in ((total, part) for total in range(1, 26) for part in range(total + 1)):
        values = [INF] * positive + [-float(i + 1) for i in range(n - positive)]
        p = stats.binomtest(positive, n).pvalue
        low, high = median_interval(values, level)
        assert (low > 0 or high < 0) == (p <= 1 - level), (n, positive)


def test_two_seeds_that_agree_by_chance_decide_nothing() -> None:
    assert Unit([(3.0, 3.0)] * 2, AHEAD).judged.says == "inconclusive"
    assert Unit([(3.0, 3.0)] * 5, AHEAD).judged.says == "inconclusive"
    assert Unit([(3.0, 3.0)] * 6, AHEAD).judged.says == "inconclusive"
    assert Unit([(3.0, 3.0)] * 6, AHEAD, quantity="median").judged.says == "for"
    assert Unit([(-3.0, -3.0)] * 3, AHEAD).judged.says == "inconclusive"


def test_agreement_on_a_grid_gives_the_smallest_spread_of_the_grid() -> None:
    off = t_interval([10.0, 10.0, 11.0])
    same = t_interval([10.0, 10.0, 10.0], step=1.0)
    assert same[1] - same[0] == pytest.approx(off[1] - off[0])
    assert t_interval([10.0, 10.0, 11.0], step=1.0) == off
    assert Unit([(1.0, 1.0)] * 3, AHEAD, step=1.0).judged.says == "inconclusive"
    assert Unit([(2.0, 2.0)] * 3, AHEAD, step=1.0).judged.says == "for"


def test_the_grid_is_read_off_the_other_settings(tmp_path: Path) -> None:
    lines = [f"{n},{s},rounds,{v}" for n, values in ((1, (7, 7, 7)), (2, (9, 8, 9))) for s, v in enumerate(values)]
    frame = cells(tmp_path, *lines, columns="n,seed,metric,value")
    assert verdict(frame, metric="rounds", where={"n": [1, 2]}, is_="> 3") == "supported"
    assert verdict(frame, metric="rounds", where={"n": [1, 2]}, is_="> 6") == "inconclusive"


def test_a_tie_is_no_lead(tmp_path: Path) -> None:
    tie = runs(tmp_path, a=5, b=5)
    assert verdict(tie, better="a", than=["b"]) == "refuted"
    assert verdict(tie, order=["a", "b"]) == "refuted"
    assert verdict(tie, better="a", than=["b"], margin=0) == "supported"
    assert verdict(runs(tmp_path, column="n", v1=5, v2=5), over="n", trend="increasing") == "refuted"


def test_an_identity_leaves_out_runs_that_both_missed_the_target(tmp_path: Path) -> None:
    def same(a: list[object], b: list[object]) -> str:
        return verdict(runs(tmp_path, "rounds", a=a, b=b), metric="rounds", equal=["a", "b"], exact=True)

    assert same([10, ">100"], [10, ">100"]) == "supported"
    assert same([10, 100], [10, ">101"]) == "refuted"
    assert same([10, "nan"], [10, "nan"]) == "supported"
    assert same([">100", ">100"], [">100", ">100"]) == "inconclusive", "nothing was seen of the identity"


@pytest.mark.parametrize(("a", "b"), [(5, -1), (-1, 5), (5, 0), (0, 5), (-2, -1), (0, 0)])
def test_a_ratio_needs_numbers_above_zero(tmp_path: Path, a: float, b: float) -> None:
    frame = runs(tmp_path, a=a, b=b)
    checks: list[dict[str, Any]] = [
        {"ratio": {"of": "a", "to": "b"}, "is_": "> 1"},
        {"ratio": {"of": "a", "to": "b"}, "is_": "< 1"},
        {"better": "a", "than": ["b"], "margin": {"ratio": 2}},
    ]
    for check in checks:
        result = outcome(frame, **check)
        assert result.verdict == "inconclusive"
        assert "lacks numbers above zero" in result.reason
        assert "e+" not in result.reason


def test_a_mean_of_ratios_is_the_mean_of_the_ratios(tmp_path: Path) -> None:
    """Ratios 1 and 9 have the mean 5 (and the geometric mean 3)."""
    lines = ["a,1,-1,acc,1", "b,1,-1,acc,1", "a,2,-1,acc,9", "b,2,-1,acc,1", "a,3,-1,acc,4", "b,3,-1,acc,1"]
    frame = cells(tmp_path, *lines, columns="algorithm,n,seed,metric,value")
    ratio = {"ratio": {"of": "a", "to": "b"}}
    assert verdict(frame, **ratio, over="n", better={"mean_of": [1, 2]}, than=[3]) == "supported"
    assert verdict(frame, **ratio, where={"n": [1, 2]}, quantifier="mean", is_=[4.9, 5.1]) == "supported"


def settings(path: Path, leads: np.ndarray) -> object:
    """Leads [settings, seeds] of a over b."""
    n, seeds = leads.shape
    lines = [f"{i},{a},{s},acc,{leads[i, s] if a == 'a' else 0}" for i, s, a in product(range(n), range(seeds), "ab")]
    return cells(path, *lines, columns="n,algorithm,seed,metric,value")


def holm(p: np.ndarray, level: float) -> int:
    """How many hypotheses Holm's procedure rejects: the p-values in order, each against level over those left."""
    within = np.sort(p) <= level / np.arange(len(p), 0, -1)
    return len(p) if within.all() else int(np.argmin(within))


@pytest.mark.parametrize("shift", [0.0, -1.2, -4.0])
def test_one_of_many_contradicts_where_holm_says_so(tmp_path: Path, shift: float) -> None:
    """Two-sided p-values of the settings that lie below zero."""
    generator = np.random.default_rng(int(10 - 10 * shift))
    leads = generator.standard_normal((30, 5)) + np.where(np.arange(30) < 10, shift, 1.0)[:, None]
    p = np.minimum(2 * one_sided(leads)[1], 1.0)
    rejected = holm(p, 0.05)
    result = outcome(settings(tmp_path, leads), better="a", than=["b"])
    alone = int((p < 0.05).sum())
    assert (result.verdict == "refuted") == (rejected > 0)
    assert f"{alone} against" in result.reason
    assert "0.75 expected by chance" in result.reason
    if alone:
        assert f"{rejected} against by Holm" in result.reason


def test_nothing_is_said_by_bounds_on_both_sides() -> None:
    assert Unit([NO_INFORMATION] * 30, AHEAD).judged.says == "inconclusive"
    assert Unit([(1.0, INF), (-INF, 2.0), (1.0, 1.0)], AHEAD).judged.says == "inconclusive"
    assert math.isnan(Unit([NO_INFORMATION] * 3, AHEAD).judged.value)
