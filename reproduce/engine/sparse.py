"""Local runs that read a few rows of a large embedding: only those rows are trained.

A client's batches are known before its run, and with them the rows that they name. All other rows have zero gradient
in every step, and with them zero momentum and no distance to the start: they end where they began. So the run is that
of a smaller model, with an embedding of the named rows, computed by the ordinary local loop on renamed tokens.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.client_split import DeviceData
from reproduce.engine.layout import Layout
from reproduce.engine.local import Rows, autograd_run
from reproduce.engine.machine import sent
from reproduce.engine.stacking import Chunk, Slot


def sparse_run(chunk: Chunk, device_data: DeviceData, precision: str = "float32") -> Rows:
    """Train the only client of a chunk on the rows that its batches name."""
    (slot,) = chunk.slots
    plan = chunk.plans.get(slot)
    where = sent(np.unique(plan[plan >= 0]), device_data.device)
    ids = torch.unique(
        torch.nn.functional.pad(device_data.train_x[where].flatten(), (1, 0))
    )  # 0, the padding, is the first
    part = Part(chunk.layout, ids)
    models = {name: getattr(slot.request, name) for name in ("start", "teacher", "previous")}
    cut: dict[str, Any] = {name: part.cut(slot.row_of(x)) for name, x in models.items() if x is not None}
    small = replace(slot.request, **cut)
    part_data: Any = SimpleNamespace(
        **{name: getattr(device_data, name) for name in ("problem", "device", "dtype", "train_y")}
    )
    part_data.train_x = Renamed(device_data.train_x, part.names)
    rows = autograd_run(Chunk([Slot(slot.split, small, slot.row)], part.layout, chunk.plans), part_data, precision)
    return rows.each(lambda r: part.grown(r[0])[None])


class Part:
    """The model with the rows `ids` (ascending) of its embedding alone, and the way there and back."""

    def __init__(self, whole: Layout, ids: Tensor) -> None:
        self.whole, self.ids = whole, ids
        model: Any = whole.model
        self.embedding = model.embedding
        self.layout = Layout(model.with_rows(len(ids)))
        rows = whole.shapes[whole.names.index(self.embedding)][0]
        self.names = ids.new_zeros(rows).index_copy_(0, ids, torch.arange(len(ids), device=ids.device))

    def cut(self, vector: Tensor) -> Tensor:
        """[P] of the whole model -> that of the part."""
        named = self.whole.named(vector)
        named[self.embedding] = named[self.embedding].index_select(0, self.ids)
        return torch.cat([value.flatten() for value in named.values()])

    def grown(self, vector: Tensor) -> Tensor:
        """An update of the part -> [P] of the whole model, zero in the other rows."""
        full = vector.new_zeros(self.whole.total)
        into = self.whole.named(full)
        for name, value in self.layout.named(vector).items():
            if name == self.embedding:
                into[name].index_copy_(0, self.ids, value)
            else:
                into[name].copy_(value)
        return full


class Renamed:
    """Token ids [n, L] under the names that they have in a part; looked up when they are read."""

    def __init__(self, tokens: Tensor, names: Tensor) -> None:
        self.tokens, self.names = tokens, names

    def __getitem__(self, where: Tensor) -> Tensor:
        return self.names[self.tokens[where]]
