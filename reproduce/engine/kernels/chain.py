"""Chains of layers: what the compiled code can run, as the list that it executes. Importable without torch.

`Trace` is an operator set that writes a model's forward pass down as a list of layers and buffers. Nothing here knows a
particular network: whatever is a chain of stride-1 convolutions, pooling, linear layers, ReLU and dropout qualifies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from reproduce.models.model import Model

MASKS = 16
"""Most dropout layers of a network, as in convnet.c."""

CONV, POOL, LINEAR, RELU, SCALE_CHANNELS, SCALE = range(6)


class Unsupported(Exception):
    """The model is not a chain of the layers above."""


@dataclass
class Buffer:
    """An activation [channels, height, width] and its gradient, with their borders and places in the workspace."""

    channels: int
    height: int = 1
    width: int = 1
    border: int = 0
    gradient_border: int = 0

    @property
    def size(self) -> int:
        return self.channels * self.height * self.width

    def padded(self, border: int) -> int:
        return self.channels * (self.height + 2 * border) * (self.width + 2 * border)


@dataclass
class Layer:
    """One row of the list that convnet.c executes; weight, bias and masks are numbers of tensors."""

    kind: int
    source: int
    target: int
    kernel: int = 0
    padding: int = 0
    weight: int = 0
    bias: int = 0
    mask: int = 0
    packed: int = 0
    packed_back: int = 0


class Trace:
    """The operator set that records: activations are numbers of buffers."""

    def __init__(self, model: Model, sample: tuple[int, ...]) -> None:
        self.names = list(model.shapes)
        self.shapes = dict(model.shapes)
        self.buffers = [Buffer(*sample)]
        self.layers: list[Layer] = []
        self.masks: list[tuple[float, int]] = []
        last = model.forward(self, {name: name for name in self.names}, 0)
        if last != len(self.buffers) - 1 or not self.layers or self.layers[-1].kind != LINEAR:
            raise Unsupported("the last layer must be linear")
        if len(self.masks) > MASKS:
            raise Unsupported("more dropout layers than convnet.c has room for")

    def _add(self, kind: int, x: int, out: Buffer | None = None, **numbers: int) -> int:
        if x != len(self.buffers) - 1:
            raise Unsupported("not a chain of layers")
        if out is not None:
            self.buffers.append(out)
        elif x == 0:
            raise Unsupported("the first layer must have parameters")
        self.layers.append(Layer(kind, x, len(self.buffers) - 1, **numbers))
        return len(self.buffers) - 1

    def _tensors(self, layer: str) -> dict[str, int]:
        if f"{layer}.bias" not in self.shapes:
            raise Unsupported("layers without bias")
        return {"weight": self.names.index(f"{layer}.weight"), "bias": self.names.index(f"{layer}.bias")}

    def conv(self, x: int, p: Mapping[str, str], layer: str, stride: int = 1, padding: int = 0) -> int:
        outputs, _, k, _ = self.shapes[f"{layer}.weight"]
        source = self.buffers[x]
        if stride != 1 or padding >= k:
            raise Unsupported("strided or over-padded convolutions")
        source.border = padding
        height, width = source.height + 2 * padding - k + 1, source.width + 2 * padding - k + 1
        border = k - 1 - padding if x else 0
        packed = 2 * sum(s.kind == CONV for s in self.layers)
        target = Buffer(outputs, height, width, gradient_border=border)
        numbers = {"kernel": k, "padding": padding, "packed": packed, "packed_back": packed + 1}
        return self._add(CONV, x, target, **numbers, **self._tensors(layer))

    def pool(self, x: int, size: int = 2, stride: int = 2, padding: int = 0) -> int:
        if (size, stride, padding) != (2, 2, 0):
            raise Unsupported("pooling other than 2 x 2")
        source = self.buffers[x]
        return self._add(POOL, x, Buffer(source.channels, source.height // 2, source.width // 2))

    def linear(self, x: int, p: Mapping[str, str], layer: str) -> int:
        return self._add(LINEAR, x, Buffer(self.shapes[f"{layer}.weight"][0]), **self._tensors(layer))

    def flatten(self, x: int) -> int:
        if self.buffers[x].gradient_border:
            raise Unsupported("a linear layer right behind a convolution")
        return x

    def relu(self, x: int) -> int:
        return self._add(RELU, x)

    def dropout(self, x: int, p: float) -> int:
        self.masks.append((p, self.buffers[x].size))
        return self._add(SCALE, x, mask=len(self.masks) - 1)

    def channel_dropout(self, x: int, p: float) -> int:
        self.masks.append((p, self.buffers[x].channels))
        return self._add(SCALE_CHANNELS, x, mask=len(self.masks) - 1)


@cache
def chain(model: Model, sample: tuple[int, ...]) -> Trace | None:
    """The list for samples [channels, height, width] or [features]; None for a model that is no such chain."""
    if model.batch_statistics or model.graph.untraced:
        return None
    try:
        return Trace(model, sample)
    except (Unsupported, AttributeError):  # AttributeError: an operator that Trace does not have
        return None
