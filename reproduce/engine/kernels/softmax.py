"""Softmax regression with few parameters: the local runs of a chunk's clients in one call of softmax.c.

Small models are bound by the interpreter and by memory, not by arithmetic; compiled, a local step of logistic
regression on a9a costs less than one torch operator.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.arena import Arena
from reproduce.engine.kernels.library import LINE, Descent, aligned, call, library
from reproduce.engine.local import Rows
from reproduce.engine.stacking import Chunk


def kernel_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a chunk in compiled code; CPU only."""
    start = chunk.start
    rule, dtype = chunk.rule, arena.dtype
    classes, features = chunk.layout.shapes[0]
    arena.labels_below(classes)
    x = _padded(arena)
    width = x.shape[1]

    def pack(rows: Tensor | None) -> Tensor | None:
        """[A, P] -> [A, classes, width]: weights, bias, zeros."""
        if rows is None:
            return None
        packed = torch.zeros((len(rows), classes, width), dtype=dtype)
        packed[:, :, :features] = rows[:, : classes * features].view(-1, classes, features)
        packed[:, :, features] = rows[:, classes * features :]
        return packed

    def unpack(packed: Tensor) -> Tensor:
        return torch.cat([packed[:, :, :features].flatten(1), packed[:, :, features]], dim=1)

    out = pack(start)  # moved in place
    assert out is not None
    anchor = chunk.stack("anchor")
    wanted = rule.mean_gradient or bool(rule.first_gradient)
    vectors = (
        pack(chunk.stack("correction")),
        pack((start if anchor is None else anchor) if any(chunk.mus) else None),
        torch.zeros_like(out) if rule.momentum else None,
        total := torch.zeros_like(out) if wanted else None,
        first := torch.zeros_like(out) if rule.first_gradient else None,
    )
    _run(chunk, arena, x, out, vectors)
    if total is not None:
        total /= chunk.numbers(np.maximum(chunk.steps, 1).tolist(), total)[:, None, None]
    mean = None if total is None else unpack(total)
    return Rows(unpack(out) - start, mean, None if first is None else unpack(first))


def _run(chunk: Chunk, arena: Arena, x: Tensor, out: Tensor, vectors: tuple[Tensor | None, ...]) -> None:
    """Calls softmax.c on out [A, classes, width] and the vectors of `Descent`, of that shape or absent."""
    (slots, classes, width), rule = out.shape, chunk.rule
    plan, plan_of = _plans(chunk)
    counts = chunk.first_counts()
    rows = [
        Descent(
            *(chunk.rates[a], rule.momentum, rule.decay, chunk.mus[a], classes * width, int(counts[a])),
            *(None if v is None else v[a].data_ptr() for v in vectors),
        )
        for a in range(slots)
    ]
    lanes = LINE // out.element_size()
    z = aligned(classes * -(-plan.shape[2] // lanes) * lanes, out.dtype)
    g = aligned(classes * width, out.dtype)
    names, share = np.empty((2, plan.shape[2]), dtype=np.int64), aligned(plan.shape[2], out.dtype)
    steps = np.ascontiguousarray(chunk.steps, dtype=np.int64)
    call(
        library(out.dtype).softmax_runs,
        *(x, width, arena.train_y, plan, plan.shape[1], plan.shape[2], plan_of),
        *(steps, slots, classes, out, (Descent * slots)(*rows), z, g, names[0], names[1], share),
    )


def _padded(arena: Arena) -> Tensor:
    """The training samples with their column of ones and zeros up to whole vectors; made once per arena."""
    if arena.padded is None:
        flat = arena.train_x.flatten(1)
        n, features = flat.shape
        lanes = LINE // flat.element_size()
        width = -(-(features + 1) // lanes) * lanes
        padded = aligned(n * width, flat.dtype).view(n, width)
        padded[:, :features] = flat
        padded[:, features] = 1
        arena.padded = padded  # only when complete: another thread may look at any moment
    return arena.padded


def _plans(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """The distinct batch plans of the chunk [G, K, B], padded with -1, and which slot follows which [A]."""
    chosen = {slot.batches: chunk.plans.get(slot) for slot in chunk.slots}
    groups = {batches: g for g, batches in enumerate(chosen)}
    plan_of = np.array([groups[slot.batches] for slot in chunk.slots])
    longest, width = int(chunk.steps.max()), next(iter(chosen.values())).shape[1]
    plan = np.full((len(groups), longest, width), -1, dtype=np.int64)
    for g, own in enumerate(chosen.values()):
        plan[g, : len(own)] = own
    return plan, plan_of
