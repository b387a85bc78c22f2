"""A part of the training data that no client has, in the place of the test set: what rates are chosen by.

A problem that is judged by it (`validated`) never reads the test set, so that nothing that is reported chooses a rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from reproduce.data.dataset import Dataset
from reproduce.data.load import load, of_record
from reproduce.data.sources import find_source
from reproduce.declare.values import Indices, Labels
from reproduce.errors import UserError
from reproduce.models.sample import Sample
from reproduce.partitions.subset import Over
from reproduce.settings import settings
from reproduce.streams import rng

PART = 10
"""One of so many training samples is held out."""


@dataclass(frozen=True)
class HeldOut:
    """The training part of `data` (a name, or a record as `Classification.data`), cut in two: a tenth of its samples,
    drawn once for all seeds, is the test part of this record, and the others are the training part.

    Raises UserError for data with fewer than ten training samples.
    """

    data: Any

    def __post_init__(self) -> None:
        if self._source.sizes[0] < PART:
            raise UserError(f"{self.data} has {self._source.sizes[0]} training samples: of {PART} one can be held out")

    @property
    def of(self) -> str:
        """The name of the data set of which this is a part; "" for the user's own data."""
        return self.data if isinstance(self.data, str) else ""

    @property
    def _source(self) -> Any:
        return find_source(self.data) if isinstance(self.data, str) else self.data

    @property
    def sample(self) -> Sample:
        sample: Sample = self._source.sample
        return sample

    @property
    def sizes(self) -> tuple[int, int]:
        """Training samples that are left, and those that are held out."""
        whole = self._source.sizes[0]
        return whole - whole // PART, whole // PART

    @property
    def classes(self) -> int:
        return int(self._source.classes)

    @property
    def kind(self) -> str:
        """What samples are, "text" for one."""
        return str(getattr(self._source, "kind", ""))

    @property
    def places(self) -> tuple[Indices, Indices]:
        """Ascending positions in the training part of `data` of the samples that are left and of those held out."""
        left, held = self.sizes
        order = rng("held out", str(self.data)).permutation(left + held)
        return np.sort(order[held:]), np.sort(order[:held])

    def whole(self) -> Dataset:
        """The data that are cut; raises as `load` and `of_record` do."""
        return load(self.data, settings()) if isinstance(self.data, str) else of_record(self.data)

    def load(self) -> Dataset:
        whole, (left, held) = self.whole(), self.places
        x, y, texts = whole.train_x, whole.train_y, whole.train_text
        note = "; ".join(filter(None, [whole.note, f"one of {PART} training samples is held out and judges"]))
        return Dataset(
            whole.name, x[left], y[left], x[held], y[held], whole.n_classes, whole.sha256, note,
            _taken(texts, left), _taken(texts, held),
        )  # fmt: skip


def _taken(texts: Sequence[str] | None, places: Indices) -> list[str] | None:
    return None if texts is None else [texts[i] for i in places]


@dataclass(frozen=True)
class Rest(Over):
    """A partition that names samples by their places in the data, without those that `data` holds out.

    A client that loses all has none. Where test samples are split too, a client is judged by what it lost.
    """

    data: HeldOut
    leaves_empty = True

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._parts(0, len(labels), clients, seed)

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        return self._parts(1, len(test_labels), clients, seed)

    def _parts(self, which: int, samples: int, clients: int, seed: int) -> list[Indices]:
        """Of each client's list what is left (0) or held out (1), as positions there."""
        places = self.data.places[which]
        if samples != len(places):
            raise UserError(f"rates cannot be chosen with {type(self.partition).__name__} on a subset: use all samples")
        labels = _labels(self.data)
        at = np.full(len(labels), -1)
        at[places] = np.arange(len(places))
        parts = [at[part] for part in self.partition.split(labels, clients, seed)]
        return [part[part >= 0] for part in parts]


@cache
def _labels(data: HeldOut) -> Labels:
    return data.whole().train_y


def validated(problem: Any) -> Any:
    """The problem judged by a tenth of its data set's training part, which no client has; one without data as it is.

    As many training samples as before are in use where they are a subset, and at most as many judge as in the test set.
    """
    if not hasattr(problem, "data"):
        return problem
    data = HeldOut(problem.data)
    partition = Rest(problem.partition, data) if getattr(problem.partition, "by_place", False) else problem.partition
    wanted = (problem.train_samples, problem.test_samples)
    train, test = (min(n, there) for n, there in zip(wanted, data.sizes, strict=True))
    return replace(problem, data=data, partition=partition, train_samples=train, test_samples=test)
