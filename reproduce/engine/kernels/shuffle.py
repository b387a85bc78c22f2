"""Permutations in compiled code, which small models wait for longer than for their arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduce.data.batches import Indices, permutations
from reproduce.engine.kernels.library import addresses, call, exact
from reproduce.streams import Key, words

SOURCE = Path(__file__).with_suffix(".c")


def permuted(keys: Sequence[Key], values: Sequence[Indices], counts: Sequence[int]) -> list[Indices]:
    """For every stream keys[s] counts[s] permutations [count, n] of values[s] [n]: to the bit those of `permutations`.

    All keys have equally many parts. One call for all, because each makes threads wait for Python's lock.
    """
    code, n = exact(SOURCE), np.array([len(v) for v in values])
    if code is None or n.min() < 1 or n.max() >= 2**31:
        return [permutations(*stream) for stream in zip(keys, values, counts, strict=True)]
    mine = [np.ascontiguousarray(v, np.int64) for v in values]
    out = [np.empty((count, len(v)), dtype=np.int64) for v, count in zip(values, counts, strict=True)]
    whence, where = (addresses([v.ctypes.data for v in arrays]) for arrays in (mine, out))
    start, place = np.stack([words(*key) for key in keys]), np.empty(n.max(), dtype=np.int32)
    call(code.permutations, start, start.shape[1], len(keys), whence, n, np.array(counts), place, where)
    return out
