"""Skew of features, where the samples of clients have noise of unequal strength; and of amounts alone, where samples
are IID and clients have unequal numbers of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.dataset import Dataset
from reproduce.data.userdata import ByColumn
from reproduce.declare.values import Indices, Labels, NonNegative, Positive, Whole
from reproduce.errors import UserError
from reproduce.partitions.base import ATTEMPTS, TRAIN, Prior, cut, impossible, stream
from reproduce.partitions.split import chosen, loaded
from reproduce.settings import settings
from reproduce.streams import rng


@dataclass(frozen=True)
class FeatureNoise:
    """IID parts, and Gaussian noise of variance sigma i / M on the training samples of client i = 1 .. M (feature skew
    of NIID-Bench, Li et al., ICDE 2022). Parts and noise are drawn once for all seeds."""

    sigma: Positive

    def put(self, problem: Any) -> Any:
        """The problem with such clients: its data have the noise, and say whose each sample is."""
        if problem.sample.dtype != "float":
            raise UserError(f"{problem.data} has texts: noise is for numbers and pictures")
        if problem.clients > problem.sizes[0]:
            raise UserError(
                f"{problem.sizes[0]} samples cannot give {problem.clients} clients 1 each; use fewer clients"
            )
        data = Noisy(problem, self.sigma)
        plain = {"mean": (), "std": (), "pad": 0, "train_samples": 0, "test_samples": 0, "subset_balanced": False}
        return replace(problem, data=data, partition=ByColumn(data, "noise"), **plain)


@dataclass(frozen=True)
class Noisy:
    """The samples in use of a `problem`, as its model sees them, with noise on the training part (`FeatureNoise`)."""

    problem: Any
    sigma: float

    sample = property(lambda self: self.problem.sample)
    sizes = property(lambda self: self.problem.sizes)
    classes = property(lambda self: self.problem.source.classes)
    of = property(lambda self: next(iter(self.problem.requires), ""))  # the data set that must be there
    holders = property(lambda self: self.problem.clients)  # M, and below the client of each sample [n], from 0
    held_by = property(lambda self: rng("noisy clients").permutation(self.sizes[0]) % self.holders)

    def load(self) -> Dataset:
        data = loaded(self.problem, settings())
        train, test = chosen(self.problem, data)
        x, test_x = self._seen(data.train_x[train]), self._seen(data.test_x[test])
        deviation = np.sqrt(self.sigma * (self.held_by + 1) / self.holders).reshape(-1, *[1] * (x.ndim - 1))
        x = x + (deviation * rng("feature noise").standard_normal(x.shape)).astype(np.float32)
        return replace(data, train_x=x, train_y=data.train_y[train], test_x=test_x, test_y=data.test_y[test])

    def _seen(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Pictures [n, C, H, W], normalised and padded; other features as they are."""
        if x.dtype != np.uint8:
            return x.astype(np.float32)
        import torch

        return self.problem.normalised(torch.from_numpy(x), torch.float32).numpy()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class DirichletSizes:
    """A random permutation cut by shares q ~ Dir(alpha 1_M) (quantity skew of NIID-Bench, Li et al., ICDE 2022).

    Redrawn until each client has at least `min_size` samples.
    """

    alpha: Prior
    min_size: Whole = 10

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        rng = stream(seed, TRAIN)
        order = rng.permutation(len(labels))
        for _ in range(ATTEMPTS):
            parts = cut(order, rng.dirichlet(np.full(clients, self.alpha)))
            if min(map(len, parts)) >= max(1, self.min_size):
                return parts
        raise impossible(f"DirichletSizes {self.alpha}, at least {self.min_size} samples each", clients)


@dataclass(frozen=True)
class PowerLawSizes:
    """A random permutation cut by shares q_i proportional to i^(-exponent), i = 1 .. M; 0 gives equal ones."""

    exponent: NonNegative = 1.0

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        shares = np.arange(1, clients + 1) ** -float(self.exponent)
        return cut(stream(seed, TRAIN).permutation(len(labels)), shares / shares.sum())
