"""How often the rules of verdicts err, with the noise of our own runs, too; and runs that collapse."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rules import KINDS, noise, residuals, wrong
from reproduce.verdicts.judging import Region, Unit, collapses

ABOVE = Region(0.0)


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
