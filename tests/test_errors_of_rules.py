"""How often the rules of verdicts err, for symmetric noise and for that of our own runs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rules import KINDS, noise, residuals, wrong


@pytest.mark.parametrize("seeds", [3, 6, 10])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("normal")])
def test_rules_err_in_one_case_of_twenty(kind: str, seeds: int) -> None:
    """A side of an interval errs in 2.5 %; 1 % more is allowed, and three errors of the simulation."""
    inside, against = wrong(noise(kind, 60, 16, seeds))
    assert inside <= 0.035 + 3 * np.sqrt(0.025 / 960)
    assert against <= 0.05 + 3 * np.sqrt(0.05 / 60)


def test_rules_err_no_more_with_the_residuals_of_our_own_runs() -> None:
    inside, against = wrong(residuals("mnist", 3)[::4])
    assert inside <= 0.05
    assert against <= 0.1
