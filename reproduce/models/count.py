"""The operator set that only counts, and the shapes that it counts by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Shapes = dict[str, tuple[int, ...]]


class Count:
    """The operator set that only counts: activations are shapes (channels, height, width) or (features,).

    After a forward pass `layers` lists (layer, kind, output shape, parameters), and `macs` are the multiply-accumulates
    of one sample.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.layers: list[tuple[str, str, tuple[int, ...], int]] = []
        self.macs = 0

    @property
    def forward_flops(self) -> int:
        """Floating-point operations of one sample's forward pass; a training step costs three times as many."""
        return 2 * self.macs

    def _layer(self, name: str, kind: str, out: Any, macs: int = 0) -> Any:
        """Notes a layer with its output, which it gives back."""
        parameters = sum(math.prod(self.shapes.get(f"{name}.{tensor}", (0,))) for tensor in ("weight", "bias"))
        self.layers.append((name, kind, out, parameters))
        self.macs += macs
        return out

    def conv(self, x: Any, p: Mapping[str, Any], layer: str, stride: int = 1, padding: int = 0) -> Any:
        outputs, inputs, kernel, _ = self.shapes[f"{layer}.weight"]
        if len(x) != 3 or x[0] != inputs:
            raise ValueError(f"{layer} takes images of {inputs} channels but gets {x}")
        side = _sides(layer, x, kernel, stride, padding)
        return self._layer(layer, "Conv2d", (outputs, *side), math.prod(side) * outputs * inputs * kernel**2)

    def linear(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        outputs, inputs = self.shapes[f"{layer}.weight"]
        if x[-1] != inputs or len(x) == 3:
            raise ValueError(f"{layer} takes {inputs} features but gets {x}")
        out = (*x[:-1], outputs)
        return self._layer(layer, "Linear", out, math.prod(out) * inputs)

    def norm(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        if len(x) != 3 or (x[0],) != self.shapes[f"{layer}.weight"]:
            raise ValueError(f"{layer} takes images of {self.shapes[f'{layer}.weight'][0]} channels but gets {x}")
        return self._layer(layer, "BatchNorm2d", x)

    def layer_norm(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        return self._layer(layer, "LayerNorm", x)

    def group_norm(self, x: Any, p: Mapping[str, Any], layer: str, groups: int, eps: float) -> Any:
        return self._layer(layer, "GroupNorm", x)

    def embed(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        (tokens,), (_, width) = x, self.shapes[f"{layer}.weight"]
        return self._layer(layer, "EmbeddingBag", (width,), tokens * width)

    def each(self, x: Any, function: str) -> Any:
        return self._layer(function, function, x)

    def mean_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        return self._layer("pool", "AvgPool2d", (x[0], *_sides("pooling", x, size, stride, padding)))

    def pool(self, x: Any, size: int = 2, stride: int = 2, padding: int = 0) -> Any:
        return self._layer("pool", "MaxPool2d", (x[0], *_sides("pooling", x, size, stride, padding)))

    def relu(self, x: Any) -> Any:
        return self._layer("relu", "ReLU", x)

    relu_apart = relu

    def dropout(self, x: Any, p: float) -> Any:
        return self._layer("dropout", "Dropout", x)

    def channel_dropout(self, x: Any, p: float) -> Any:
        return self._layer("dropout", "Dropout2d", x)

    def flatten(self, x: Any) -> Any:
        return (math.prod(x),)

    def global_pool(self, x: Any) -> Any:
        return (x[0],)

    def scale(self, x: Any, factor: float) -> Any:
        return x

    def add(self, x: Any, y: Any) -> Any:
        if x != y:
            raise ValueError(f"images or features of the shapes {x} and {y} are added")
        return x


def _sides(layer: str, x: tuple[int, ...], kernel: int, stride: int, padding: int) -> tuple[int, ...]:
    """Height and width behind a window that moves over images x; ValueError if it does not fit in."""
    if min(x[1:]) + 2 * padding < kernel:
        raise ValueError(f"{layer} moves a window of {kernel} x {kernel} over images of {x[1]} x {x[2]}")
    return tuple((side + 2 * padding - kernel) // stride + 1 for side in x[1:])
