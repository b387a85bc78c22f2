"""Mean loss gradients of clients at a given model, outside the local loop (probing, full-gradient initialisation)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.ops import One
from reproduce.engine.requests import Gradient
from reproduce.engine.task import ClassificationTask, QuadraticTask, Task
from reproduce.streams import rng


def gradients(task: Task, request: Gradient) -> Tensor:
    """[C, P]: evaluation-mode gradients on the clients' whole data, or on one random batch of `request.batch`."""
    if isinstance(task, QuadraticTask):
        clients = torch.as_tensor(np.asarray(request.clients))
        return task.gradient(clients, request.x.expand(len(clients), -1))
    return torch.stack([_client(task, int(c), request) for c in request.clients])


def _client(task: ClassificationTask, client: int, request: Gradient) -> Tensor:
    arena = task.arena
    index = task.indices[client]
    if request.batch and request.batch < len(index):
        stream = rng("probe", task.seed, request.round, client)
        index = stream.choice(index, size=request.batch, replace=False)
    total = torch.zeros_like(request.x)
    with torch.enable_grad():
        for part in np.array_split(index, -(-len(index) // 2000)):
            where = torch.from_numpy(np.ascontiguousarray(part)).to(arena.device)
            leaf = request.x.detach().clone().requires_grad_()
            ops = One()
            logits = task.problem.model.forward(ops, arena.layout.named(leaf), ops.images(arena.train_x[where]))
            loss = torch.nn.functional.cross_entropy(logits, arena.train_y[where], reduction="sum")
            total += torch.autograd.grad(loss, leaf)[0]
    return total / len(index)
