"""Data that need no files: handwritten digits of scikit-learn, and generated Gaussian classes, images and texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reproduce.data.dataset import Dataset
from reproduce.declare.values import Ints, Sample

Draw = Callable[[Ints], NDArray[Any]]
"""Labels [N] -> a sample of each class, [N, ...]."""


def load(name: str) -> Dataset:
    """The embedded data sets with a fixed size: `digits`, and `gaussian` as in the smoke scale of dynamic_init."""
    return digits() if name == "digits" else GaussianClasses(10, 20, 400, 200, noise=1.5, seed=7).load()


def digits() -> Dataset:
    """8x8 grey images of digits, uint8 [N, 8, 8, 1] (16 grey levels stretched to 0 .. 255), 1,437 train and 360 test.

    The split is a fixed permutation.
    """
    from sklearn.datasets import load_digits

    raw = load_digits()
    x = np.rint(raw.images * (255 / 16)).astype(np.uint8)[..., None]
    y = raw.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    return _dataset("digits", [(x[part], y[part]) for part in (order[:1437], order[1437:])], 10)


def _dataset(name: str, parts: list[tuple[NDArray[Any], Ints]], classes: int) -> Dataset:
    digest = hashlib.sha256(b"".join(array.tobytes() for part in parts for array in part)).hexdigest()
    (train_x, train_y), (test_x, test_y) = parts
    return Dataset(name, train_x, train_y, test_x, test_y, classes, digest)


class Generated:
    """A record of generated data with equally many samples of each class; subclasses say how one is drawn."""

    called: ClassVar[str]
    key: ClassVar[int]
    classes: int
    train_per_class: int
    test_per_class: int
    seed: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.classes * self.train_per_class, self.classes * self.test_per_class

    def law(self, rng: np.random.Generator) -> Draw:
        """A sampler that draws from `rng`, after the part that all samples share."""
        raise NotImplementedError

    def load(self) -> Dataset:
        rng = np.random.default_rng([self.seed, self.key])
        draw, parts = self.law(rng), []
        for each in (self.train_per_class, self.test_per_class):
            y = rng.permutation(np.repeat(np.arange(self.classes, dtype=np.int64), each))
            parts.append((draw(y), y))
        return _dataset(self.called, parts, self.classes)


@dataclass(frozen=True)
class GaussianClasses(Generated):
    """Gaussian classes float32 [N, dim]: class means ~ N(0, mean_scale^2 I), sample = mean + noise * N(0, I)."""

    classes: int
    dim: int
    train_per_class: int
    test_per_class: int
    noise: float
    seed: int
    mean_scale: float = 1.0
    called, key = "gaussian", 20

    @property
    def sample(self) -> Sample:
        return Sample((self.dim,))

    def law(self, rng: np.random.Generator) -> Draw:
        means = rng.normal(0, self.mean_scale, (self.classes, self.dim))
        return lambda y: (means[y] + self.noise * rng.standard_normal((len(y), self.dim))).astype(np.float32)


@dataclass(frozen=True)
class ImageBlobs(Generated):
    """Gaussian classes as images uint8 [N, side, side, channels]; `noise` in grey levels.

    The mean of a class is a coarse 4x4 pattern of random grey levels, so that small convolutions can tell the
    classes apart. `side` is a multiple of 4.
    """

    classes: int
    side: int
    train_per_class: int
    test_per_class: int
    noise: float
    seed: int
    channels: int = 1
    called, key = "image-blobs", 21

    @property
    def sample(self) -> Sample:
        return Sample((self.channels, self.side, self.side))

    def law(self, rng: np.random.Generator) -> Draw:
        coarse = rng.uniform(40, 215, (self.classes, 4, 4, self.channels))
        means = coarse.repeat(self.side // 4, axis=1).repeat(self.side // 4, axis=2)  # [classes, side, side, channels]

        def draw(y: Ints) -> NDArray[np.uint8]:
            x = means[y] + self.noise * rng.standard_normal((len(y), *means.shape[1:]))
            return np.clip(np.rint(x), 0, 255).astype(np.uint8)

        return draw


@dataclass(frozen=True)
class TopicTokens(Generated):
    """Token sequences int32 [N, length] with ids 1 .. vocabulary - 1 and padding 0, in place of news texts.

    Each word is drawn with probability `own` from the class's own share of the vocabulary, else from all of it; the
    lengths are uniform between half and the full length.
    """

    classes: int
    vocabulary: int
    length: int
    train_per_class: int
    test_per_class: int
    seed: int
    own: float = 0.3
    called, key = "topic-tokens", 22

    @property
    def sample(self) -> Sample:
        return Sample((self.length,), "int64", self.vocabulary)

    def law(self, rng: np.random.Generator) -> Draw:
        words = np.arange(1, self.vocabulary, dtype=np.int32)
        share = len(words) // self.classes

        def draw(y: Ints) -> NDArray[np.int32]:
            shape = (len(y), self.length)
            topical = y[:, None] * share + rng.integers(0, share, shape)
            x = words[np.where(rng.random(shape) < self.own, topical, rng.integers(0, len(words), shape))]
            x[np.arange(self.length) >= rng.integers((self.length + 1) // 2, self.length + 1, (len(y), 1))] = 0
            return x

        return draw
