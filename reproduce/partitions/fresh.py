"""Test sets whose mixes of labels are independent of those of the training parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduce.declare.values import Indices, Labels
from reproduce.partitions.subset import Over


@dataclass(frozen=True)
class FreshTests(Over):
    """A partition with a `data_seed` whose clients get the test sets of the next one (fiarse, its published code)."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts: list[Indices] = self.partition.split(labels, clients, seed)
        return parts

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        other = replace(self.partition, data_seed=self.partition.data_seed + 1)
        parts: list[Indices] = other.split_test(train_labels, test_labels, clients, seed)
        return parts
