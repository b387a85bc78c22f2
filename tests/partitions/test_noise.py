"""Skew of features: each client's noise has its variance, and all else is as without noise."""

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
from reproduce.partitions.noise import FeatureNoise
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
