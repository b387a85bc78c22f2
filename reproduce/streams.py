"""Keyed random streams: every random decision has a stream of its own, named by what it decides.

A stream depends on its key only - a purpose and, as far as they matter, seed, round, session, client, job - and never
on the order in which things are computed, on the number of workers, or on which other algorithms ran before. Algorithms
that ask for the same key therefore meet the same random numbers, and a run that is resumed or split over
workers repeats itself.

The generators that a paper's published numbers prescribe (legacy NumPy seeds and the like) are not made here; they
stand beside the rule that needs them.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

WORD = 2**32
Key = tuple[int | str, ...]


def rng(*key: int | str) -> np.random.Generator:
    """The generator of stream `key`, e.g. `rng("link", seed, round)`.

    Strings enter by their CRC-32, which is the same in every process. Integers must lie in [0, 2**32), or ValueError is
    raised. The length of the key enters too: NumPy pads short seeds with zeros and takes (1,) and (1, 0) for the same.
    """
    return np.random.default_rng(words(*key))


def words(*key: int | str) -> np.ndarray:
    """The seed of a stream's generator [1 + parts of the key]."""
    if not key:
        raise ValueError("a random stream needs a key: its purpose, and seed, round, client, ... as far as they matter")
    # an array: half the time of a list
    return np.array([len(key), *(_word(part) for part in key)], dtype=np.uint32)


def per_client(clients: int, *key: int | str) -> np.ndarray:
    """Uniform numbers in [0, 1), float64 of shape (clients,), of stream `key`.

    Client m's number is the m-th of the stream: it depends on the key and m, not on how many clients there are.
    """
    return rng(*key).random(clients)


def _word(part: int | str) -> int:
    if isinstance(part, str):
        return zlib.crc32(part.encode())
    word = int(part)
    if word != part or not 0 <= word < WORD:
        raise ValueError(f"{part!r} cannot be part of a stream's key: use text or whole numbers in [0, 2**32)")
    return word


def _unseeded(count: int) -> int:
    raise ValueError("a generator without a seed gives other numbers each time: np.random.default_rng(seed)")


@contextmanager
def globally(*key: int | str) -> Iterator[None]:
    """The global generators of Python, NumPy and torch start from stream `key` inside and are as before outside: for
    code of a user's own, which may draw from them. A generator of NumPy without a seed is a ValueError there."""
    stream = rng("global", *key)
    torch: Any = sys.modules.get("torch")
    numpy: Any = np.random.mtrand._rand  # type: ignore[attr-defined]  # the global one
    before = random.getstate(), numpy.get_state(), torch.get_rng_state() if torch else None
    bits: Any = np.random.bit_generator
    entropy, bits.randbits = bits.randbits, _unseeded
    random.seed(int(stream.integers(2**62)))
    numpy.seed(int(stream.integers(WORD)))
    if torch:
        seed = int(stream.integers(2**62))
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():  # of which nobody else draws: it is not put back
            torch.cuda.manual_seed_all(seed)
    try:
        yield
    finally:
        bits.randbits = entropy
        random.setstate(before[0])
        numpy.set_state(before[1])
        if torch:
            torch.set_rng_state(before[2])
