"""The operator set that only counts, and the shapes that it counts by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Shapes = dict[str, tuple[int, ...]]


class Count:
    """The operator set that only counts: activations are shapes (channels, height, width), (features,), or (tokens,
    features).

    After a forward pass `layers` lists (layer, kind, output shape, parameters), `macs` are the multiply-accumulates of
    one sample, and `chain` says whether it is a chain of layers such as can be compiled (`engine.kernels`).
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.layers: list[tuple[str, str, tuple[int, ...], int]] = []
        self.macs = 0
        self.chain = True

    @property
    def forward_flops(self) -> int:
        """Floating-point operations of one sample's forward pass; a training step costs three times as many."""
        return 2 * self.macs

    def _parameters(self, layer: str) -> int:
        return sum(math.prod(self.shapes.get(f"{layer}.{kind}", (0,))) for kind in ("weight", "bias"))

    def conv(self, x: Any, p: Mapping[str, Any], layer: str, stride: int = 1, padding: int = 0) -> Any:
        outputs, inputs, kernel, _ = self.shapes[f"{layer}.weight"]
        if len(x) != 3 or x[0] != inputs:
            raise ValueError(f"{layer} takes images of {inputs} channels but gets {x}")
        side = _sides(layer, x, kernel, stride, padding)
        self.chain = self.chain and stride == 1 and f"{layer}.bias" in self.shapes
        self.macs += math.prod(side) * outputs * inputs * kernel * kernel
        self.layers.append((layer, "Conv2d", (outputs, *side), self._parameters(layer)))
        return (outputs, *side)

    def linear(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        outputs = math.prod(self.shapes.get(f"{layer}.bias", self.shapes[f"{layer}.weight"][:1]))
        inputs = math.prod(self.shapes[f"{layer}.weight"]) // outputs
        if x[-1] != inputs or len(x) == 3:
            raise ValueError(f"{layer} takes {inputs} features but gets {x}")
        self.chain = self.chain and f"{layer}.bias" in self.shapes
        out = (*x[:-1], outputs)
        self.macs += math.prod(out) * inputs
        self.layers.append((layer, "Linear", out, self._parameters(layer)))
        return out

    def norm(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        if len(x) != 3 or (x[0],) != self.shapes[f"{layer}.weight"]:
            raise ValueError(f"{layer} takes images of {self.shapes[f'{layer}.weight'][0]} channels but gets {x}")
        self.layers.append((layer, "BatchNorm2d", x, self._parameters(layer)))
        return x

    def layer_norm(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        self.layers.append((layer, "LayerNorm", x, self._parameters(layer)))
        return x

    def embed(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        (tokens,), (_, width) = x, self.shapes[f"{layer}.weight"]
        self.macs += tokens * width
        self.layers.append((layer, "EmbeddingBag", (width,), self._parameters(layer)))
        return (width,)

    def trim(self, x: Any, padding: int) -> Any:
        self.chain = False
        return x

    def places(self, x: Any, padding: int) -> Any:
        return x

    def lookup(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        out = (*x, self.shapes[f"{layer}.weight"][1])
        self.layers.append((layer, "Embedding", out, self._parameters(layer)))
        return out

    def shift(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        self.layers.append((layer, "Embedding", x, self._parameters(layer)))
        return x

    def attention(self, parts: Any, x: Any, padding: int, heads: int, dropout: float) -> Any:
        tokens, width = parts[0]
        self.macs += 2 * tokens * tokens * width
        self.layers.append(("attention", "Attention", (heads, tokens, tokens), 0))
        return (tokens, width)

    def first(self, x: Any) -> Any:
        return x[1:]

    def each(self, x: Any, function: str) -> Any:
        self.chain = False
        self.layers.append((function, function, x, 0))
        return x

    def group_norm(self, x: Any, p: Mapping[str, Any], layer: str, groups: int, eps: float) -> Any:
        self.chain = False
        self.layers.append((layer, "GroupNorm", x, self._parameters(layer)))
        return x

    def mean_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        self.chain = False
        return self._pooled("AvgPool2d", x, size, stride, padding)

    def pool(self, x: Any, size: int = 2, stride: int = 2, padding: int = 0) -> Any:
        return self._pooled("MaxPool2d", x, size, stride, padding)

    def _pooled(self, kind: str, x: Any, size: int, stride: int, padding: int) -> Any:
        out = (x[0], *_sides("pooling", x, size, stride, padding))
        self.layers.append(("pool", kind, out, 0))
        return out

    def relu(self, x: Any) -> Any:
        self.layers.append(("relu", "ReLU", x, 0))
        return x

    def relu_apart(self, x: Any) -> Any:
        self.chain = False
        return self.relu(x)

    def dropout(self, x: Any, p: float) -> Any:
        self.layers.append(("dropout", "Dropout", x, 0))
        return x

    token_dropout = dropout

    def channel_dropout(self, x: Any, p: float) -> Any:
        self.layers.append(("dropout", "Dropout2d", x, 0))
        return x

    def flatten(self, x: Any, features: int = 0) -> Any:
        if features not in (0, math.prod(x)):
            raise ValueError(f"images of shape {x} are made {features} features and have {math.prod(x)}")
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
