"""The local loop of a stack of models whose gradients come from automatic differentiation.

One chunk = A clients, parameters as blocks [A, *shape]. `Stacked` operators compute all A gradients in one pass; a
chunk of one client uses the plain operators (large networks gain nothing from stacking).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from reproduce.engine.client_split import DeviceData
from reproduce.engine.machine import sent
from reproduce.engine.objectives import Objectives
from reproduce.engine.rule import EPSILON
from reproduce.engine.stacking import Chunk
from reproduce.engine.terms import Augmentation, Batch, Blocks, Contrast, Inner, Masks, distillation
from reproduce.modules.eager import Live
from reproduce.modules.ops import One, Stacked

Gradient = Sequence[Tensor | None]
"""Gradients in blocks; None where there is none, which a step leaves alone."""


@dataclass
class Rows:
    """The results of a chunk: update, mean and first gradients, each [A, P]; buffers [A, B]: their values at the end,
    where their start and the update do not say it."""

    update: Tensor
    mean_gradient: Tensor | None = None
    first_gradient: Tensor | None = None
    buffers: Tensor | None = None

    def each(self, function: Callable[[Tensor], Tensor]) -> Rows:
        """`function` of all that there is."""
        return Rows(*(x if x is None else function(x) for x in vars(self).values()))  # type: ignore[arg-type]


class Gradients:
    """Sums of raw gradients over the steps, and the snapshot that makes the first-gradient estimate."""

    def __init__(self, chunk: Chunk, like: Blocks) -> None:
        rule = chunk.rule
        self.wanted = rule.mean_gradient or bool(rule.first_gradient)
        if not self.wanted:
            return
        self.steps = chunk.steps  # [A]
        self.counts = chunk.first_counts() if rule.first_gradient else None  # [A]
        self.total = [torch.zeros_like(b) for b in like]  # sum_k g_k, blocks [A, *shape]
        self.first = [torch.zeros_like(b) for b in like] if rule.first_gradient else []

    def add(self, k: int, active: int, grads: Gradient) -> None:
        if not self.wanted:
            return
        for total, g in zip(self.total, grads, strict=True):
            if g is not None:
                total[:active] += g  # those that have finished lie behind
        if self.counts is not None:
            due = np.flatnonzero(self.counts[:active] == k + 1)
            if len(due):
                where = sent(due, self.first[0].device)
                for first, total in zip(self.first, self.total, strict=True):
                    first[where] = total[where] / (k + 1)  # the mean of g_0, ..., g_k

    def rows(self, chunk: Chunk) -> tuple[Tensor | None, Tensor | None]:
        if not self.wanted:
            return None, None
        mean = chunk.layout.rows(self.total)
        mean = mean / sent(np.maximum(self.steps, 1), mean.device, mean.dtype)[:, None]
        return mean, chunk.layout.rows(self.first) if self.first else None


class Stepper:
    """y <- y - lr (1 - decay)^k v with v = momentum v + g + correction + mu (y - anchor), or the v of AdamW (rule.py).

    Everything lies in blocks [A, *shape], one per parameter; what differs from client to client in columns [A, 1, ...].
    A block without a gradient stays as it is, with its momentum.
    """

    def __init__(self, chunk: Chunk, y: Blocks) -> None:
        self.rule = chunk.rule
        layout = chunk.layout
        correction = chunk.stack("correction")
        self.correction = None if correction is None else _like(layout.blocks(correction), y)
        self.pull = any(chunk.mus)
        if self.pull:
            anchor = chunk.stack("anchor")
            self.anchor = [b.clone() for b in y] if anchor is None else _like(layout.blocks(anchor), y)
            self.mu = self._column(chunk, chunk.mus, y)
        self.velocity = [torch.zeros_like(b) for b in y] if self.rule.momentum else None
        self.moments = [[torch.zeros_like(b) for b in y] for _ in self.rule.betas]
        self.rate = chunk.rates[0]
        self.rates = None if len(set(chunk.rates)) == 1 else self._column(chunk, chunk.rates, y)

    def _column(self, chunk: Chunk, values: list[float], y: Blocks) -> Blocks:
        column = sent(values, y[0].device, torch.float64)
        return [column.to(b.dtype).view(-1, *[1] * (b.dim() - 1)) for b in y]

    def step(self, k: int, a: int, y: Blocks, gradient: Gradient) -> None:
        """Update the first `a` models of the stack in place; `gradient` is consumed."""
        grads, here = [g for g in gradient if g is not None], [i for i, g in enumerate(gradient) if g is not None]

        def of(blocks: Blocks) -> Blocks:
            return [blocks[i][:a] for i in here]

        y = of(y)
        if not grads:
            return
        if self.correction is not None:  # d = g + correction
            torch._foreach_add_(grads, of(self.correction))
        if self.pull:  # d += mu (y - anchor)
            for g, b, z, mu in zip(grads, y, of(self.anchor), of(self.mu), strict=True):
                g.addcmul_(b - z, mu)
        if self.velocity is not None:  # v = momentum v + d
            velocity = of(self.velocity)
            torch._foreach_mul_(velocity, self.rule.momentum)
            torch._foreach_add_(velocity, grads)
            grads = velocity
        if self.moments:
            grads = self._adamw(k, grads, *map(of, self.moments))
        shrink = (1 - self.rule.decay) ** k
        if self.rates is None:  # y -= lr (1 - decay)^k v
            torch._foreach_add_(y, grads, alpha=-self.rate * shrink)
        else:
            for b, g, rate in zip(y, grads, of(self.rates), strict=True):
                b.addcmul_(g, rate, value=-shrink)

    def _adamw(self, k: int, grads: Blocks, first: Blocks, second: Blocks) -> Blocks:
        """The direction of AdamW in step k."""
        b, c = self.rule.betas
        torch._foreach_lerp_(first, grads, 1 - b)  # m = b m + (1 - b) d
        torch._foreach_mul_(second, c)  # n = c n + (1 - c) d^2
        torch._foreach_addcmul_(second, grads, grads, 1 - c)
        # v = m / (1 - b^(k+1)) / (sqrt(n / (1 - c^(k+1))) + EPSILON), its first factor drawn into the second
        scale = torch._foreach_sqrt(second)
        torch._foreach_mul_(scale, (1 - b ** (k + 1)) / math.sqrt(1 - c ** (k + 1)))
        torch._foreach_add_(scale, (1 - b ** (k + 1)) * EPSILON)
        return list(torch._foreach_div(first, scale))


def _like(blocks: Blocks, y: Blocks) -> Blocks:
    """Blocks of the types of those of `y`."""
    return [block.to(b.dtype) for block, b in zip(blocks, y, strict=True)]


class Data:
    """The mini-batches of a chunk, gathered step by step by indices that travel to the device once."""

    def __init__(self, chunk: Chunk, device_data: DeviceData, plain: bool) -> None:
        self.device_data, self.plain = device_data, plain
        index = np.ascontiguousarray(chunk.batches().transpose(1, 0, 2))  # [K, A, B], -1 for padding
        self.kept = index >= 0
        self.counts = self.kept.sum(2)  # b of each step, [K, A]
        # The batch's own first sample, so that a text beside the batch does not make it longer.
        self.index = sent(np.where(self.kept, index, index[:, :, :1]), device_data.device)
        self.augment = Augmentation(list(chunk.slots), device_data, chunk.full)

    @cached_property
    def weights(self) -> Tensor:
        """1/b of each sample, 0 for padding, [K, A, B]."""
        weights = self.kept / np.maximum(self.counts, 1)[:, :, None]
        return sent(weights, self.device_data.device, self.device_data.dtype)

    def step(self, k: int, active: int) -> Batch:
        """x [a, b, ...], y [a, b] and, where batches of different size meet, weights 1/b of the samples [a, b], 0 for
        padding. A single model goes without the axis a.
        """
        counts = self.counts[k, :active]
        b = int(counts.max())
        where = self.index[k, 0, :b] if self.plain else self.index[k, :active, :b].contiguous()
        weight = self.weights[k, :active, :b] if int(counts.min()) < b else None
        return self.augment(self.device_data.train_x[where]), self.device_data.train_y[where], weight


def autograd_run(chunk: Chunk, device_data: DeviceData, precision: str = "float32") -> Rows:
    """Train the chunk's clients: A models stacked, or one model with the plain operators."""
    plain = len(chunk.slots) == 1
    layout, rule = chunk.layout, chunk.rule
    start = chunk.start  # [A, P]
    y = layout.blocks(start)  # the iterates, one block [A, *shape] per parameter
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    masks = Masks(chunk, y) if rule.mask else None
    data = Data(chunk, device_data, plain)
    generators = chunk.generators(device_data.device)
    teacher = chunk.slots[0].request.teacher if rule.distill else None
    contrast = Contrast(chunk, start) if rule.contrast else None
    inner = Inner(chunk, partial(reduced, precision, device_data.device)) if rule.inner is not None else None
    cut = plain and layout.model.separable and device_data.device.type == "cpu"
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)  # longest first: the first a of them still train
        now = [b[:a] for b in y]
        weights = masks.effective(now) if masks else now  # y * m
        # One model goes without the axis of the stack, whose gradient would be copied into zeros.
        leaves = [(b[0] if plain else b).detach().requires_grad_() for b in weights]
        ops = One(generators[:1], chunk.full) if plain else Stacked(a, generators[:a], chunk.full)
        loss = partial(_loss, chunk, leaves, ops, teacher, contrast, precision)
        if inner is not None:
            loss = partial(inner.loss, k, leaves, ops)
        grads: list[Any] = _gradient(loss, leaves, data.step(k, a), cut)
        grads = [g[None] for g in grads] if plain else grads  # [a, *shape] each
        if masks:
            grads = masks.gradient(now, grads)
        with torch.no_grad():
            gradients.add(k, a, grads)
            stepper.step(k, a, y, grads)
            for name, new in ops.buffers.items():  # running statistics, which have no gradient
                y[layout.names.index(name)][:a] = new
    del leaves, grads, weights  # large, and no longer wanted
    mean, first = gradients.rows(chunk)
    return Rows(layout.rows(y).sub_(start), mean, first)


PIECE = 64
"""Large batches of one model are cut into pieces of this many samples on the CPU, whose activations stay in its cache.
"""


def _gradient(loss: Callable[[Batch], Tensor], leaves: Blocks, batch: Batch, cut: bool) -> Blocks:
    """Gradient of `loss`, zero for what has no part in it; if it may be `cut`, that of a large batch is the mean over
    its pieces."""
    x, labels, _ = batch
    b = labels.shape[-1]
    if not cut or b <= 2 * PIECE:
        return list(torch.autograd.grad(loss(batch), leaves, materialize_grads=True))
    total: Blocks = []
    for part, wanted in zip(x.split(PIECE), labels.split(PIECE), strict=True):
        share = loss((part, wanted, None)) * (len(wanted) / b)
        grads = list(torch.autograd.grad(share, leaves, materialize_grads=True))
        if total:
            torch._foreach_add_(total, grads)
        else:
            total = grads
    return total


def _loss(
    chunk: Chunk,
    leaves: Blocks,
    ops: One,
    teacher: Tensor | None,
    contrast: Contrast | None,
    precision: str,
    batch: Batch,
) -> Tensor:
    """Sum of the models' losses on their batches."""
    x, labels, weight = batch
    model, p, dtype = chunk.model, dict(zip(chunk.layout.names, leaves, strict=True)), leaves[0].dtype
    terms: list[tuple[float, Tensor]] = []  # strength, and the term per sample
    with reduced(precision, x.device):
        images = ops.images(x)
        if contrast is None:
            logits = model.forward(ops, p, images).to(dtype)
        else:
            z, logits = model.both(ops, p, images)
            logits = logits.to(dtype)
            z = model.encode(ops, p, images) if chunk.rule.second_pass else z
            terms.append((chunk.rule.contrast, contrast(ops, images, z.to(dtype))))
    if teacher is not None:
        terms.append((chunk.rule.distill, distillation(chunk, teacher, x, logits)))
    loss = ops.losses(logits, labels, weight)
    for strength, term in terms:
        loss = loss + strength * (term.sum() / labels.shape[-1] if weight is None else (term * weight).sum())
    return loss


def module_run(chunk: Chunk, device_data: DeviceData, precision: str = "float32") -> Rows:
    """Trains the only client of a chunk in an eager loop over the user's own nn.Module. Returns `Rows` with A = 1; the
    update [1, P] is end minus start. Masks, teacher and contrast of the rule apply. precision: of forward pass and
    loss."""
    layout, rule, start = chunk.layout, chunk.rule, chunk.start
    live = Live(chunk.model, p := layout.named(start[0]), True, features=bool(rule.contrast))
    entries = [live.entries[name] for name in layout.names]  # once, as an optimiser takes its parameters
    y = [t.detach()[None] for t in entries]  # [1, *shape], where the module has them
    stepper, gradients, data = Stepper(chunk, y), Gradients(chunk, y), Data(chunk, device_data, plain=True)
    masks = Masks(chunk, y) if rule.mask else None
    contrast = Contrast(chunk, start) if rule.contrast else None
    teacher = chunk.slots[0].request.teacher if rule.distill else None
    (seed,) = chunk.plans.dropout(chunk.slots)
    with live.turn(seed % 2**32, seed >> 32):
        for k in range(int(chunk.steps[0])):
            y, (x, labels, _) = [t.detach()[None] for t in entries], data.step(k, 1)
            if masks:
                whole = [b.clone() for b in y]
                torch._foreach_copy_(y, masks.effective(y))
            for t in entries:
                t.grad = None
            with reduced(precision, x.device):
                z, logits = live(x)
                loss = F.cross_entropy(logits, labels)
                if teacher is not None:
                    loss = loss + rule.distill * distillation(chunk, teacher, x, logits).mean()
                if contrast is not None:
                    z = live(x)[0] if rule.second_pass else z
                    loss = loss + rule.contrast * contrast(One(), x, z).mean()
            y, grads = [t.detach()[None] for t in entries], [g if g is None else g[None] for g in live.gradients(loss)]
            with torch.no_grad():
                if masks:
                    torch._foreach_copy_(y, whole)
                    grads = masks.gradient(y, grads)
                gradients.add(k, 1, grads)
                stepper.step(k, 1, y, grads)
    mean, first = (None if x is None else x.to(start.dtype) for x in gradients.rows(chunk))
    end, where = live.vector(p), sent(layout.statistics, start.device)
    update = end - start[0]
    update[where] = update[where].nan_to_num(0, 0, 0)  # what is not finite travels as the value that it has
    return Rows(update[None], mean, first, end[where][None])


def reduced(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Autocast for "bfloat16"; the backward pass follows the types of the forward pass. float64 is left alone."""
    if precision != "bfloat16":
        return nullcontext()
    # Without the cache of casts: parameters are new tensors in every step, so that it would serve nobody.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def quadratic_run(chunk: Chunk, device_data: Objectives) -> Rows:
    """The local loop of quadratics: full gradients, elementwise on the iterates y [A, d], their only block."""
    start = chunk.start
    y = [start.clone()]
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    clients = sent([s.client for s in chunk.slots], device_data.device)
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)
        grads = [device_data.gradient(clients[:a], y[0][:a])]
        gradients.add(k, a, grads)
        stepper.step(k, a, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(y[0] - start, mean, first)
