"""Networks with classifiers on the way: early exits (ScaleFL, Ilhan et al., CVPR 2023)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.models.count import Shapes
from reproduce.models.declared import EarlyExits, ResNet, ascending, floor
from reproduce.models.model import Model
from reproduce.models.roberta import RoBERTa


@dataclass(frozen=True)
class EarlyExitsRoBERTa(RoBERTa):
    """RoBERTa that ends with the last of its exits.

    exits: after how many encoder layers there is a classifier like that of the end, ascending. One exit after all
        layers is the plain network. ValueError if they do not ascend within the layers.

    `width` < 1 keeps the first floor(width * n) of n units, one at least.
    """

    exits: tuple[int, ...] = (12,)

    def __post_init__(self) -> None:
        super().__post_init__()
        ascending(self.exits, self.layers, "layers")

    def cut(self, exits: int, width: float) -> EarlyExitsRoBERTa:
        return replace(self, exits=self.exits[:exits], width=width)

    def kept(self, units: int) -> int:
        return floor(self.width, units)

    @property
    def shapes(self) -> Shapes:
        later = tuple(f"encoder.layer.{i}." for i in range(self.exits[-1], self.layers))
        body = {n: s for n, s in super().shapes.items() if not n.startswith((*later, "classifier."))}
        for depth in self.exits:
            body |= self.classifier_shapes(self.classifier(depth))
        return body

    def classifier(self, depth: int) -> str:
        """The name of the classifier after so many layers."""
        return "classifier" if depth == self.layers else f"exit{depth}"

    def activations(self, ops: Any, p: Mapping[str, Any], x: Any) -> Iterator[Any]:
        return itertools.islice(super().activations(ops, p, x), self.exits[-1])

    def exit_logits(self, ops: Any, p: Mapping[str, Any], x: Any) -> list[Any]:
        """Logits of all exits, the first exit's first."""
        return [
            self.classify(ops, p, ops.first(z), self.classifier(depth))
            for depth, z in enumerate(self.activations(ops, p, x), start=1)
            if depth in self.exits
        ]

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return self.classify(ops, p, z, self.classifier(self.exits[-1]))


KINDS = {ResNet: EarlyExits, RoBERTa: EarlyExitsRoBERTa}


def with_exits(model: Model, exits: tuple[int, ...]) -> Model:
    """The same network with exits; ValueError if there is no such form of it."""
    if type(model) not in KINDS:
        raise ValueError(f"there is no form of a {type(model).__name__} with exits")
    return KINDS[type(model)](**vars(model), exits=exits)
