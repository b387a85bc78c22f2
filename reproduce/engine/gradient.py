"""Mean loss gradients of clients at a given model, outside the local loop (probing, full-gradient initialisation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.ops import One
from reproduce.engine.requests import Gradient
from reproduce.streams import rng

if TYPE_CHECKING:
    from reproduce.engine.task import ClassificationTask


def mean_gradient(task: ClassificationTask, client: int, request: Gradient) -> Tensor:
    """[P]: evaluation-mode gradient on the client's whole data, or on one random batch of `request.batch`."""
    arena, model = task.arena, request.model or task.problem.model
    layout = arena.layout_of(model)
    index = task.indices[client]
    if request.batch and request.batch < len(index):
        stream = rng("probe", task.seed, request.round, client)
        index = stream.choice(index, size=request.batch, replace=False)
    total = torch.zeros_like(request.x)
    if not len(index):
        return total  # of a client without samples
    with torch.enable_grad():
        for part in np.array_split(index, -(-len(index) // 2000)):
            where = torch.from_numpy(np.ascontiguousarray(part)).to(arena.device)
            leaf = request.x.detach().clone().requires_grad_()
            ops = One()
            logits = model.forward(ops, layout.named(leaf), ops.images(arena.train_x[where]))
            loss = torch.nn.functional.cross_entropy(logits, arena.train_y[where], reduction="sum")
            total += torch.autograd.grad(loss, leaf)[0]
    return total / len(index)
