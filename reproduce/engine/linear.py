"""Softmax regression without automatic differentiation.

Slots that walk through the same batches (the same client of the same seed under other algorithms or sweep points)
are siblings: the batch is gathered once, and one matrix product serves all of them.

z = W x' + b;  d = (softmax(z) - onehot(y)) / B;  grad W = d x, grad b = sum d

Models lie above each other, W [S*classes, features], samples beside each other, z and d [S*classes, B]: both products
then read their operands as they lie in memory, which for so few rows is up to three times faster than the transpose.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.slots import Chunk
from reproduce.engine.task import Arena


def sibling_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a chunk whose slots all share one batch plan."""
    layout, rule = chunk.layout, chunk.rule
    start = chunk.stack("start")
    assert start is not None
    y = layout.blocks(start)
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    s, classes, features = y[0].shape
    weight, bias = y[0].view(s * classes, features), y[1].view(s * classes, 1)
    plan = chunk.plans.get(chunk.slots[0])
    sizes = (plan >= 0).sum(1).tolist()
    index = torch.from_numpy(plan[plan >= 0]).to(arena.device)
    # torch.index_select: gathering by x[index] takes five times as long.
    steps = [arena.flat_x.index_select(0, where) for where in index.split(sizes)]
    targets = [t.t().contiguous() for t in arena.onehot.index_select(0, index).split(sizes)]
    teacher = _teacher(chunk) if rule.distill else None
    for k, (x, target) in enumerate(zip(steps, targets, strict=True)):
        d = torch.addmm(bias, weight, x.t()).view(s, classes, -1).softmax(1)
        if teacher is not None:
            soft = torch.addmm(teacher[1][:, None], teacher[0], x.t()).softmax(0)
            d = d * (1 + rule.distill) - (target + rule.distill * soft)
        else:
            d -= target
        d = d.view(s * classes, -1).div_(sizes[k])
        grads = [torch.mm(d, x).view(s, classes, features), d.sum(1).view(s, classes)]
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(layout.rows(y) - start, mean, first)


def _teacher(chunk: Chunk) -> tuple[Tensor, Tensor]:
    """W [classes, features] and b [classes] of the model that all slots of the chunk learn from."""
    teacher = chunk.slots[0].request.teacher
    assert teacher is not None
    p = chunk.layout.named(teacher)
    return p["fc.weight"], p["fc.bias"]
