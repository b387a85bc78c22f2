"""Who holds what in numbers: samples of each class per client, and how unequal that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Labels
from reproduce.partitions.split import Split

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Holding:
    """What one client holds; `classes`: how many; `largest`: the class of most of its samples, None without samples.

    share: of the samples that are of that class. entropy: of the classes of its samples, in bits. test: test samples of
    its own, None if the test set is not split.
    """

    client: int
    samples: int
    classes: int
    largest: int | None
    share: float
    entropy: float
    test: int | None


def counts(split: Split, which: int = 0) -> Counts:
    """Samples [clients, classes] of the training set (0), or of the test set (1)."""
    labels: Labels = split.labels[which]
    classes = split.data.n_classes
    return np.array([np.bincount(labels[part], minlength=classes) for part in split.parts[which]])


def holdings(split: Split) -> list[Holding]:
    """What every client holds."""
    tests = [len(part) for part in split.parts[1]] if len(split.parts) > 1 else None
    found = []
    for client, row in enumerate(counts(split)):
        samples, shares = int(row.sum()), row[row > 0] / max(1, row.sum())
        largest = int(row.argmax()) if samples else None
        entropy = abs(float((shares * np.log2(shares)).sum()))  # not -0.0
        share = float(shares.max(initial=0.0))
        test = None if tests is None else tests[client]
        found.append(Holding(client, samples, len(shares), largest, share, entropy, test))
    return found


def ranked(found: list[Holding]) -> dict[str, Holding]:
    """The client with the fewest samples, the one in the middle (the smaller of two), the one with most."""
    order = sorted(found, key=lambda h: (h.samples, h.client))
    return {"smallest": order[0], "median": order[(len(order) - 1) // 2], "largest": order[-1]}
