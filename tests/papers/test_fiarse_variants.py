"""Clients whose test sets have other mixes of labels than their training parts."""

from types import SimpleNamespace

import numpy as np
import pytest
from runs import run

from reproduce.algorithms.base import DistinctClients
from reproduce.algorithms.narrower import HeteroFL
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse.variants import FirstWindow, FreshTests, SteppedHeteroFL, cropped
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity

SYSTEM = System(Epochs(1), capacity=SplitCapacity((1.0, 1 / 4)))
rng = np.random.default_rng(0)
TRAIN, TEST = rng.integers(0, 10, 4000), rng.integers(0, 10, 2000)


def mixes(labels: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return np.array([np.bincount(labels[part], minlength=10) / len(part) for part in parts])


def agreement(partition: object) -> float:
    """The correlation of what clients have of the classes in training and in tests."""
    train = partition.split(TRAIN, 20, 5)  # type: ignore[attr-defined]
    test = partition.split_test(TRAIN, TEST, 20, 5)  # type: ignore[attr-defined]
    return float(np.corrcoef(mixes(TRAIN, train).ravel(), mixes(TEST, test).ravel())[0, 1])


@pytest.mark.parametrize(("fixed", "following"), [(0, 1), (None, 6)])
def test_clients_train_on_the_same_and_are_tested_on_something_else(fixed: int | None, following: int) -> None:
    base = BalancedDirichlet(0.3, fixed)
    fresh = FreshTests(base)
    for ours, theirs in zip(fresh.split(TRAIN, 20, 5), base.split(TRAIN, 20, 5), strict=True):
        assert np.array_equal(ours, theirs)
    other = BalancedDirichlet(0.3, data_seed=following).split_test(TRAIN, TEST, 20, 5)
    for ours, theirs in zip(fresh.split_test(TRAIN, TEST, 20, 5), other, strict=True):
        assert np.array_equal(ours, theirs)
    assert agreement(base) > 0.9
    assert abs(agreement(fresh)) < 0.3


def test_the_window_is_the_first_one_and_the_rate_falls_twice() -> None:
    common = {"lr": 0.5, "participation": DistinctClients(2, average=True)}
    last, first = (
        Experiment({"algorithm": "a"}, runs.PATTERNS, SYSTEM, made(rolling=True, **common), Rounds(8))
        for made in (HeteroFL, FirstWindow)
    )
    found = run([last, first], range(4))
    small = []
    for a, b in zip(found[:4], found[4:], strict=True):
        assert (a.state["x"] == b.state["x"]).all()
        mine, other = ([v for *_, m, k, v in x.state["history"] if (m, k) == ("accuracy", "0.25")] for x in (a, b))
        assert mine[:2] == other[:2]
        small.append(mine != other)
    assert any(small)
    falling = SteppedHeteroFL(lr=1.0, falls=(2, 4))
    rates = [falling.learning_rate(None, SimpleNamespace(round=r, lr=None)) for r in range(6)]  # type: ignore[arg-type]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


def test_test_images_are_cropped_and_mirrored_each_by_itself() -> None:
    """Every image is one of the 162 versions of itself, and few are as they were."""
    images = np.random.default_rng(1).integers(1, 255, (50, 6, 6, 1), dtype=np.uint8)
    wide = np.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)))
    for image, made in zip(wide, cropped(images), strict=True):
        versions = [image[t : t + 6, left : left + 6] for t in range(9) for left in range(9)]
        assert any((made == v).all() or (made == v[:, ::-1]).all() for v in versions)
    assert np.mean([(a == b).all() for a, b in zip(images, cropped(images), strict=True)]) < 0.1
