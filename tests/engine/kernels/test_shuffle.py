"""Compiled permutations against numpy's own, and sums over lanes against those of a vector at a time."""

import numpy as np
import pytest

from reproduce.data.batches import Shuffled, Walk, permutations
from reproduce.engine import stacking
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.kernels import library
from reproduce.engine.requests import Train
from reproduce.engine.stacking import Plans, Slot, permuted
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import Key

SIZES = (1, 2, 3, 16, 17, 255, 256, 257, 500, 513, 4097, 70_001)
"""Around powers of two the rejection is the least and the most frequent."""


@pytest.mark.parametrize("key", [("test",), ("test", 7), ("test", 2**32 - 1, 0, 5), tuple(range(9))])
def test_permutations_are_those_of_numpy(key: Key) -> None:
    """Keys of two words, which are padded, to ten, which are mixed in behind the first four; all sizes in one call."""
    streams = [((*key[:-1], i), np.arange(n)[::-1] * 3, 3 + i % 2) for i, n in enumerate(SIZES)]
    for ours, stream in zip(permuted(*zip(*streams, strict=True)), streams, strict=True):
        assert ours.dtype == np.int64
        assert np.array_equal(ours, permutations(*stream))


@pytest.mark.parametrize("batches", [Shuffled(20), Walk(7)])
def test_plans_are_the_same_with_and_without_a_compiler(batches: Shuffled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of slots of several seeds and clients, drawn together and one at a time."""
    problem = Classification("digits", Softmax(64, 10), IID(), 3, batches, train_samples=331)
    tasks = [ClientSplits(settings()).get(problem, seed) for seed in (0, 1)]
    request = Train(np.arange(3), np.array([6, 3, 1]), tasks[0].initial(), 0.1, 2)
    slots = [Slot(task, request, row) for task in tasks for row in range(3)]
    plain = [batches.plan(s.split.indices[s.client], s.steps, *s.key, 0) for s in slots]
    together, apart = Plans().all(slots), [Plans().get(slot) for slot in slots]
    assert list(map(Plans().lengths, slots)) == [(plan != -1).sum(1).tobytes() for plan in plain]
    assert (stacking.exact(library.HERE / "shuffle.c") is None) == (library.compiler() is None)
    monkeypatch.setattr(stacking, "exact", lambda source: None)
    for others in (together, apart, Plans().all(slots)):
        assert all(map(np.array_equal, plain, others))
