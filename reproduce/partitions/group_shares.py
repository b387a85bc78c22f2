"""The other reading of dynamic_init's Dirichlet split: a label's samples are shared out over the clients of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Indices, whole
from reproduce.partitions.base import ATTEMPTS, cut, impossible, joined
from reproduce.partitions.groups import GroupedDirichlet


@dataclass(frozen=True)
class GroupedShares(GroupedDirichlet):
    """Groups as in `GroupedDirichlet`; inside one, each label is cut by shares ~ Dir(alpha 1_n) over its n clients.

    All samples of the group are used, and clients differ in size. A group is redrawn until each of its clients has at
    least `min_size` samples (as in `DirichletClass`); UserError if none is found.
    """

    min_size: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("min_size", self.min_size, 0)

    def split_group(self, samples: list[Indices], clients: int, rng: np.random.Generator) -> list[Indices]:
        for _ in range(ATTEMPTS):
            # p_c ~ Dir(alpha 1_n) for each label c
            pieces = [cut(rng.permutation(own), rng.dirichlet(np.full(clients, self.alpha))) for own in samples]
            parts = joined([*zip(*pieces, strict=True)])
            if min(map(len, parts)) >= max(1, self.min_size):
                return parts
        raise impossible(f"GroupedShares {self.alpha}, at least {self.min_size} samples each", clients)
