"""Compiled permutations against numpy's own, and sums over lanes against those of a vector at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from reproduce.data.batches import Shuffled, Walk, permutations
from reproduce.engine.kernels import library, shuffle
from reproduce.engine.kernels.shuffle import permuted
from reproduce.streams import Key

SIZES = (1, 2, 3, 16, 17, 255, 256, 257, 500, 513, 4097, 70_001)
"""Around powers of two the rejection is the least and the most frequent."""

SUMS = """
#include "vectors.h"
#include <stdio.h>
#include <stdlib.h>
static int wrong;
INLINE void check(const int R) {
    vec v[16], kept[16];
    for (int r = 0; r < R; r++)
        for (int i = 0; i < LANES; i++) v[r][i] = kept[r][i] = rand() / 1e6 - 1000;
    const vec all = totals(R, v);
    for (int r = 0; r < R; r++) wrong += total(kept[r]) != all[r];
}
int main(void) {
    for (int n = 0; n < 100; n++) check(1), check(2), LANES >= 4 ? check(4) : (void)0;
    for (int n = 0; n < 100; n++) LANES >= 8 ? check(8) : (void)0, LANES >= 16 ? check(16) : (void)0;
    return wrong > 0;
}
"""


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("key", [("test",), ("test", 7), ("test", 2**32 - 1, 0, 5), tuple(range(9))])
def test_permutations_are_those_of_numpy(n: int, key: Key) -> None:
    """Keys of two words, which are padded, to ten, which are mixed in behind the first four."""
    values = np.arange(n)[::-1] * 3
    ours, theirs = (draw(key, values, 3) for draw in (permuted, permutations))
    assert ours.dtype == theirs.dtype == np.int64
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("batches", [Shuffled(20), Walk(7)])
def test_plans_are_the_same_with_and_without_a_compiler(batches: Shuffled, monkeypatch: pytest.MonkeyPatch) -> None:
    key = (np.arange(0, 150, 3), 6, 1, 2, 3, 0)
    plain, quick = batches.plan(*key), batches.plan(*key, draw=permuted)
    monkeypatch.setattr(shuffle, "exact", lambda source: None)
    assert np.array_equal(plain, quick)
    assert np.array_equal(plain, batches.plan(*key, draw=permuted))


@pytest.mark.parametrize("isa", library.levels())
@pytest.mark.parametrize("real", [("float", "int32_t", "-DSINGLE"), ("double", "int64_t")])
def test_sums_of_several_vectors_are_those_of_each(isa: str, real: tuple[str, ...], tmp_path: Path) -> None:
    command = library.compiler()
    if command is None:
        pytest.skip("no C compiler")
    (tmp_path / "sums.c").write_text(SUMS)
    options = (*library.LEVELS[isa].flags, f"-DREAL={real[0]}", f"-DBITS={real[1]}", *real[2:], f"-I{library.HERE}")
    flags = [flag for flag in library.FLAGS if flag not in ("-shared", "-fPIC")]
    build = [*command, *flags, *options, "-o", str(tmp_path / "sums"), str(tmp_path / "sums.c"), "-lm"]
    subprocess.run(build, check=True)
    assert subprocess.run([str(tmp_path / "sums")]).returncode == 0
