"""Skew of amounts: the sizes are those of their law, and labels do not matter."""

import numpy as np
import pytest

from reproduce.errors import UserError
from reproduce.partitions.sizes import DirichletSizes, PowerLawSizes
from reproduce.play.owndata import parse

N, M = 6000, 6
LABELS = np.repeat(np.arange(10), N // 10)


def test_shares_have_mean_and_variance_of_the_dirichlet_law() -> None:
    """E q_m = 1 / M, Var q_m = (1/M) (1 - 1/M) / (M alpha + 1), within four standard errors of 500 splits."""
    alpha, runs = 2.0, 500
    split = DirichletSizes(alpha, min_size=1).split
    sizes = np.array([[len(part) for part in split(LABELS, M, seed)] for seed in range(runs)])
    assert (sizes.sum(1) == N).all()
    shares = sizes / N
    variance = (M - 1) / M**2 / (M * alpha + 1)
    assert np.abs(shares.mean(0) - 1 / M).max() < 4 * (variance / runs) ** 0.5
    assert shares.var(0).mean() == pytest.approx(variance, rel=0.15)
    assert min(map(len, DirichletSizes(0.5, min_size=200).split(LABELS, M, 0))) >= 200
    with pytest.raises(UserError, match="use fewer clients or a larger alpha"):
        DirichletSizes(0.5, min_size=1001).split(LABELS, M, 0)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_sizes_fall_as_the_power_of_the_client(exponent: float) -> None:
    sizes = [len(part) for part in PowerLawSizes(exponent).split(LABELS, M, 3)]
    whole = sum((i + 1) ** -exponent for i in range(M))
    assert sum(sizes) == N
    assert sizes == pytest.approx([N * (i + 1) ** -exponent / whole for i in range(M)], abs=1)


def test_they_are_named_by_play_and_iid_in_labels() -> None:
    assert parse("DirichletSizes(0.5)") == DirichletSizes(0.5)
    for split in (parse("PowerLawSizes(1)").split, DirichletSizes(5.0).split):
        first, *_ = parts = split(LABELS, M, 0)
        assert np.bincount(LABELS[first], minlength=10).min() / len(first) > 0.05, "a tenth, but for luck"
        assert [p.tolist() for p in parts] == [p.tolist() for p in split(LABELS, M, 0)]
        assert len(np.unique(np.concatenate(parts))) == N
        assert first.tolist() != split(LABELS, M, 1)[0].tolist()
