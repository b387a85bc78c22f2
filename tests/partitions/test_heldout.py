"""What rates are chosen by: a part of the training data that no client has; nothing that is reported chooses one."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.data.dataset import Dataset
from reproduce.data.embedded import ImageBlobs
from reproduce.data.load import of_record
from reproduce.data.userdata import ByColumn
from reproduce.errors import UserError
from reproduce.partitions.heldout import HELD_OUT, PART, HeldOut, validated
from reproduce.partitions.split import split
from reproduce.play import scores, summary
from reproduce.play.benchmarks import ALIASES, Benchmark, find
from reproduce.play.match import Match
from reproduce.play.specs import Spec
from reproduce.settings import settings


@dataclass(frozen=True)
class Numbered:
    """Images whose pixels spell their place: training samples count from 0, test samples down from 65,535."""

    base: ImageBlobs
    classes = property(lambda self: self.base.classes)
    sizes = property(lambda self: self.base.sizes)
    sample = property(lambda self: self.base.sample)
    holders, held_by = 4, np.arange(160) % 4

    def load(self) -> Dataset:
        data = self.base.load()
        found = {}
        for part, first, sign in (("train", 0, 1), ("test", 65_535, -1)):
            x = getattr(data, f"{part}_x").copy()
            places = first + sign * np.arange(len(x))
            x[:, 0, 0, 0], x[:, 0, 1, 0] = places // 256, places % 256
            found[f"{part}_x"] = x
        return replace(data, **found)


def places(x: np.ndarray) -> set[int]:
    """The numbers that images spell."""
    return set((x[:, 0, 0, 0].astype(int) * 256 + x[:, 0, 1, 0]).tolist())


def benchmark(data: Any, alias: str = "fedacs-static") -> Benchmark:
    found = find(alias, "smoke")
    return replace(found, own={n: replace(e, problem=replace(e.problem, data=data)) for n, e in found.own.items()})


BLOBS = ImageBlobs(4, 8, 40, 25, noise=60.0, seed=5)


@pytest.mark.parametrize(
    "alias", [a for a in ALIASES if isinstance(find(a, "smoke").template.problem.data, ImageBlobs)]
)
def test_no_image_that_judges_is_of_a_client_or_of_the_test_set(alias: str) -> None:
    base: ImageBlobs = find(alias, "smoke").template.problem.data
    problem = validated(benchmark(Numbered(base), alias).template.problem)
    for seed in (1000, 1001):
        made = split(problem, seed, settings())
        trained = [made.data.train_x[made.used[0][part]] for part in made.parts[0]]
        judging = places(made.data.test_x[made.used[1]])
        assert all(len(x) for x in trained)
        assert not judging & set.union(*map(places, trained)), "in a client's shard"
        assert judging <= set(range(base.sizes[0])), "of the training part"
        assert len(judging) == base.sizes[0] // PART
    assert places(made.data.train_x) | places(made.data.test_x) == set(range(base.sizes[0])), "nothing is lost"


def test_it_is_drawn_once_for_each_data_set() -> None:
    left, held = HeldOut(BLOBS).places
    assert np.array_equal(np.sort(np.concatenate([left, held])), np.arange(160))
    assert np.array_equal(HeldOut(BLOBS).places[1], held)
    assert not np.array_equal(HeldOut(replace(BLOBS, seed=6)).places[1], held)
    assert len(np.unique(of_record(HeldOut(BLOBS)).test_y)) == 4
    with pytest.raises(UserError, match="has 8 training samples: of 10 one can be held out"):
        HeldOut(ImageBlobs(4, 8, 2, 25, noise=60.0, seed=5))


def test_subsets_are_as_large_as_before_and_quadratics_stay() -> None:
    problem = replace(find("fedacs-static", "smoke").template.problem, train_samples=100, test_samples=10)
    assert validated(problem).sizes == (100, 10)
    assert validated(replace(problem, train_samples=160, test_samples=100)).sizes == (144, 16)
    quadratic = find("fedacs/fig7-static", "smoke").template.problem
    assert validated(quadratic) is quadratic


def test_the_test_set_chooses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other test labels the rates are the same and judged alike to the bit; only what is reported changes."""
    load, found, judged = ImageBlobs.load, [], []
    for name, shift in (("as it is", 0), ("spoilt", 1)):
        (folder / name / "results").mkdir(parents=True)
        monkeypatch.chdir(folder / name)

        def loaded(self: ImageBlobs, shift: int = shift) -> Dataset:
            data = load(self)
            return replace(data, test_y=(data.test_y + shift) % self.classes)

        monkeypatch.setattr(ImageBlobs, "load", loaded)
        match = Match([Spec("fednova")], [find("fedagrac-steps", "smoke")], (0, 1), tune=True, factors=(0.3, 1, 3))
        match.train()
        found.append(summary(match.frame()))
        judged.append(pd.concat([scores.of(j, e.benchmark) for e in match.entries for j in match.grid(e)]))
    pd.testing.assert_frame_equal(*judged, check_exact=True)
    clean, spoilt = found
    assert clean["lr"].tolist() == spoilt["lr"].tolist()
    assert clean["mean"].tolist() != spoilt["mean"].tolist(), "the test set is another one"
    assert set(clean["chosen_on"]) == {HELD_OUT}


def test_a_partition_by_place_keeps_its_clients() -> None:
    """Of a user's own data, whose column says whose each sample is."""
    data = Numbered(BLOBS)
    problem = replace(find("fedacs-static", "smoke").template.problem, data=data, partition=ByColumn(data, "who"))
    problem = replace(problem, clients=data.holders)
    made = split(validated(problem), 0, settings())
    for client, part in enumerate(made.parts[0]):
        mine = places(made.data.train_x[part])
        assert mine == set(range(client, 160, data.holders)) - places(made.data.test_x)
    with pytest.raises(UserError, match="the column who gives 144 samples to 4 clients, and not 100"):
        split(replace(validated(problem), train_samples=100), 0, settings())
