"""The pieces of work that are measured: synthetic data of the right shapes, a model, clients per round, local work.

W1 and W2 are the two workloads of the comparison with other simulators; the rest are the models of the five papers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from reproduce.data.batches import Batches, Shuffled
from reproduce.declare.values import Sample
from reproduce.models.declared import MLP, AlexNet, ConvNet, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification


@dataclass(frozen=True)
class Synthetic:
    """Random images or features with random labels: only their shapes matter.

    With a vocabulary the samples are texts: ids by Zipf's law (number k with a probability like 1 / k), padded with 0
    from a random length of at least a third.
    """

    samples: int
    shape: tuple[int, ...]
    classes: int = 10
    vocabulary: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.samples, min(self.samples, 1000)

    @property
    def sample(self) -> Sample:
        return Sample(self.shape, "int64", self.vocabulary) if self.vocabulary else Sample(self.shape)

    def load(self) -> Raw:
        stream = np.random.default_rng(0)
        if self.vocabulary:
            return Raw(self._texts(stream), stream.integers(0, self.classes, self.samples), self.classes)
        x = stream.standard_normal((self.samples, *self.shape), dtype=np.float32)
        if self.shape == (123,):
            x = (x > 1.2).astype(np.float32)
        return Raw(x, stream.integers(0, self.classes, self.samples), self.classes)

    def _texts(self, stream: np.random.Generator) -> np.ndarray:
        (length,) = self.shape
        share = np.cumsum(1 / np.arange(1, self.vocabulary))
        x = 1 + np.searchsorted(share, stream.random((self.samples, length)) * share[-1])
        x[np.arange(length) >= stream.integers(length // 3, length + 1, (self.samples, 1))] = 0
        return x


@dataclass(frozen=True)
class Raw:
    """The part of a data set that `DeviceData` reads."""

    train_x: np.ndarray
    train_y: np.ndarray
    n_classes: int
    sha256: str = "synthetic"
    source: str = "synthetic"

    @property
    def test_x(self) -> np.ndarray:
        return self.train_x[:1000]

    @property
    def test_y(self) -> np.ndarray:
        return self.train_y[:1000]


@dataclass(frozen=True)
class Work:
    """`clients` clients in all, `per_round` of them train `steps` batches of `batch` in a round."""

    name: str
    model: Model
    shape: tuple[int, ...]
    clients: int
    per_round: int
    samples: int
    batch: int
    steps: int
    classes: int = 10

    @property
    def data(self) -> Synthetic:
        return Synthetic(self.clients * self.samples, self.shape, self.classes, self.model.tokens)

    @property
    def problem(self) -> Classification:
        batches: Batches = Shuffled(self.batch)
        return Classification(self.data, self.model, IID(), self.clients, batches)

    def tensors(self) -> list[tuple[Tensor, Tensor]]:
        """One (x, y) per client, for the naive loop and the peers."""
        raw = self.data.load()
        x, y = torch.from_numpy(raw.train_x), torch.from_numpy(raw.train_y)
        return list(zip(x.split(self.samples), y.split(self.samples), strict=True))

    @property
    def samples_per_round(self) -> int:
        return self.per_round * self.steps * self.batch


CNN28 = ConvNet(1, 28, (10, 20), (50,), dropout=0.5, dropout_at="last", channel_dropout=0.5)
CNN_CIFAR = ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1)
RESNET10N = ResNet(1, 10, (16, 32, 64, 128), (1, 1, 1, 1), stem_stride=2)

WORKS = (
    Work("W1 two-layer CNN", CNN28, (1, 28, 28), 100, 10, 600, 25, 24),
    Work("W2 logistic regression", Softmax(123, 2), (123,), 20, 20, 500, 20, 500, classes=2),
    Work("softmax 784", Softmax(784, 10), (784,), 40, 20, 1000, 128, 5),
    Work("MLP 784-200-10, 100 clients", MLP(784, 200, 10), (784,), 100, 100, 100, 25, 4),
    Work("MLP 784-64-10", MLP(784, 64, 10), (784,), 100, 10, 100, 10, 10),
    Work("defedavg CNN", ConvNet(1, 28, (32, 64), (512,)), (1, 28, 28), 100, 10, 100, 10, 10),
    Work("fedacs CIFAR CNN, batch 512", CNN_CIFAR, (3, 32, 32), 6, 6, 1024, 512, 2),
    Work("fiarse resnet10n", RESNET10N, (1, 28, 28), 8, 8, 160, 20, 8),
    Work("ResNet-18, batch 20", ResNet(), (3, 32, 32), 2, 2, 100, 20, 5),
    Work("AlexNet, batch 25", AlexNet(), (3, 32, 32), 2, 2, 100, 25, 16),
    Work("fastText, batch 128", FastText(), (64,), 2, 2, 640, 128, 5, classes=4),
)
