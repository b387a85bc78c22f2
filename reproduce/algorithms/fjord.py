"""FjORD (Horvath et al., NeurIPS 2021): ordered dropout with self-distillation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reproduce.algorithms.narrower import Narrower
from reproduce.engine.rule import OrderedDropout, Rule

if TYPE_CHECKING:
    from reproduce.models.model import Model


@dataclass(frozen=True)
class FjORD(Narrower):
    """A client of capacity gamma trains the first ceil(sqrt(gamma) c) of the c channels of every layer.

    In every step it also draws one of the clients' sizes up to its own. The network of that size learns from the
    softmax of the client's network, with weight and temperature 1, on the same batch.
    """

    def network(self, whole: Model, size: float) -> Model:
        return whole if size == 1 else whole.narrowed(math.sqrt(size), scale=False)

    def inner(self, whole: Model, sizes: Sequence[float], size: float, round: int) -> Rule:
        models = tuple(self.network(whole, s) for s in sorted(sizes) if s <= size)
        return replace(self.rule(), inner=OrderedDropout(models))
