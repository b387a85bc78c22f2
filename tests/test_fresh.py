"""Clients whose test sets have other mixes of labels than their training parts."""

from __future__ import annotations

import numpy as np

from reproduce.papers.fiarse import runs
from reproduce.partitions.fresh import FreshTests
from reproduce.partitions.named import BalancedDirichlet

rng = np.random.default_rng(0)
TRAIN, TEST = rng.integers(0, 10, 4000), rng.integers(0, 10, 2000)


def mixes(labels: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return np.array([np.bincount(labels[part], minlength=10) / len(part) for part in parts])


def agreement(partition: object) -> float:
    """The correlation of what clients have of the classes in training and in tests."""
    train = partition.split(TRAIN, 20, 5)  # type: ignore[attr-defined]
    test = partition.split_test(TRAIN, TEST, 20, 5)  # type: ignore[attr-defined]
    return float(np.corrcoef(mixes(TRAIN, train).ravel(), mixes(TEST, test).ravel())[0, 1])


def test_clients_train_on_the_same_and_are_tested_on_something_else() -> None:
    base = BalancedDirichlet(0.3)
    fresh = FreshTests(base)
    for ours, theirs in zip(fresh.split(TRAIN, 20, 5), base.split(TRAIN, 20, 5), strict=True):
        assert np.array_equal(ours, theirs)
    other = BalancedDirichlet(0.3, data_seed=1).split_test(TRAIN, TEST, 20, 5)
    for ours, theirs in zip(fresh.split_test(TRAIN, TEST, 20, 5), other, strict=True):
        assert np.array_equal(ours, theirs)
    assert agreement(base) > 0.9
    assert abs(agreement(fresh)) < 0.3


def test_all_test_samples_are_still_dealt_once() -> None:
    parts = FreshTests(BalancedDirichlet(0.3)).split_test(TRAIN, TEST, 20, 5)
    assert sorted(np.concatenate(parts).tolist()) == list(range(2000))


def test_the_methods_beside_table_6_differ_in_the_tests_or_in_the_weight_alone() -> None:
    known = {str(e.labels["algorithm"]): e for p in runs.panels("table6", "reduced") for e in p.experiments}
    for name in ("heterofl", "fiarse"):
        ours, theirs = known[f"{name}_fresh"], known[name]
        assert (ours.system, ours.clock) == (theirs.system, theirs.clock)
        assert ours.problem.partition == FreshTests(theirs.problem.partition)
    alone, scalefl = known["scalefl_alone"], known["scalefl"]
    assert (alone.problem, alone.system) == (scalefl.problem, scalefl.system)
    assert (alone.algorithm.distill, scalefl.algorithm.distill) == (0.0, 0.05)
    assert alone.algorithm.levels == scalefl.algorithm.levels
