"""A partition and two session starts on which printed tables of dynamic_init may rest (`readings`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reproduce.algorithms.session_starts import Average, Previous, Start
from reproduce.declare.values import Indices, Labels
from reproduce.partitions.base import TRAIN, evenly, stream


class Carried(Start):
    """The first session after the pilot sessions goes on from their last model, as in `Proposed` with "carry"."""

    pilot = "trained"
    session_p_start = "carry"


@dataclass(frozen=True)
class CarriedPrevious(Carried, Previous):
    """`Previous` from the pilot sessions on."""


@dataclass(frozen=True)
class CarriedAverage(Carried, Average):
    """`Average` whose first model has been through the pilot sessions."""


@dataclass(frozen=True)
class SharedWhole:
    """`PartialOverlap` in which both groups hold all samples of the labels that they share."""

    shares_samples = True

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        classes, rng, half = np.unique(labels).tolist(), stream(seed, TRAIN), clients // 2
        begin, end = round(0.4 * len(classes)), round(0.6 * len(classes))
        first = evenly(labels, dict.fromkeys(classes[:end], range(half)), clients, rng)
        second = evenly(labels, dict.fromkeys(classes[begin:], range(half, clients)), clients, rng)
        return [*first[:half], *second[half:]]
