"""Permutations in compiled code, which small models wait for longer than for their arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduce.data.batches import Indices, permutations
from reproduce.engine.kernels.library import call, exact
from reproduce.streams import Key, words

SOURCE = Path(__file__).with_suffix(".c")


def permuted(key: Key, values: Indices, count: int) -> Indices:
    """`count` permutations [count, n] of `values` [n] from the stream `key`: to the bit those of `permutations`."""
    code, n = exact(SOURCE), len(values)
    if code is None or n < 2 or n >= 2**31:
        return permutations(key, values, count)
    out, place, start = np.empty((count, n), dtype=np.int64), np.empty(n, dtype=np.int32), words(*key)
    call(code.permutations, start, len(start), np.ascontiguousarray(values, np.int64), n, count, place, out)
    return out
