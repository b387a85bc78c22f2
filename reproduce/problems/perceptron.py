"""A fully connected network of any depth that can be narrowed: small enough to be drawn (fiarse, Fig. 1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.problems.count import Shapes
from reproduce.problems.models import Model, linear_shapes


@dataclass(frozen=True)
class Perceptron(Model):
    """Linear layers `fc1`, `fc2`, ... with ReLU between them; hidden: the units of all layers but the last."""

    features: int
    hidden: tuple[int, ...]
    classes: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the input to the output."""
        return (self.features, *self.hidden, self.classes)

    @property
    def shapes(self) -> Shapes:
        found: Shapes = {}
        for i, (inputs, outputs) in enumerate(itertools.pairwise(self.sizes), start=1):
            found |= linear_shapes(f"fc{i}", inputs, outputs)
        return found

    def narrowed(self, width: float, scale: bool = True) -> Perceptron:
        """Hidden layers with the first ceil(width * n) of n units; there are no convolutions to scale."""
        return replace(self, hidden=tuple(math.ceil(width * n - 1e-9) for n in self.hidden))

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        x = ops.flatten(x)
        for i in range(1, len(self.hidden) + 1):
            x = ops.relu(ops.linear(x, p, f"fc{i}"))
        return x

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(z, p, f"fc{len(self.hidden) + 1}")
