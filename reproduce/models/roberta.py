"""RoBERTa (Liu et al., 2019) as a classifier of texts (fiarse, AG News).

It is `RobertaForSequenceClassification` of the library `transformers`, which torch.fx cannot trace: written over the
operators, it trains in stacks and narrower, which the library's module does not (tests/test_roberta.py compares them).

Parameters are named as in the library `transformers`, without its prefix `roberta.`. Those of attention keep their
heads as an axis of their own: queries, keys and values are [heads, places in a head, hidden], so that a narrower
network has the first places of every head.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from reproduce.models.count import Shapes
from reproduce.models.declared import ascending, floor
from reproduce.models.model import Initial, Model

SPREAD = 0.02
"""Standard deviation of initial weights."""


def _pair(layer: str, *weight: int, outputs: int = 1) -> Shapes:
    """Shapes of the weight and the bias of a layer; `outputs` axes of the weight are its outputs."""
    return {f"{layer}.weight": weight, f"{layer}.bias": weight[:outputs]}


@dataclass(frozen=True)
class RoBERTa(Model):
    """Encoder and classification head on token ids [L], `padding` at the end; the default has 124,648,708 parameters.

    vocabulary: token ids. positions: rows of their table, of which texts use those from padding + 1 on.
    hidden: features of a token. inner: units between the two linear layers behind each attention.
    init: "random" or "roberta-base", stored weights for all but the head.
    width: < 1 keeps the first ceil(width * n) of the n features, of the places in each head, and of the inner units.
    scaled: a narrower network divides by its width what embeddings and linear layers put out, but for the logits, as
        HeteroFL's code for transformers does.
    """

    vocabulary: int = 50_265
    positions: int = 514
    hidden: int = 768
    heads: int = 12
    layers: int = 12
    inner: int = 3072
    classes: int = 4
    dropout: float = 0.1
    padding: int = 1
    init: Literal["random", "roberta-base"] = "random"
    width: float = 1.0
    scaled: bool = True
    make = "reproduce.models.library:roberta"
    kind = "layers"
    batch_statistics = False
    trimmed = True
    buffers = frozenset()
    parts = ()

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"{self.hidden} features cannot be shared out among {self.heads} heads")
        if self.init not in ("random", "roberta-base"):
            raise ValueError(f"unknown init '{self.init}': use 'random' or 'roberta-base'")

    @property
    def tokens(self) -> int:
        return self.vocabulary

    @property
    def longest(self) -> int:
        return self.positions - self.padding - 1

    @property
    def separable(self) -> bool:
        return not self.dropout

    @property
    def pretrained(self) -> str:
        return "" if self.init == "random" else self.init

    def is_stored(self, name: str) -> bool:
        return bool(self.pretrained) and name.startswith(("embeddings", "encoder"))

    def stored_shape(self, name: str) -> tuple[int, ...]:
        """There the heads are not an axis of their own."""
        shape = self.shapes[name]
        if ".self." in name:
            return (math.prod(shape[:2]), *shape[2:])
        return (shape[0], math.prod(shape[1:])) if len(shape) > 1 else shape

    def narrowed(self, width: float, scale: bool = True) -> RoBERTa:
        return replace(self, width=width, scaled=scale)

    def with_exits(self, exits: tuple[int, ...]) -> EarlyExitsRoBERTa:
        return EarlyExitsRoBERTa(**{**vars(self), "exits": exits})

    def kept(self, units: int) -> int:
        """How many of so many features, places in a head, or inner units there are at this width."""
        return math.ceil(self.width * units - 1e-9)

    @property
    def shapes(self) -> Shapes:
        f = self.kept(self.hidden)
        tables = {"word": self.vocabulary, "position": self.positions, "token_type": 1}
        shapes: Shapes = {f"embeddings.{name}_embeddings.weight": (rows, f) for name, rows in tables.items()}
        shapes |= _pair("embeddings.LayerNorm", f)
        for i in range(self.layers):
            shapes |= self._layer_shapes(f"encoder.layer.{i}", f)
        return shapes | self._classifier_shapes("classifier")

    def _layer_shapes(self, layer: str, f: int) -> Shapes:
        head, inner = (self.heads, self.kept(self.hidden // self.heads)), self.kept(self.inner)
        shapes: Shapes = {}
        for part in ("query", "key", "value"):
            shapes |= _pair(f"{layer}.attention.self.{part}", *head, f, outputs=2)
        shapes |= _pair(f"{layer}.attention.output.dense", f, *head) | _pair(f"{layer}.attention.output.LayerNorm", f)
        shapes |= _pair(f"{layer}.intermediate.dense", inner, f) | _pair(f"{layer}.output.dense", f, inner)
        return shapes | _pair(f"{layer}.output.LayerNorm", f)

    def _classifier_shapes(self, name: str) -> Shapes:
        f = self.kept(self.hidden)
        return _pair(f"{name}.dense", f, f) | _pair(f"{name}.out_proj", self.classes, f)

    @property
    def maskable(self) -> tuple[str, ...]:
        """Without token type, normalisation and head, as in the published code of fiarse."""
        tables = ("embeddings.word", "embeddings.position")
        return tuple(
            n for n in self.shapes if n.startswith(tables) or (n.startswith("encoder") and "LayerNorm" not in n)
        )

    def initial(self, name: str) -> Initial:
        """Normal with deviation 0.02; biases 0, normalisation 1 and 0."""
        if name.endswith("bias"):
            return Initial("constant", 0.0)
        return Initial("constant", 1.0) if "LayerNorm" in name else Initial("normal", SPREAD)

    def activations(self, ops: Any, p: Mapping[str, Any], x: Any) -> Iterator[Any]:
        """The features [batch, L, F] that leave each encoder layer."""
        x = ops.trim(x, self.padding)  # [batch, L], L the tokens of the longest text
        z = ops.lookup(x, p, "embeddings.word_embeddings")  # [batch, L, F]
        z = ops.add(z, ops.lookup(ops.places(x, self.padding), p, "embeddings.position_embeddings"))
        z = self._scaled(ops, ops.shift(z, p, "embeddings.token_type_embeddings"))
        z = ops.token_dropout(ops.layer_norm(z, p, "embeddings.LayerNorm"), self.dropout)
        for i in range(self.layers):
            z = self._layer(ops, p, x, z, f"encoder.layer.{i}")
            yield z

    def _layer(self, ops: Any, p: Mapping[str, Any], x: Any, z: Any, layer: str) -> Any:
        # z <- LN(z + W_o softmax(Q K' / sqrt(d)) V); Q, K, V: [batch, L, heads * d]
        parts = [self._linear(ops, p, z, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        a = ops.attention(parts, x, self.padding, self.heads, self.dropout)
        a = self._linear(ops, p, a, f"{layer}.attention.output.dense")
        z = ops.layer_norm(ops.add(ops.token_dropout(a, self.dropout), z), p, f"{layer}.attention.output.LayerNorm")
        # z <- LN(z + W_2 gelu(W_1 z)); W_1 z: [batch, L, inner]
        a = ops.each(self._linear(ops, p, z, f"{layer}.intermediate.dense"), "gelu")
        a = ops.token_dropout(self._linear(ops, p, a, f"{layer}.output.dense"), self.dropout)
        return ops.layer_norm(ops.add(a, z), p, f"{layer}.output.LayerNorm")

    def _linear(self, ops: Any, p: Mapping[str, Any], x: Any, layer: str) -> Any:
        return self._scaled(ops, ops.linear(x, p, layer))

    def _scaled(self, ops: Any, x: Any) -> Any:
        return ops.scale(x, 1 / self.width) if self.scaled and self.width < 1 else x

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        last = x
        for z in self.activations(ops, p, x):
            last = z  # the others may be forgotten
        return ops.first(last)

    def classify(self, ops: Any, p: Mapping[str, Any], z: Any, name: str) -> Any:
        """Logits of features [batch, F] by the classifier of that name."""
        z = ops.each(self._linear(ops, p, ops.dropout(z, self.dropout), f"{name}.dense"), "tanh")
        return ops.linear(ops.dropout(z, self.dropout), p, f"{name}.out_proj")

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return self.classify(ops, p, z, "classifier")

    def forward(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        return self.head(ops, p, self.encode(ops, p, x))

    def both(self, ops: Any, p: Mapping[str, Any], x: Any) -> tuple[Any, Any]:
        z = self.encode(ops, p, x)
        return z, self.head(ops, p, z)


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
            body |= self._classifier_shapes(self.classifier(depth))
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
