"""ScaleFL (Ilhan et al., CVPR 2023): submodels that are narrower and end earlier, and learn from their last exit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from reproduce.algorithms.narrower import Narrower
from reproduce.declare.values import Count, NonNegative, Positive, Share, Whole
from reproduce.engine.rule import Exits, Rule

if TYPE_CHECKING:
    from reproduce.models.model import Model


@dataclass(frozen=True)
class ScaleFL(Narrower):
    """A client of capacity gamma trains the network up to one of its exits, with a share of the channels, by the loss
    of all exits that it has; what it predicts are the logits of its last.

    levels: (size, exits kept, share of the channels), for every size that clients have. Another size that is evaluated
        has the exit of the next larger level, of width w, and the width w sqrt(size / that level's size).
    distill, temperature: of `Exits`; the distillation begins in round `from_round`, counted from 0.
    """

    trains_exits: ClassVar[bool] = True

    levels: tuple[tuple[Share, Count, Share], ...] = ()
    distill: NonNegative = 0.05
    temperature: Positive = 3.0
    from_round: Whole = 0

    def check(self, problem: Any, system: Any) -> None:
        if problem.model is not None and not problem.model.exits:
            raise ValueError(f"ScaleFL needs a network with exits, and a {type(problem.model).__name__} has none")
        super().check(problem, system)
        unknown = set(system.capacity.sizes) - {size for size, _, _ in self.levels}
        if unknown:
            raise ValueError(f"ScaleFL has no level for clients of size {', '.join(map(str, sorted(unknown)))}")

    def network(self, whole: Model, size: float) -> Model:
        fitting = [level for level in self.levels if level[0] >= size]
        if not fitting:
            raise ValueError(f"ScaleFL has no level of size {size} or more")
        known, exits, width = min(fitting)
        return whole.cut(exits, width * math.sqrt(size / known))

    def inner(self, whole: Model, sizes: Sequence[float], size: float, round: int) -> Rule:
        distill = self.distill if round >= self.from_round else 0.0
        return replace(self.rule(), inner=Exits(distill, self.temperature))
