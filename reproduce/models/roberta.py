"""RoBERTa (Liu et al., 2019) as a classifier of texts (fiarse, AG News): `transformers`' own, with early exits.

torch.fx cannot trace it, so that it runs eagerly, one client at a time. Parameters are named as in the library,
without its prefix `roberta.`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from reproduce.models.declared import floor
from reproduce.models.model import Initial, Model
from reproduce.modules.graph import Count, Shapes


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
    make = "reproduce.models.library:TextClassifier"
    fresh = ("classifier", "exit")
    untraced = "torch.fx cannot trace it"
    batch_statistics = False

    @property
    def tokens(self) -> int:  # type: ignore[override]
        return self.vocabulary

    @property
    def longest(self) -> int:  # type: ignore[override]
        return self.positions - self.padding - 1

    @property
    def separable(self) -> bool:
        return not self.dropout

    @property
    def pretrained(self) -> str:  # type: ignore[override]
        return "" if self.init == "random" else self.init

    def narrowed(self, width: float, scale: bool = True) -> RoBERTa:
        return replace(self, width=width, scaled=scale)

    def with_exits(self, exits: tuple[int, ...]) -> EarlyExitsRoBERTa:
        return EarlyExitsRoBERTa(**{**vars(self), "exits": exits})

    def kept(self, units: int) -> int:
        """The number of features, places in a head, or inner units that is left at this width."""
        return math.ceil(self.width * units - 1e-9)

    @property
    def classifiers(self) -> dict[int, str]:
        """Number of encoder layers -> name of the classifier that follows them."""
        return {self.layers: "classifier"}

    @property
    def axes(self) -> Shapes:
        """Queries, keys and values are [heads, places in a head, hidden]: of every head the first places are kept."""

        def split(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
            if ".self." in name:
                return (self.heads, shape[0] // self.heads, *shape[1:])
            if name.endswith("attention.output.dense.weight"):
                return (shape[0], self.heads, shape[1] // self.heads)
            return shape

        return {name: split(name, shape) for name, shape in self.shapes.items()}

    @property
    def maskable(self) -> tuple[str, ...]:
        """All parameters but token type, normalisation and head, as in the published code of fiarse."""
        tables = ("embeddings.word", "embeddings.position")
        return tuple(
            n for n in self.shapes if n.startswith(tables) or (n.startswith("encoder") and "LayerNorm" not in n)
        )

    def initial(self, name: str) -> Initial:
        """Normal with deviation 0.02; biases 0, normalisation 1 and 0."""
        if name.endswith("bias"):
            return Initial("constant", 0.0)
        return Initial("constant", 1.0) if "LayerNorm" in name else Initial("normal", 0.02)

    def cost(self, sample: tuple[int, ...]) -> Count:
        """The count of a forward pass on L tokens: the encoder's matrices for each, the products Q K' and S V for each
        pair, and the heads once."""
        count, (tokens,) = Count(dict(self.shapes)), sample
        matrices = {n: math.prod(s) for n, s in self.shapes.items() if len(s) == 2 and not n.startswith("embeddings")}
        count.macs = sum(size * (tokens if n.startswith("encoder") else 1) for n, size in matrices.items())
        queries = [s[0] for n, s in self.shapes.items() if n.endswith("query.bias")]  # heads * places in each layer
        count.macs += sum(2 * tokens**2 * size for size in queries)
        count.outputs = (self.classes,)
        return count


@dataclass(frozen=True)
class EarlyExitsRoBERTa(RoBERTa):
    """RoBERTa that ends with the last of its exits.

    exits: after how many encoder layers there is a classifier like that of the end, ascending. One exit after all
        layers is the plain network.

    `width` < 1 keeps the first floor(width * n) of n units, one at least.
    """

    exits: tuple[int, ...] = (12,)

    def cut(self, exits: int, width: float) -> EarlyExitsRoBERTa:
        return replace(self, exits=self.exits[:exits], width=width)

    def kept(self, units: int) -> int:
        return floor(self.width, units)

    @property
    def classifiers(self) -> dict[int, str]:
        return {depth: "classifier" if depth == self.layers else f"exit{depth}" for depth in self.exits}
