"""Softmax regression without automatic differentiation.

Slots that walk through the same batches (the same client of the same seed under other algorithms or sweep points)
are siblings: the batch is gathered once, and one matrix product serves all of them.

    z = x W' + b;  d = (softmax(z) - onehot(y)) * weight;  grad W = d' x, grad b = sum d
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.slots import Chunk
from reproduce.engine.task import Arena


def sibling_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a chunk whose slots all share one batch plan; W as [S*classes, features]."""
    layout, rule = chunk.layout, chunk.rule
    start = chunk.stack("start")
    assert start is not None
    y = layout.blocks(start)
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    weight, bias = y
    s, classes, features = weight.shape
    x_all = arena.train_x.flatten(1)
    onehot_all = torch.nn.functional.one_hot(arena.train_y, classes).to(arena.dtype)
    index = chunk.plans.get(chunk.slots[0])
    targets = _teacher_probabilities(chunk, arena, x_all, index) if rule.distill else None
    for k in range(len(index)):
        where = torch.from_numpy(index[k][index[k] >= 0]).to(arena.device)
        x = x_all[where]
        z = torch.addmm(bias.view(1, -1), x, weight.view(s * classes, features).t())
        p = z.view(-1, s, classes).softmax(2)
        d = p - onehot_all[where][:, None, :]
        if targets is not None:
            d += rule.distill * (p - targets[k][:, None, :])
        d = d.view(-1, s * classes).div_(len(where))
        grads = [(d.t() @ x).view(s, classes, features), d.sum(0).view(s, classes)]
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(layout.rows(y) - start, mean, first)


def _teacher_probabilities(chunk: Chunk, arena: Arena, x: Tensor, index: np.ndarray) -> list[Tensor]:
    """softmax(teacher(x)) for every step's batch; siblings in one chunk share their teacher."""
    teacher = chunk.slots[0].request.teacher
    assert teacher is not None
    p = chunk.layout.named(teacher)
    return [
        torch.addmm(p["fc.bias"], x[torch.from_numpy(rows[rows >= 0]).to(arena.device)], p["fc.weight"].t()).softmax(1)
        for rows in index
    ]
