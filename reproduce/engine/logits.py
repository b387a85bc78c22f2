"""Logits [M, b, classes] of models x [M, P] on the samples `where` [b] of `features`, a function for each strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.kernels import compiled
from reproduce.engine.layout import layout_of
from reproduce.engine.machine import sent
from reproduce.models.model import Model
from reproduce.modules.eager import evaluated
from reproduce.modules.ops import One, Stacked


def chains(model: Model, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
    """Chains of layers in compiled code, one model after another."""
    code = compiled.program(model, tuple(features.shape[1:]), features.dtype)
    return torch.stack([code.logits(row.contiguous(), features, where) for row in x])


def linear(model: Model, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
    """Softmax regression, z = x W' + b: one matrix product for all models."""
    weight, bias = x.split(layout_of(model).sizes, dim=1)
    flat = taken(features, where).flatten(1)  # [b, features]
    z = torch.addmm(bias.reshape(-1), flat, weight.reshape(-1, flat.shape[1]).t())  # [b, M * classes]
    return z.view(len(flat), len(x), -1).transpose(0, 1)


def network(model: Model, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
    """Any network: the operators of one model, or those of a stack."""
    layout, batch = layout_of(model), taken(features, where)
    if len(x) == 1:
        ops = One()
        return model.forward(ops, layout.named(x[0]), ops.images(batch)).unsqueeze(0)
    stacked = Stacked(len(x))
    p = dict(zip(layout.names, layout.blocks(x), strict=True))
    return model.forward(stacked, p, stacked.images(batch.unsqueeze(0).expand(len(x), *batch.shape)))


def module(model: Any, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
    """A user's own module, batch after batch."""
    batches = taken(features, where).split(model.evaluation)
    return evaluated(model, layout_of(model).named(x[0]), batches)[1].unsqueeze(0)


def taken(values: Tensor, where: np.ndarray) -> Tensor:
    """The entries `where` of `values`."""
    if where[-1] - where[0] == len(where) - 1:  # consecutive samples need no copy
        return values[int(where[0]) : int(where[-1]) + 1]
    return values[sent(where, values.device)]
