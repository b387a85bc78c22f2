"""Who holds what: samples of each class per client, and how unequal that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Labels
from reproduce.partitions.split import Split

if TYPE_CHECKING:
    import pandas as pd

Counts = NDArray[np.int64]


def counts(split: Split, which: int = 0) -> Counts:
    """Samples [clients, classes] of the training set (0), or of the test set (1)."""
    labels: Labels = split.labels[which]
    return np.array([np.bincount(labels[mine], minlength=split.data.n_classes) for mine in split.parts[which]])


def holdings(split: Split) -> pd.DataFrame:
    """What every client holds, a row each.

    classes: how many; largest: the class of most of its samples, None without samples; share: of the samples that are
    of that class; entropy: of the classes of its samples, in bits; test: test samples of its own, None if the test set
    is not split.
    """
    import pandas as pd
    from scipy.special import entr

    table = counts(split)  # [clients, classes]
    samples = table.sum(axis=1)
    shares = table / np.maximum(1, samples)[:, None]  # p_c, the share of class c
    largest = [int(row.argmax()) if row.any() else None for row in table]
    tests = [len(mine) for mine in split.parts[1]] if len(split.parts) > 1 else [None] * len(table)
    found = {
        "client": np.arange(len(table)),
        "samples": samples,
        "classes": (table > 0).sum(axis=1),
        "largest": pd.Series(largest, dtype=object),
        "share": shares.max(axis=1),
        "entropy": np.abs(entr(shares).sum(axis=1)) / np.log(2),  # - sum_c p_c log2 p_c, and no -0.0
        "test": pd.Series(tests, dtype=object),
    }
    return pd.DataFrame(found)
