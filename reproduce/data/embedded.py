"""Data that need no files: handwritten digits of scikit-learn, and generated Gaussian classes, images and texts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.dataset import Dataset
from reproduce.data.sample import Sample

Pair = tuple[NDArray[Any], NDArray[np.int64]]


def load(name: str) -> Dataset:
    """The embedded data sets with a fixed size: `digits`, and `gaussian` as in the smoke scale of dynamic_init."""
    if name == "digits":
        return digits()
    return gaussian_classes(10, 20, 400, 200, noise=1.5, seed=7)


def digits() -> Dataset:
    """8x8 grey images of digits, uint8 [N, 8, 8, 1] (16 grey levels stretched to 0 .. 255), 1,437 train and 360 test.

    The split is a fixed permutation.
    """
    from sklearn.datasets import load_digits

    raw = load_digits()
    x = np.rint(raw.images * (255 / 16)).astype(np.uint8)[..., None]
    y = raw.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:1437], order[1437:]
    return _dataset("digits", [(x[train], y[train]), (x[test], y[test])], 10)


def gaussian_classes(
    classes: int,
    dim: int,
    train_per_class: int,
    test_per_class: int,
    noise: float,
    seed: int,
    mean_scale: float = 1.0,
) -> Dataset:
    """Gaussian classes float32 [N, dim]: class means ~ N(0, mean_scale^2 I), sample = mean + noise * N(0, I).

    dynamic_init smoke: (10, 20, 400, 200, 1.5, 7); defedavg smoke: (10, 20, 200, 50, 1.0, seed, mean_scale=2).
    """
    rng = np.random.default_rng([seed, 20])
    means = rng.normal(0, mean_scale, (classes, dim))
    parts: list[Pair] = []
    for each in (train_per_class, test_per_class):
        y = rng.permutation(np.repeat(np.arange(classes, dtype=np.int64), each))
        parts.append(((means[y] + noise * rng.standard_normal((len(y), dim))).astype(np.float32), y))
    return _dataset("gaussian", parts, classes)


def image_blobs(
    classes: int, side: int, train_per_class: int, test_per_class: int, noise: float, seed: int, channels: int = 1
) -> Dataset:
    """Gaussian classes as images uint8 [N, side, side, channels]; `noise` in grey levels.

    The mean of a class is a coarse 4x4 pattern of random grey levels, so that small convolutions can tell the
    classes apart. `side` must be a multiple of 4 (fedacs, fiarse smoke: 8; fedagrac smoke: 12).
    """
    if side % 4:
        raise ValueError(f"side {side} is not a multiple of 4")
    rng = np.random.default_rng([seed, 21])
    coarse = rng.uniform(40, 215, (classes, 4, 4, channels))
    means = coarse.repeat(side // 4, axis=1).repeat(side // 4, axis=2)
    parts: list[Pair] = []
    for each in (train_per_class, test_per_class):
        y = rng.permutation(np.repeat(np.arange(classes, dtype=np.int64), each))
        x = means[y] + noise * rng.standard_normal((len(y), *means.shape[1:]))
        parts.append((np.clip(np.rint(x), 0, 255).astype(np.uint8), y))
    return _dataset("image-blobs", parts, classes)


def topic_tokens(
    classes: int, vocabulary: int, length: int, train_per_class: int, test_per_class: int, seed: int, own: float = 0.3
) -> Dataset:
    """Token sequences int32 [N, length] with ids 1 .. vocabulary - 1 and padding 0, as a stand-in for news texts.

    Each word is drawn with probability `own` from the class's own share of the vocabulary, else from all of it; the
    lengths are uniform between half and the full length.
    """
    rng = np.random.default_rng([seed, 22])
    words = np.arange(1, vocabulary, dtype=np.int32)
    share = len(words) // classes
    parts: list[Pair] = []
    for each in (train_per_class, test_per_class):
        y = rng.permutation(np.repeat(np.arange(classes, dtype=np.int64), each))
        shape = (len(y), length)
        topical = y[:, None] * share + rng.integers(0, share, shape)
        x = words[np.where(rng.random(shape) < own, topical, rng.integers(0, len(words), shape))]
        x[np.arange(length) >= rng.integers((length + 1) // 2, length + 1, (len(y), 1))] = 0
        parts.append((x, y))
    return _dataset("topic-tokens", parts, classes)


def _dataset(name: str, parts: list[Pair], classes: int) -> Dataset:
    digest = hashlib.sha256(b"".join(array.tobytes() for part in parts for array in part)).hexdigest()
    (train_x, train_y), (test_x, test_y) = parts
    return Dataset(name, train_x, train_y, test_x, test_y, classes, "embedded", digest)


class PerClass:
    """A record of generated data with equally many samples of each class."""

    classes: int
    train_per_class: int
    test_per_class: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.classes * self.train_per_class, self.classes * self.test_per_class


@dataclass(frozen=True)
class GaussianClasses(PerClass):
    """`gaussian_classes` as the data of a problem."""

    classes: int
    dim: int
    train_per_class: int
    test_per_class: int
    noise: float
    seed: int
    mean_scale: float = 1.0

    @property
    def sample(self) -> Sample:
        return Sample((self.dim,))

    def load(self) -> Dataset:
        return gaussian_classes(**vars(self))


@dataclass(frozen=True)
class ImageBlobs(PerClass):
    """`image_blobs` as the data of a problem."""

    classes: int
    side: int
    train_per_class: int
    test_per_class: int
    noise: float
    seed: int
    channels: int = 1

    @property
    def sample(self) -> Sample:
        return Sample((self.channels, self.side, self.side))

    def load(self) -> Dataset:
        return image_blobs(**vars(self))


@dataclass(frozen=True)
class TopicTokens(PerClass):
    """`topic_tokens` as the data of a problem."""

    classes: int
    vocabulary: int
    length: int
    train_per_class: int
    test_per_class: int
    seed: int
    own: float = 0.3

    @property
    def sample(self) -> Sample:
        return Sample((self.length,), "int64", self.vocabulary)

    def load(self) -> Dataset:
        return topic_tokens(**vars(self))
