"""Partitions made of another: every client keeps a part only, or has test samples with other labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from reproduce.declare.values import Indices, Labels, Share
from reproduce.partitions.base import drawn


@dataclass(frozen=True)
class Over:
    """A partition made of another, whose properties it has."""

    partition: Any

    @property
    def shares_samples(self) -> bool:
        return bool(getattr(self.partition, "shares_samples", False))

    @property
    def leaves_empty(self) -> bool:
        return bool(getattr(self.partition, "leaves_empty", False))

    @property
    def data_seed(self) -> int | None:
        """With one the split is the same for all seeds of runs."""
        seed: int | None = getattr(self.partition, "data_seed", None)
        return seed


@dataclass(frozen=True)
class Head(Over):
    """The first `share` of every client's list of another partition, at least one sample: the same proportions of
    clients and classes, up to chance, on less data (fedagrac, reduced scale)."""

    share: Share

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts = self.partition.split(labels, clients, seed)
        return [part[: max(1, math.ceil(self.share * len(part)))] for part in parts]


@dataclass(frozen=True)
class FreshTests(Over):
    """A partition whose clients get the test sets of the next seed, so that their mixes of labels are independent of
    those of the training parts (fiarse, its published code)."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts: list[Indices] = self.partition.split(labels, clients, seed)
        return parts

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        other = replace(self.partition, data_seed=drawn(self.data_seed, seed) + 1)
        parts: list[Indices] = other.split_test(train_labels, test_labels, clients, seed)
        return parts
