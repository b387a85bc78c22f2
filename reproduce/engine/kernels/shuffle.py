"""Permutations in compiled code, which small models wait for longer than for their arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduce.data.batches import Indices, permutations
from reproduce.engine.kernels.library import call, exact

SOURCE = Path(__file__).with_suffix(".c")


def permuted(stream: np.random.Generator, values: Indices, count: int) -> Indices:
    """`count` permutations [count, n] of `values` [n]: to the bit those of `permutations`, from a fresh PCG64 stream.

    The stream is left behind them, not just where numpy would leave it.
    """
    code, n = exact(SOURCE), len(values)
    if code is None or n < 2 or n >= 2**31:
        return permutations(stream, values, count)
    out, place = np.empty((count, n), dtype=np.int64), np.empty(n, dtype=np.int32)
    draws = np.empty(0, dtype=np.uint64)
    values = np.ascontiguousarray(values, dtype=np.int64)
    while True:  # on average 1.4 numbers of 32 bits a place, two of them in one of the generator
        draws = np.concatenate([draws, stream.bit_generator.random_raw(count * n * 3 // 4 + 64)])
        if call(code.permutations, draws, 2 * len(draws), values, n, count, place, out):
            return out
