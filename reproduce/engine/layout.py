"""The flat parameter vector and its named tensors.

Outside the local loop a model is a row of P numbers and C models are [C, P]; inside the loop a stack lies as one
contiguous block [C, *shape] per parameter, because batched matrix products copy operands that are not contiguous.
"""

from __future__ import annotations

import itertools
import math
from functools import cache, cached_property

import torch
from torch import Tensor

from reproduce.models.model import Model
from reproduce.streams import rng


def _laid_out(block: Tensor) -> Tensor:
    if block.dim() != 5:
        return block.clone(memory_format=torch.contiguous_format)
    return block.permute(0, 1, 3, 4, 2).clone(memory_format=torch.contiguous_format).permute(0, 1, 4, 2, 3)


class Layout:
    """Names, shapes and offsets of a model's parameters in its flat vector of length `total`."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names = tuple(model.shapes)
        self.shapes = tuple(model.shapes.values())
        self.sizes = tuple(math.prod(s) for s in self.shapes)
        self.total = sum(self.sizes)
        self.buffers = tuple(n for n in self.names if n in model.buffers)
        ends = zip(self.names, self.sizes, itertools.accumulate(self.sizes), strict=True)
        self.slices = {name: slice(end - size, end) for name, size, end in ends}
        """The place of each tensor in the flat vector."""
        self.offsets = {name: part.start for name, part in self.slices.items()}

    @cached_property
    def statistics(self) -> Tensor:
        """The places [B] of the buffers in the flat vector."""
        places = [torch.arange(self.slices[n].start, self.slices[n].stop) for n in self.buffers]
        return torch.cat([torch.empty(0, dtype=torch.int64), *places])

    def blocks(self, rows: Tensor) -> list[Tensor]:
        """[C, P] -> one tensor [C, *shape] per parameter, always a copy.

        Filters [C, out, in, k, k] lie as convolutions on channels-last images want them: else each would copy them.
        """
        parts = rows.split(self.sizes, dim=1)
        return [_laid_out(part.reshape(-1, *s)) for part, s in zip(parts, self.shapes, strict=True)]

    def rows(self, blocks: list[Tensor]) -> Tensor:
        """The inverse of `blocks`: [C, P]."""
        return torch.cat([b.reshape(b.shape[0], -1) for b in blocks], dim=1)

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """[P] -> named views of one model."""
        parts = flat.split(self.sizes)
        return {n: part.view(s) for n, part, s in zip(self.names, parts, self.shapes, strict=True)}

    def initial(self, *key: int | str) -> Tensor:
        """The random initial vector [P] (float32), drawn from the stream of `key`, parameter by parameter.

        A user's own module initialises itself, by a stream of `key`.
        """
        if self.model.foreign:
            from reproduce.modules.translate import tensors

            values = tensors(self.model.module(*key))
            return torch.cat([values[name].detach().flatten().float() for name in self.names])
        generator = torch.Generator().manual_seed(int(rng("init", *key).integers(2**62)))
        parts = []
        for name, size in zip(self.names, self.sizes, strict=True):
            how = self.model.initial(name)
            if how.kind == "constant":
                parts.append(torch.full((size,), how.scale))
            elif how.kind in ("normal", "rows"):
                parts.append(torch.randn(size, generator=generator) * how.scale)
                if how.kind == "rows":
                    parts[-1][: self.model.shapes[name][-1]] = 0
            else:
                parts.append((torch.rand(size, generator=generator) * 2 - 1) * how.scale)
        return torch.cat(parts)


class Flat:
    """The layout of a quadratic: its vector is its only parameter tensor."""

    def blocks(self, rows: Tensor) -> list[Tensor]:
        return [rows.clone()]

    def rows(self, blocks: list[Tensor]) -> Tensor:
        return blocks[0]


@cache
def layout_of(model: Model) -> Layout:
    return Layout(model)
