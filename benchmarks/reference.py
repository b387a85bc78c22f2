"""The reference strategy: one client after the other, one step after the other, nothing clever.

Slow on purpose; the oracle for every fast strategy (tests compare them in float64) and the baseline of the benchmarks.
"""

from __future__ import annotations

import torch

from reproduce.engine.client_split import DeviceData
from reproduce.engine.layout import Layout
from reproduce.engine.local import Rows
from reproduce.engine.rule import EPSILON, Exits
from reproduce.engine.stacking import Chunk, Slot
from reproduce.engine.terms import Augmentation, drawn
from reproduce.modules.ops import One
from reproduce.streams import rng


def reference_run(chunk: Chunk, device_data: DeviceData) -> Rows:
    """Every slot by itself; same contract as `local.autograd_run`."""
    rows = [_client(chunk, a, device_data) for a in range(len(chunk.slots))]
    update, mean, first = (list(column) for column in zip(*rows, strict=True))
    wanted = chunk.rule
    return Rows(
        torch.stack(update),
        torch.stack(mean) if wanted.mean_gradient or wanted.first_gradient else None,
        torch.stack(first) if wanted.first_gradient else None,
    )


def _client(chunk: Chunk, a: int, device_data: DeviceData) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    slot, layout = chunk.slots[a], chunk.layout
    request, rule = slot.request, slot.request.rule
    start = slot.row_of(request.start)
    anchor = start if request.anchor is None else slot.row_of(request.anchor)
    correction = None if request.correction is None else slot.row_of(request.correction)
    generator = torch.Generator(device_data.device).manual_seed(int(rng("dropout", *slot.key).integers(2**62)))
    first_count = int(chunk.first_counts()[a])
    plan = chunk.plans.get(slot)
    augment = Augmentation([slot], device_data, plan.shape[1])
    y = start.clone()
    velocity, total, first = torch.zeros_like(y), torch.zeros_like(y), torch.zeros_like(y)
    moment, square = torch.zeros_like(y), torch.zeros_like(y)
    frozen = _keep(layout, y, request, slot.row)
    for k in range(slot.steps):
        index = torch.from_numpy(plan[k][plan[k] >= 0]).to(device_data.device)
        keep = _keep(layout, y, request, slot.row) if rule.mask == "dynamic" else frozen
        leaf = (y * keep).requires_grad_() if rule.mask else y.clone().requires_grad_()
        ops = One([generator], plan.shape[1])
        x = ops.images(augment(device_data.train_x[index]))
        if rule.inner is None:
            z, logits = layout.model.both(ops, layout.named(leaf), x)
            loss = torch.nn.functional.cross_entropy(logits, device_data.train_y[index])
        else:
            loss = _with_parts(layout, layout.named(leaf), x, device_data.train_y[index], slot, k, ops)
        if rule.distill and request.teacher is not None:
            with torch.no_grad():
                target = layout.model.forward(One(), layout.named(request.teacher), x).softmax(1)
            loss = loss + rule.distill * (target * (target.log() - logits.log_softmax(1))).sum(1).mean()
        if rule.contrast and request.previous is not None:
            poles = start, slot.row_of(request.previous)
            z = layout.model.encode(ops, layout.named(leaf), x) if rule.second_pass else z
            toward, away = (_cosines(z, layout.model.encode(One(), layout.named(w), x)) for w in poles)
            share = torch.exp(toward / rule.temperature) / sum(torch.exp(c / rule.temperature) for c in (toward, away))
            loss = loss - rule.contrast * share.log().mean()
        (g,) = torch.autograd.grad(loss, leaf)
        if rule.mask:
            g = g * keep
            if rule.amplify:
                t = _thresholds(layout, request, slot.row)
                g = torch.where(t > 0, g * (1 + 2 * y.abs() * t / (y.abs() + t) ** 2), g)
        total = total + g
        if k + 1 == first_count:
            first = total / first_count
        d = g + rule.mu * (y - anchor)
        if correction is not None:
            d = d + correction
        velocity = rule.momentum * velocity + d
        if rule.betas:
            b, c = rule.betas
            moment, square = b * moment + (1 - b) * d, c * square + (1 - c) * d**2
            velocity = moment / (1 - b ** (k + 1)) / ((square / (1 - c ** (k + 1))).sqrt() + EPSILON)
        y = y - slot.lr * (1 - rule.decay) ** k * velocity
        for name, new in ops.buffers.items():
            y[layout.offsets[name] : layout.offsets[name] + new.numel()] = new.flatten()
    return y - start, total / max(slot.steps, 1), first


def _with_parts(
    layout: Layout, p: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor, slot: Slot, k: int, ops: One
) -> torch.Tensor:
    """The loss of a model that is trained together with its exits, or with a narrower network in it."""
    inner, nll = slot.request.rule.inner, torch.nn.functional.cross_entropy
    if isinstance(inner, Exits):
        logits = layout.model.exit_logits(ops, p, x)
        losses = [nll(z, y) for z in logits]
        for j, z in enumerate(logits[:-1]):
            soft, last = (v.div(inner.temperature).softmax(1) for v in (z, logits[-1]))
            losses[j] = losses[j] + inner.distill * inner.temperature**2 * (last * (last.log() - soft.log())).mean()
        weights = range(1, len(losses) + 1)
        return sum((w / sum(weights) * loss for w, loss in zip(weights, losses, strict=True)), torch.zeros(()))
    assert inner is not None
    model = inner.models[drawn(slot.key, len(inner.models), k + 1)[k]]
    narrow = {n: p[n][tuple(slice(s) for s in shape)] for n, shape in model.shapes.items()}
    full = layout.model.forward(ops, p, x)
    return nll(full, y) + nll(model.forward(ops, narrow, x), full.detach().softmax(1))


def _cosines(z: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine [B] between the rows of z and of another model's features, which stand still."""
    u, v = (w / w.norm(dim=1, keepdim=True).clamp_min(1e-8) for w in (z, other.detach()))
    return (u * v).sum(1)


def _thresholds(layout: Layout, request, row: int) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """The threshold of every coordinate [P]."""
    t = request.thresholds[row]
    return torch.cat([t[i].expand(size) for i, size in enumerate(layout.sizes)])


def _keep(layout: Layout, y: torch.Tensor, request, row: int) -> torch.Tensor:  # type: ignore[no-untyped-def]
    if request.thresholds is None:
        return torch.ones_like(y)
    return (y.abs() >= _thresholds(layout, request, row)).to(y.dtype)
