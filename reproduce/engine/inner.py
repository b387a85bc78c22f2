"""Training of parts of a model along with the model: its exits, or narrower networks in it (`Rule.inner`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.rule import Exits, OrderedDropout
from reproduce.engine.stacking import Chunk
from reproduce.models.model import Model
from reproduce.models.ops import One, Params, Stacked
from reproduce.streams import rng

Batch = tuple[Tensor, Tensor, Tensor | None]
"""Samples, labels, and weights where batches of different size meet, as in `local`."""


def drawn(key: tuple[int, int, int], models: int, steps: int) -> np.ndarray:
    """Which of the narrower models a client (seed, round, client) trains in each of its steps, uniformly."""
    return rng("width", *key).integers(models, size=steps)


class Inner:
    """The loss of a chunk whose rule has an `inner` part, summed over the models of the stack.

    arithmetic: the context in which it is computed (`local.reduced`).
    """

    def __init__(self, chunk: Chunk, arithmetic: Callable[[], AbstractContextManager[object]]) -> None:
        self.arithmetic = arithmetic
        self.model: Model = chunk.layout.model
        self.dtype = chunk.slots[0].split.dtype
        self.names, self.what = chunk.layout.names, chunk.rule.inner
        if isinstance(self.what, OrderedDropout):
            most = int(chunk.steps.max())
            self.draws = np.stack([drawn(s.key, len(self.what.models), most) for s in chunk.slots])

    def loss(self, k: int, leaves: Sequence[Tensor], ops: One, batch: Batch) -> Tensor:
        """Of step k; leaves: the parameters, one block per name."""
        p = dict(zip(self.names, leaves, strict=True))
        with self.arithmetic():
            if isinstance(self.what, Exits):
                return self._exits(self.what, p, ops, batch)
            assert self.what is not None
            return self._dropped(self.what.models, k, p, ops, batch)

    def _exits(self, what: Exits, p: Params, ops: One, batch: Batch) -> Tensor:
        x, labels, weight = batch
        model: Any = self.model
        *early, last = (z.to(self.dtype) for z in model.exit_logits(ops, p, ops.images(x)))  # [.., B, classes] each
        exits, t = len(early) + 1, what.temperature
        # 2 / (m (m + 1)) sum_j j (L_j + distill t^2 / classes KL(softmax(last / t) || softmax(z_j / t)))
        loss = exits * ops.losses(last, labels, weight)
        for j, z in enumerate(early, start=1):
            loss = loss + j * ops.losses(z, labels, weight)
            if what.distill:
                apart = (last / t).softmax(-1) * ((last / t).log_softmax(-1) - (z / t).log_softmax(-1))
                loss = loss + j * what.distill * t**2 * _mean(apart.mean(-1), weight)
        return loss * (2 / (exits * (exits + 1)))

    def _dropped(self, models: Sequence[Model], k: int, p: Params, ops: One, batch: Batch) -> Tensor:
        x, labels, weight = batch
        logits = self.model.forward(ops, p, ops.images(x)).to(self.dtype)
        said = logits.detach().softmax(-1)  # the narrower network's loss is -sum said log softmax(z)
        loss = ops.losses(logits, labels, weight)
        if not isinstance(ops, Stacked):
            narrow = part(p, self.model, models[self.draws[0, k]], 0)
            z = models[self.draws[0, k]].forward(ops, narrow, ops.images(x)).to(self.dtype)
            return loss + _mean(-(said * z.log_softmax(-1)).sum(-1), weight)
        draws = self.draws[: ops.models, k]
        for m in np.unique(draws).tolist():  # who drew the same width makes a stack
            rows = torch.from_numpy(np.flatnonzero(draws == m)).to(x.device)
            narrow = part({n: b[rows] for n, b in p.items()}, self.model, models[m], 1)
            stack = Stacked(len(rows), [ops.generators[r] for r in rows.tolist()], ops.batch)
            z = models[m].forward(stack, narrow, stack.images(x[rows])).to(self.dtype)
            mine = None if weight is None else weight[rows]
            loss = loss + _mean(-(said[rows] * z.log_softmax(-1)).sum(-1), mine)
        return loss


def part(p: Params, whole: Model, model: Model, lead: int) -> dict[str, Tensor]:
    """The parameters of a narrower model, the first numbers of those of the whole along each of its axes, after `lead`
    axes of the stack."""
    found, axes, all_axes = {}, model.axes, whole.axes
    for n, shape in model.shapes.items():
        cut = p[n].reshape(*p[n].shape[:lead], *all_axes[n])[(*[slice(None)] * lead, *map(slice, axes[n]))]
        found[n] = cut.reshape(*p[n].shape[:lead], *shape)
    return found


def _mean(term: Tensor, weight: Tensor | None) -> Tensor:
    """Of numbers per sample [B] or [A, B]: the mean over the batch, or weighted, summed over the models."""
    return term.sum() / term.shape[-1] if weight is None else (term * weight).sum()
