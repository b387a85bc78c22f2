"""Classification of texts by the mean of their words' vectors (dynamic_init, AG News)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.problems.count import Shapes
from reproduce.problems.models import Initial, Model, linear_shapes


@dataclass(frozen=True)
class FastText(Model):
    """The mean embedding of a text's tokens, id 0 being padding, and a linear layer.

    The default is the network of arXiv 2410.05662 for AG News: 9,157,804 parameters. Row 0 of the embedding stays zero.
    """

    vocabulary: int = 30_522
    width: int = 300
    classes: int = 4

    @property
    def shapes(self) -> Shapes:
        return {"embedding.weight": (self.vocabulary, self.width)} | linear_shapes("fc", self.width, self.classes)

    @property
    def tokens(self) -> int:
        return self.vocabulary

    @property
    def embedding(self) -> str:
        return "embedding.weight"

    def with_rows(self, rows: int) -> FastText:
        """The same with so many rows of the embedding."""
        return replace(self, vocabulary=rows)

    def initial(self, name: str) -> Initial:
        return Initial("rows", 1.0) if name == self.embedding else super().initial(name)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        return ops.embed(x, p, "embedding")
