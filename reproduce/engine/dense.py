"""Stacks of fully connected ReLU networks without automatic differentiation.

A batch of a small network is little arithmetic and much bookkeeping: written out by hand the step is a dozen batched
matrix products, and for plain SGD the last ones add the update straight into the weights.

    h = relu(x W1' + b1);  z = h W2' + b2;  d2 = (softmax(z) - onehot) * weight;  d1 = (d2 W2) * (h > 0)
"""

from __future__ import annotations

import torch
from torch import Tensor

from reproduce.engine.local import Blocks, Data, Gradients, Rows, Stepper
from reproduce.engine.stacking import Chunk
from reproduce.engine.task import Arena


def dense_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a stack of A networks with one hidden layer of H units; fc1.weight is a block [A, H, F], and so on."""
    layout = chunk.layout
    start = chunk.stack("start")
    assert start is not None
    y = layout.blocks(start)
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    plain = stepper.plain and not gradients.wanted
    data = Data(chunk, arena, plain=False)
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)
        x, labels, weight = data.step(k, a)
        x = x.flatten(2)
        now = [b[:a] for b in y]
        h, d1, d2 = _deltas(now, x, labels, weight)
        if plain:
            w1, b1, w2, b2 = now
            rate = -stepper.rate_at(k)
            w2.baddbmm_(d2.transpose(1, 2), h, alpha=rate)
            b2.add_(d2.sum(1), alpha=rate)
            w1.baddbmm_(d1.transpose(1, 2), x, alpha=rate)
            b1.add_(d1.sum(1), alpha=rate)
            continue
        grads = _products(x, h, d1, d2)
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(layout.rows(y) - start, mean, first)


def dense_gradient(y: Blocks, x: Tensor, labels: Tensor, weight: Tensor | None) -> Blocks:
    """Gradients of a stack y = (W1, b1, W2, b2) on x [A, B, F] and labels [A, B]; weight [A, B] replaces 1/B."""
    h, d1, d2 = _deltas(y, x, labels, weight)
    return _products(x, h, d1, d2)


def _deltas(y: Blocks, x: Tensor, labels: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """h [A, B, H] and the gradients with respect to both layers' outputs, d1 [A, B, H] and d2 [A, B, classes]."""
    w1, b1, w2, b2 = y
    h = torch.baddbmm(b1.unsqueeze(1), x, w1.transpose(1, 2)).relu_()
    d2 = torch.baddbmm(b2.unsqueeze(1), h, w2.transpose(1, 2)).softmax(2)
    d2.scatter_add_(2, labels.unsqueeze(2), d2.new_full((), -1).expand(*labels.shape, 1))
    if weight is None:
        d2 /= labels.shape[1]
    else:
        d2 *= weight.unsqueeze(2)
    d1 = torch.bmm(d2, w2)
    d1 *= h > 0
    return h, d1, d2


def _products(x: Tensor, h: Tensor, d1: Tensor, d2: Tensor) -> Blocks:
    return [torch.bmm(d1.transpose(1, 2), x), d1.sum(1), torch.bmm(d2.transpose(1, 2), h), d2.sum(1)]
