"""Residual networks with classifiers on the way: early exits (ScaleFL, Ilhan et al., CVPR 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.problems.count import Shapes
from reproduce.problems.models import ResNet, linear_shapes


@dataclass(frozen=True)
class EarlyExits(ResNet):
    """A residual network that ends with the last of its exits.

    exits: after how many basic blocks there is a classifier (global average pool, linear), ascending. One exit after
        all blocks is the plain network, parameter by parameter. ValueError if they do not ascend within the blocks.

    `width` < 1 keeps the first floor(width * c) channels, as ScaleFL's code does, one at least.
    """

    exits: tuple[int, ...] = (8,)

    def __post_init__(self) -> None:
        depth = sum(self.blocks)
        if not self.exits or list(self.exits) != sorted({e for e in self.exits if 1 <= e <= depth}):
            raise ValueError(f"exits ascend from 1 to the {depth} blocks of the network, not {self.exits}")

    def cut(self, exits: int, width: float) -> EarlyExits:
        """The network up to exit number `exits`, with `width` of the channels."""
        return replace(self, exits=self.exits[:exits], width=width)

    def kept_channels(self, channels: int) -> int:
        return max(1, math.floor(self.width * channels + 1e-9))

    def basic_blocks(self) -> list[tuple[str, int, int]]:
        return super().basic_blocks()[: self.exits[-1]]

    @property
    def shapes(self) -> Shapes:
        body = {name: shape for name, shape in super().shapes.items() if not name.startswith("fc.")}
        blocks = self.basic_blocks()
        for depth in self.exits:
            body |= linear_shapes(self.classifier(depth), self.kept_channels(blocks[depth - 1][1]), self.classes)
        return body

    def classifier(self, depth: int) -> str:
        """The name of the classifier after so many blocks."""
        return "fc" if depth == sum(self.blocks) else f"exit{depth}"

    def exit_logits(self, ops: Any, p: Mapping[str, Any], x: Any) -> list[Any]:
        """Logits of all exits, the first exit's first."""
        found = []
        for depth, image in enumerate(self.activations(ops, p, x), start=1):
            if depth in self.exits:
                found.append(ops.linear(ops.global_pool(image), p, self.classifier(depth)))
        return found

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(z, p, self.classifier(self.exits[-1]))
