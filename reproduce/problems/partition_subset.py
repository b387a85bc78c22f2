"""A partition of which every client keeps a part only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from reproduce.problems.partition_tools import Indices, Labels


@dataclass(frozen=True)
class Head:
    """The first `share` of every client's list of another partition, at least one sample: the same proportions of
    clients and classes, up to chance, on less data (fedagrac, reduced scale)."""

    partition: Any
    share: float

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts = self.partition.split(labels, clients, seed)
        return [part[: max(1, math.ceil(self.share * len(part)))] for part in parts]
