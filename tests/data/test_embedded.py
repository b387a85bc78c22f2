"""Embedded data: digits, and classes that are generated."""

from typing import Any

import numpy as np

from reproduce.data import embedded
from reproduce.data.load import load
from reproduce.settings import Settings


def test_digits_have_a_fixed_split(place: Settings) -> None:
    data = load("digits", place)
    assert data.train_x.shape == (1437, 8, 8, 1)
    assert data.test_x.shape == (360, 8, 8, 1)
    assert data.train_x.dtype == np.uint8
    assert (data.train_x.min(), data.train_x.max()) == (0, 255)
    assert data.sha256.startswith("3704f0fd277e")
    assert np.bincount(data.test_y).min() > 20
    assert data.n_classes == 10


def nearest_mean_accuracy(data: Any) -> float:
    x, test = (a.reshape(len(a), -1).astype(float) for a in (data.train_x, data.test_x))
    means = np.array([x[data.train_y == c].mean(axis=0) for c in range(data.n_classes)])
    return float((((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == data.test_y).mean())


def test_generated_classes_are_deterministic_and_learnable() -> None:
    for make in (
        lambda seed: embedded.GaussianClasses(10, 20, 40, 20, noise=1.5, seed=seed).load(),
        lambda seed: embedded.ImageBlobs(4, 8, 20, 10, noise=30, seed=seed).load(),
        lambda seed: embedded.ImageBlobs(4, 12, 20, 10, noise=30, seed=seed, channels=3).load(),
        lambda seed: embedded.TopicTokens(4, 200, 16, 40, 10, seed=seed).load(),
    ):
        data, again, other = make(7), make(7), make(8)
        assert data.sha256 == again.sha256 != other.sha256
        assert not data.train_x.flags.writeable
        assert len(set(np.bincount(data.train_y))) == len(set(np.bincount(data.test_y))) == 1
        assert data.name == "topic-tokens" or nearest_mean_accuracy(data) > 0.8
    assert embedded.ImageBlobs(4, 12, 5, 5, 30, 0, channels=3).load().train_x.shape == (20, 12, 12, 3)


def test_gaussian_noise_and_mean_scale() -> None:
    data = embedded.GaussianClasses(10, 20, 300, 10, noise=1.5, seed=7, mean_scale=2.0).load()
    assert data.train_x.dtype == np.float32
    means = np.array([data.train_x[data.train_y == c].mean(axis=0) for c in range(10)])
    assert abs(means.std() - 2.0) < 0.3
    assert abs((data.train_x - means[data.train_y]).std() - 1.5) < 0.05


def test_topic_tokens_are_padded_and_lean_to_their_class() -> None:
    data = embedded.TopicTokens(4, 201, 16, 100, 10, seed=0).load()
    lengths = (data.train_x > 0).sum(axis=1)
    assert data.train_x.max() < 201
    assert lengths.min() >= 8
    assert lengths.max() <= 16
    assert all((row[n:] == 0).all() for row, n in zip(data.train_x, lengths, strict=True))
    for c in range(4):
        ids = data.train_x[data.train_y == c]
        own = ((ids > 50 * c) & (ids <= 50 * (c + 1))).sum() / (ids > 0).sum()
        assert 0.4 < own < 0.55  # 0.3 + 0.7 / 4
