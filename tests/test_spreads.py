"""Settings tell of each other's spread: against an independent computation, and by how often the rules err."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from verdict_cells import moderated_t

from benchmarks.rules import KINDS, noise, residuals, wrong
from reproduce.verdicts.judging import Region, Unit, collapses
from reproduce.verdicts.spreads import LEAST, of_settings

ABOVE = Region(0.0)


@pytest.mark.parametrize(("settings", "seeds", "unequal", "alike"), [
    (4, 3, 0.0, 0.0), (12, 3, 1.5, 0.0), (30, 5, 0.5, 0.3), (8, 4, 3.0, 0.9),
])  # fmt: skip
def test_intervals_are_those_of_an_independent_computation(
    settings: int, seeds: int, unequal: float, alike: float
) -> None:
    draw = np.random.default_rng(settings)
    noise = (1 - alike) * draw.standard_normal((settings, seeds)) + alike * draw.standard_normal(seeds)
    leads = 1 + noise * np.exp(unequal * draw.standard_normal((settings, 1)))
    prior = of_settings(leads)
    expected, freedom = moderated_t(leads)
    for row, t in zip(leads, expected, strict=True):
        found = Unit([(v, v) for v in row.tolist()], ABOVE, prior=prior).judged
        assert found.low is not None
        assert found.low == pytest.approx(row.mean() * (1 - stats.t.ppf(0.975, freedom) / t), rel=1e-6)


def test_three_seeds_that_vary_alike_have_the_freedom_of_all_and_none_is_steadier_than_it_has_shown() -> None:
    draw = np.random.default_rng(1)
    prior = of_settings(draw.standard_normal((64, 3)))
    assert prior
    variance, freedom = prior.moderated(np.array([0.01, 1.0, 9.0]), 2)
    assert freedom > 60
    assert variance == pytest.approx([1, 1, 9], rel=0.3)
    assert variance[2] == 9
    assert of_settings(draw.standard_normal((LEAST - 1, 9))) is None, "too few settings"
    assert of_settings(np.where(draw.random((9, 5)) < 2, np.inf, 0)) is None, "diverged"
    same = np.tile(draw.standard_normal(3), (64, 1)) * draw.uniform(0.9, 1.1, (64, 1))
    alone = of_settings(same)
    assert alone
    assert alone.moderated(1.0, 2)[1] == 2, "seeds that go up and down together are those of one setting"


def test_spreads_that_differ_leave_each_setting_its_own() -> None:
    draw = np.random.default_rng(2)
    prior = of_settings(draw.standard_normal((64, 3)) * np.exp(6 * draw.standard_normal((64, 1))))
    assert prior
    assert prior.moderated(1.0, 2)[1] < 2.5


def test_only_deviations_count_and_not_where_the_numbers_lie() -> None:
    """So the choice of the rule cannot follow the verdict."""
    draw = np.random.default_rng(3)
    leads = draw.standard_normal((10, 4))
    one, other = of_settings(leads), of_settings(leads + 100 * draw.standard_normal((10, 1)))
    assert one
    assert other
    assert (one.freedom, one.variance, one.most) == pytest.approx((other.freedom, other.variance, other.most))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_that_collapses_leaves_the_median(sign: int) -> None:
    usual = [1.0, 1.2, 0.9, 1.1, 0.8, 1.05, 0.95]
    far = [sign * v for v in (*usual, 60.0)]
    assert collapses(far) == 1
    assert not collapses(usual)
    assert not collapses([1.0, 1.1, 60.0]), "of three runs none is far off"
    assert not collapses([100.0] * 6 + [95.0], step=5.0), "one step of a coarse grid is not far"
    found = Unit([(v, v) for v in far], ABOVE).judged
    assert found.says == ("for" if sign > 0 else "against")
    assert found.why == "1 of 8 runs far off, median"


# --- how often they err -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [3, 6, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_rules_err_in_one_case_of_twenty(kind: str, seeds: int) -> None:
    """A side of an interval errs in 2.5 %; 1 % more is allowed, and three errors of the simulation."""
    inside, against = wrong(noise(kind, 60, 16, seeds))
    assert inside <= 0.035 + 3 * np.sqrt(0.025 / 960)
    assert against <= 0.05 + 3 * np.sqrt(0.05 / 60)


def test_rules_err_no_more_with_the_residuals_of_our_own_runs() -> None:
    inside, against = wrong(residuals("mnist", 3)[::4])
    assert inside <= 0.05
    assert against <= 0.1
