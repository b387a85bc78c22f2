"""Convolutional networks with batch normalisation (dynamic_init, SVHN)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproduce.problems.models import Model, Shapes, conv_shapes, linear_shapes, norm_shapes


@dataclass(frozen=True)
class NormConvNet(Model):
    """Blocks of 3x3 convolutions, each with normalisation and ReLU, and 2x2 max-pooling; then one hidden layer with
    dropout. The default is the network of arXiv 2410.05662 for SVHN (667,178 parameters).

    blocks: widths of the convolutions, one tuple per block. The normalisation is static (the statistics of the batch
    at hand, also in evaluation); the paper's code keeps running statistics and averages them like parameters.
    """

    channels: int = 3
    size: int = 32
    blocks: tuple[tuple[int, ...], ...] = ((32, 32), (64, 64), (128,))
    hidden: int = 256
    classes: int = 10
    dropout: float = 0.4

    @property
    def batch_statistics(self) -> bool:
        return True

    @property
    def layers(self) -> list[tuple[str, int, bool]]:
        """(number, width, ends a block) of every convolution, in order."""
        return [
            (f"{b}_{i}", width, i == len(block))
            for b, block in enumerate(self.blocks, start=1)
            for i, width in enumerate(block, start=1)
        ]

    @property
    def shapes(self) -> Shapes:
        shapes: Shapes = {}
        inputs = self.channels
        for layer, width, _ in self.layers:
            shapes |= conv_shapes(f"conv{layer}", inputs, width, 3) | norm_shapes(f"bn{layer}", width)
            inputs = width
        side = self.size // 2 ** len(self.blocks)
        shapes |= linear_shapes("fc1", inputs * side * side, self.hidden)
        return shapes | linear_shapes("fc2", self.hidden, self.classes)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        for layer, _, last in self.layers:
            x = ops.relu(ops.norm(ops.conv(x, p, f"conv{layer}", padding=1), p, f"bn{layer}"))
            if last:
                x = ops.pool(x)
        return ops.relu(ops.linear(ops.flatten(x), p, "fc1"))

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(ops.dropout(z, self.dropout), p, "fc2")
