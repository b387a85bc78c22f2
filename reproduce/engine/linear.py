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

from reproduce.engine.arena import Arena
from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.stacking import Chunk


def sibling_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a chunk whose slots all share one batch plan; the models that theirs are compared with do not move."""
    layout = chunk.layout
    start = chunk.start
    teachers, learners = _teachers(chunk)
    models = layout.blocks(torch.cat([start, *teachers]))  # weights [S + teachers, classes, F], biases [.., classes]
    s, classes, features = len(start), *models[0].shape[1:]
    weight, bias = models[0].view(-1, features), models[1].view(-1, 1)  # one above the other
    y = [block[:s] for block in models]  # views: a step moves `weight` and `bias`
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    plan = chunk.plans.get(chunk.slots[0])
    sizes = (plan >= 0).sum(1).tolist()
    index = torch.from_numpy(plan[plan >= 0]).to(arena.device)
    # torch.index_select: gathering by x[index] takes five times as long.
    samples = arena.flat_x.index_select(0, index)
    contrast = _Contrast(chunk, samples, sizes)
    steps = samples.split(sizes)
    targets = [t.t().contiguous() for t in arena.onehot.index_select(0, index).split(sizes)]
    for k, (x, target) in enumerate(zip(steps, targets, strict=True)):
        z = torch.addmm(bias, weight, x.t()).view(-1, classes, sizes[k])  # W x' + b, [S + teachers, classes, B]
        p = z.softmax(1)
        d = p[:s] - target  # [S, classes, B]
        for a, teacher, strength in learners:  # the gradient of KL(p_teacher || p_a) is p_a - p_teacher
            d[a].add_(p[a] - p[teacher], alpha=strength)
        contrast.add(k, d, z)
        d = d.view(s * classes, -1).div_(sizes[k])
        grads = [torch.mm(d, x).view(s, classes, features), d.sum(1).view(s, classes)]  # d x, sum d
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(layout.rows(y) - start, mean, first)


def _teachers(chunk: Chunk) -> tuple[list[Tensor], list[tuple[int, int, float]]]:
    """Each learner's teacher [1, P], and (slot, position of its teacher behind the slots, strength) of the learners.

    Slots that share a teacher have it twice: whether two tensors are one must not decide how products are rounded.
    """
    teachers: list[Tensor] = []
    learners = []
    for a, slot in enumerate(chunk.slots):
        teacher, strength = slot.request.teacher, slot.request.rule.distill
        if strength and teacher is not None:
            learners.append((a, len(chunk.slots) + len(teachers), strength))
            teachers.append(teacher[None])
    return teachers, learners


class _Contrast:
    """The model-contrastive term (still.py) of the slots that ask for it, whose representation is z.

    u = z / |z|;  d cos(z, v) / dz = (v / |v| - cos(z, v) u) / |z|
    """

    def __init__(self, chunk: Chunk, samples: Tensor, sizes: list[int]) -> None:
        asking = [(a, slot) for a, slot in enumerate(chunk.slots) if slot.request.rule.contrast]
        self.wanted = bool(asking)
        if not asking:
            return
        poles = []
        for _, slot in asking:
            assert slot.request.previous is not None
            poles += [slot.row_of(slot.request.start), slot.row_of(slot.request.previous)]
        weight, bias = chunk.layout.blocks(torch.stack(poles))
        z = torch.addmm(bias.view(-1, 1), weight.flatten(0, 1), samples.t())
        z = z.view(len(asking), 2, weight.shape[1], -1)
        self.units = (z / _length(z, 2)).split(sizes, dim=3)
        """Directions of the start's and the previous model's logits, [slots, 2, classes, B] for every step."""
        self.own = torch.tensor([a for a, _ in asking], device=z.device)
        strength, temperature = zip(
            *[(s.request.rule.contrast, s.request.rule.temperature) for _, s in asking], strict=True
        )
        self.strength = chunk.numbers(strength, z).view(-1, 1, 1)
        self.temperature = chunk.numbers(temperature, z).view(-1, 1, 1)

    def add(self, k: int, d: Tensor, z: Tensor) -> None:
        """Add the term's gradient to d [S, classes, B], of logits z [S and more, classes, B], before batch means."""
        if not self.wanted:
            return
        own, units = z.index_select(0, self.own), self.units[k]  # [n, classes, B], [n, 2, classes, B]
        size = _length(own, 1)
        u = (own / size).unsqueeze(1)  # z / |z|
        cosines = (units * u).sum(2, keepdim=True)
        toward, away = ((units - cosines * u) / size.unsqueeze(1)).unbind(1)  # d cos / dz of both
        a, b = cosines.unbind(1)
        push = self.strength / self.temperature * ((b - a) / self.temperature).sigmoid()  # the slope of softplus
        d.index_add_(0, self.own, push * (away - toward))


def _length(z: Tensor, dim: int) -> Tensor:
    """Euclidean norms, at least 1e-8, as in torch's cosine similarity."""
    return z.square().sum(dim, keepdim=True).sqrt_().clamp_min_(1e-8)
