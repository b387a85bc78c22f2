"""Skew of features: each client's noise has its variance, and all else is as without noise. Skew of amounts: the sizes
are those of their law, and labels do not matter."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from reproduce.data.batches import Shuffled
from reproduce.declare.values import Sample
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet
from reproduce.partitions.heldout import validated
from reproduce.partitions.labels import IID
from reproduce.partitions.skews import DirichletSizes, FeatureNoise, PowerLawSizes
from reproduce.play.owndata import parse
from reproduce.problem import Classification
from reproduce.settings import settings

SIGMA, M = 0.3, 5
PADDED = Classification(
    "digits", ConvNet(1, 12, (2, 3), (6,), kernel=3, padding=1), IID(), M, Shuffled(8), mean=(0.3,), std=(0.4,), pad=2
)


def made(problem: Any, seed: int = 0) -> ClassificationSplit:
    found = ClientSplits(settings(), torch.float64).get(problem, seed)
    assert isinstance(found, ClassificationSplit)
    return found


@pytest.mark.parametrize("plain", [PADDED, replace(PADDED, train_samples=300, test_samples=50)])
def test_the_noise_of_client_i_has_the_variance_sigma_i_over_m(plain: Classification) -> None:
    """Within the 99.9 % interval of a sample variance, with mean zero, around the pictures that there are."""
    noisy = made(FeatureNoise(SIGMA).put(plain))
    clean = made(plain).device_data
    assert torch.allclose(noisy.device_data.test_x, clean.test_x, atol=1e-6), "the test set has none"
    assert torch.equal(noisy.device_data.train_y, clean.train_y)
    noise = (noisy.device_data.train_x - clean.train_x).numpy()
    assert sorted(np.concatenate(noisy.indices)) == list(range(len(noise)))
    assert np.ptp(noisy.samples) <= 1
    for i, part in enumerate(noisy.indices, start=1):
        values, variance = noise[part].ravel(), SIGMA * i / M
        low, high = stats.chi2.ppf((0.0005, 0.9995), values.size) / values.size
        assert low < np.mean(values**2) / variance < high
        assert abs(values.mean()) < 4 * (variance / values.size) ** 0.5


def test_it_is_drawn_once_and_goes_with_what_is_held_out() -> None:
    problem = parse(f"FeatureNoise({SIGMA})").put(PADDED)
    one, other = made(problem), made(problem, seed=7)
    assert torch.equal(one.device_data.train_x, other.device_data.train_x)
    assert all(np.array_equal(a, b) for a, b in zip(one.indices, other.indices, strict=True))
    rows = {row.tobytes(): m for m, part in enumerate(one.indices) for row in one.device_data.train_x[part].numpy()}
    judging = made(validated(problem))
    for m, part in enumerate(judging.indices):
        assert {rows[row.tobytes()] for row in judging.device_data.train_x[part].numpy()} == {m}


def test_a_text_has_no_noise() -> None:
    with pytest.raises(UserError, match="news has texts: noise is for"):
        FeatureNoise(SIGMA).put(SimpleNamespace(data="news", sample=Sample((4,), "int64", 9)))


N, CLIENTS = 6000, 6
LABELS = np.repeat(np.arange(10), N // 10)


def test_shares_have_mean_and_variance_of_the_dirichlet_law() -> None:
    """E q_m = 1 / M, Var q_m = (1/M) (1 - 1/M) / (M alpha + 1), within four standard errors of 500 splits."""
    alpha, runs = 2.0, 500
    split = DirichletSizes(alpha, min_size=1).split
    sizes = np.array([[len(part) for part in split(LABELS, CLIENTS, seed)] for seed in range(runs)])
    assert (sizes.sum(1) == N).all()
    shares = sizes / N
    variance = (CLIENTS - 1) / CLIENTS**2 / (CLIENTS * alpha + 1)
    assert np.abs(shares.mean(0) - 1 / CLIENTS).max() < 4 * (variance / runs) ** 0.5
    assert shares.var(0).mean() == pytest.approx(variance, rel=0.15)
    assert min(map(len, DirichletSizes(0.5, min_size=200).split(LABELS, CLIENTS, 0))) >= 200
    with pytest.raises(UserError, match="use fewer clients or a larger alpha"):
        DirichletSizes(0.5, min_size=1001).split(LABELS, CLIENTS, 0)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_sizes_fall_as_the_power_of_the_client(exponent: float) -> None:
    sizes = [len(part) for part in PowerLawSizes(exponent).split(LABELS, CLIENTS, 3)]
    whole = sum((i + 1) ** -exponent for i in range(CLIENTS))
    assert sum(sizes) == N
    assert sizes == pytest.approx([N * (i + 1) ** -exponent / whole for i in range(CLIENTS)], abs=1)


def test_they_are_named_by_play_and_iid_in_labels() -> None:
    assert parse("DirichletSizes(0.5)") == DirichletSizes(0.5)
    for split in (parse("PowerLawSizes(1)").split, DirichletSizes(5.0).split):
        first, *_ = parts = split(LABELS, CLIENTS, 0)
        assert np.bincount(LABELS[first], minlength=10).min() / len(first) > 0.05, "a tenth, but for luck"
        assert [p.tolist() for p in parts] == [p.tolist() for p in split(LABELS, CLIENTS, 0)]
        assert len(np.unique(np.concatenate(parts))) == N
        assert first.tolist() != split(LABELS, CLIENTS, 1)[0].tolist()
