"""HeteroFL (Diao et al., ICLR 2021) and FedRolex (Alam et al., NeurIPS 2022): narrower networks for weaker clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reproduce.algorithms.base import Names
from reproduce.algorithms.narrower import Narrower

if TYPE_CHECKING:
    from reproduce.models.model import Model


@dataclass(frozen=True)
class HeteroFL(Narrower):
    """A client of capacity gamma trains the first ceil(sqrt(gamma) c) of the c channels of every layer, which is about
    the share gamma of the parameters; outputs of convolutions are divided by sqrt(gamma) (the scaler of HeteroFL).

    rolling: the kept channels move on by one in every round, cyclically (FedRolex, Algorithm 1). FedRolex does not say
        which submodel of a size is meant when one is evaluated; here the one of the last trained round.
    """

    names: ClassVar[Names] = {"heterofl": {}, "fedrolex": {"rolling": True}}

    rolling: bool = False

    def network(self, whole: Model, size: float) -> Model:
        return whole if size == 1 else whole.narrowed(math.sqrt(size))

    def offset(self, round: int) -> int:
        return round if self.rolling else 0
