"""A part of the training data that no client has, in the place of the test set: what rates are chosen by.

A problem that is judged by it (`validated`) never reads the test set, so that nothing that is reported chooses a rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduce.data.dataset import Dataset
from reproduce.data.sources import find_source
from reproduce.declare.experiment import Experiment
from reproduce.declare.values import Indices
from reproduce.errors import UserError
from reproduce.partitions.split import loaded
from reproduce.settings import settings
from reproduce.streams import rng

JUDGE, HELD_OUT = "judged_by", "held-out part"
"""The label of runs that choose rates and are not reported, and what judges these."""
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
        if self.source.sizes[0] < PART:
            raise UserError(f"{self.data} has {self.source.sizes[0]} training samples: of {PART} one can be held out")

    of = property(lambda self: self.data if isinstance(self.data, str) else "")  # the data set of which it is a part
    source = property(lambda self: find_source(self.data) if isinstance(self.data, str) else self.data)
    sample = property(lambda self: self.source.sample)
    classes = property(lambda self: self.source.classes)
    kind = property(lambda self: getattr(self.source, "kind", ""))
    holders = property(lambda self: self.source.holders)  # of a user's own data: clients, and whose each sample is
    held_by = property(lambda self: self.source.held_by[self.places[0]])

    @property
    def sizes(self) -> tuple[int, int]:
        """Training samples that are left, and those that are held out."""
        whole = self.source.sizes[0]
        return whole - whole // PART, whole // PART

    @property
    def places(self) -> tuple[Indices, Indices]:
        """Ascending positions in the training part of `data` of the samples that are left and of those held out."""
        left, held = self.sizes
        order = rng("held out", str(self.data)).permutation(left + held)
        return np.sort(order[held:]), np.sort(order[:held])

    def load(self) -> Dataset:
        whole, places = loaded(self, settings()), self.places
        (x, test_x), (y, test_y) = ([a[part] for part in places] for a in (whole.train_x, whole.train_y))
        texts = [[whole.train_text[i] for i in part] if whole.train_text else None for part in places]
        note = "; ".join(filter(None, [whole.note, f"one of {PART} training samples is held out and judges"]))
        return Dataset(whole.name, x, y, test_x, test_y, whole.n_classes, whole.sha256, note, *texts)


def validated(problem: Any) -> Any:
    """The problem judged by a tenth of its data set's training part, which no client has; one without data as it is.

    As many training samples as before are in use where they are a subset, and at most as many judge as in the test set.
    """
    if not hasattr(problem, "data"):
        return problem
    data = HeldOut(problem.data)
    by_place = getattr(problem.partition, "by_place", False)
    partition = replace(problem.partition, data=data) if by_place else problem.partition
    wanted = (problem.train_samples, problem.test_samples)
    train, test = (min(n, there) for n, there in zip(wanted, data.sizes, strict=True))
    return replace(problem, data=data, partition=partition, train_samples=train, test_samples=test)


def judged(e: Experiment) -> Experiment:
    """The run as it chooses a rate: labelled, and with its problem `validated`; itself if there are no data."""
    problem = validated(e.problem)
    return e if problem == e.problem else replace(e, labels={**e.labels, JUDGE: HELD_OUT}, problem=problem)
