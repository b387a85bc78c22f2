"""Softmax regression with few parameters: the local runs of a chunk's clients in one compiled loop (numba).

Small models are bound by the interpreter and by memory, not by arithmetic; compiled, a local step of logistic
regression on a9a costs less than one torch operator. Slots that walk through the same batches (the same client under
other algorithms or sweep points) take each step together: its samples are fetched once. Every slot is computed by
itself all the same, so its bits depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from reproduce.engine.local import Rows
from reproduce.engine.slots import Chunk
from reproduce.engine.task import Arena

try:
    import numba
except ImportError:  # the siblings strategy takes over, and the results' provenance says so
    numba = None  # type: ignore[assignment]

AVAILABLE = numba is not None

LANES = 16
"""Rows are padded to a multiple of this many numbers: a remainder loop costs as much as the vectors before it."""

FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums may be reordered; NaN and infinity stay what they are


def _compiled(function: Callable[..., None]) -> Any:
    if not AVAILABLE:
        return function
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)(function)


@_compiled
def _products(v, x, count, z):  # type: ignore[no-untyped-def]
    """z[j] = v . x[j] for j < count and up to the next multiple of 4: what is loaded of v serves four samples."""
    for j in range(0, count, 4):
        a = b = c = d = v[0] * 0
        for f in range(len(v)):
            a += v[f] * x[j, f]
            b += v[f] * x[j + 1, f]
            c += v[f] * x[j + 2, f]
            d += v[f] * x[j + 3, f]
        z[j], z[j + 1], z[j + 2], z[j + 3] = a, b, c, d


@_compiled
def _combination(z, x, count, g):  # type: ignore[no-untyped-def]
    """g = sum over j < count of z[j] x[j]; z is zeroed behind `count`."""
    g[:] = 0
    for j in range(count, len(z)):
        z[j] = 0
    for j in range(0, count, 4):
        a, b, c, d = z[j], z[j + 1], z[j + 2], z[j + 3]
        for f in range(len(g)):
            g[f] += a * x[j, f] + b * x[j + 1, f] + c * x[j + 2, f] + d * x[j + 3, f]


@_compiled
def _gradient(w, x, y, count, z, g):  # type: ignore[no-untyped-def]
    """g [classes, D] <- gradient of the mean loss of the model w on samples x [.., D], y; z [classes, ..]: scratch."""
    classes = len(w)
    if classes == 2:  # the two logits enter through their difference only
        for f in range(w.shape[1]):
            g[0, f] = w[1, f] - w[0, f]
        _products(g[0], x, count, z[1])
        for j in range(count):
            z[1, j] = (1 / (1 + np.exp(-z[1, j])) - y[j]) / count
        _combination(z[1], x, count, g[1])
        for f in range(w.shape[1]):
            g[0, f] = -g[1, f]
        return
    for c in range(classes):
        _products(w[c], x, count, z[c])
    for j in range(count):
        top = z[0, j]
        for c in range(1, classes):
            top = max(top, z[c, j])
        norm = z[0, j] * 0
        for c in range(classes):
            z[c, j] = np.exp(z[c, j] - top)
            norm += z[c, j]
        for c in range(classes):
            z[c, j] = (z[c, j] / norm - (1 if y[j] == c else 0)) / count
    for c in range(classes):
        _combination(z[c], x, count, g[c])


@_compiled
def _local_runs(  # type: ignore[no-untyped-def]
    x, y, plan, plan_of, steps, out, correction, anchor, mu, lr, momentum, decay, first_count, total, first
):
    """For every slot a: out[a] <- the end point of its local run from out[a]; see `algorithms.rule` for the formula.

    x [n, D] with a column of ones for the bias and zeros up to a multiple of LANES; y [n]; plan [G, K, B];
    plan_of, steps, mu, lr, first_count [A]; out, correction, anchor, total, first [A, classes, D], of which the last
    four may be empty (absent, or not wanted). Slots with the same plan stand together and have equally many steps.
    """
    slots, classes, width = out.shape
    most = -(-plan.shape[2] // 4) * 4
    batch, labels = np.empty((most, width), out.dtype), np.empty(most, y.dtype)
    z, g = np.empty((classes, most), out.dtype), np.empty((classes, width), out.dtype)
    v = np.zeros(out.shape if momentum != 0 else (0, classes, width), out.dtype)
    begin = 0
    while begin < slots:
        end = begin + 1
        while end < slots and plan_of[end] == plan_of[begin]:
            end += 1
        shrink = decay * 0 + 1
        for k in range(steps[begin]):
            count = 0
            for j in range(plan.shape[2]):
                i = plan[plan_of[begin], k, j]
                if i >= 0:
                    for f in range(width):
                        batch[count, f] = x[i, f]
                    labels[count] = y[i]
                    count += 1
            for j in range(count, most):
                batch[j] = 0
            for a in range(begin, end):
                w = out[a]
                _gradient(w, batch, labels, count, z, g)
                rate = lr[a] * shrink
                for c in range(classes):
                    if total.shape[0]:
                        for f in range(width):
                            total[a, c, f] += g[c, f]
                        if k + 1 == first_count[a] and first.shape[0]:
                            for f in range(width):
                                first[a, c, f] = total[a, c, f] / (k + 1)
                    if correction.shape[0]:
                        for f in range(width):
                            g[c, f] += correction[a, c, f]
                    if mu[a] != 0:
                        for f in range(width):
                            g[c, f] += mu[a] * (w[c, f] - anchor[a, c, f])
                    if momentum != 0:
                        for f in range(width):
                            v[a, c, f] = momentum * v[a, c, f] + g[c, f]
                            w[c, f] -= rate * v[a, c, f]
                    else:
                        for f in range(width):
                            w[c, f] -= rate * g[c, f]
            shrink *= 1 - decay
        begin = end


def kernel_run(chunk: Chunk, arena: Arena) -> Rows:
    """Train a chunk with the compiled loop; CPU only."""
    start = chunk.stack("start")
    assert start is not None
    rule = chunk.rule
    classes, features = chunk.layout.shapes[0]
    x = _padded(arena)
    width = x.shape[1]
    dtype = x.dtype

    def pack(rows: torch.Tensor | None) -> np.ndarray:
        """[A, P] -> [A, classes, width]: weights, bias, zeros."""
        packed = np.zeros((0 if rows is None else len(rows), classes, width), dtype)
        if rows is not None:
            packed[:, :, :features] = rows[:, : classes * features].view(-1, classes, features)
            packed[:, :, features] = rows[:, classes * features :]
        return packed

    def unpack(packed: np.ndarray) -> torch.Tensor:
        weight, bias = packed[:, :, :features].reshape(len(packed), -1), packed[:, :, features]
        return torch.from_numpy(np.concatenate([weight, bias], axis=1))

    out = pack(start)
    wanted = rule.mean_gradient or bool(rule.first_gradient)
    total = np.zeros_like(out) if wanted else pack(None)
    first = np.zeros_like(out) if rule.first_gradient else pack(None)
    anchor = chunk.stack("anchor")
    plan, plan_of = _plans(chunk)
    _local_runs(
        x,
        arena.labels,
        plan,
        plan_of,
        chunk.steps,
        out,
        pack(chunk.stack("correction")),
        pack((start if anchor is None else anchor) if any(chunk.mus) else None),
        np.array(chunk.mus, dtype),
        np.array(chunk.rates, dtype),
        dtype.type(rule.momentum),
        dtype.type(rule.decay),
        chunk.first_counts(),
        total,
        first,
    )
    if wanted:
        total /= np.maximum(chunk.steps, 1)[:, None, None].astype(dtype)
    return Rows(
        unpack(out) - start,
        unpack(total) if wanted else None,
        unpack(first) if rule.first_gradient else None,
    )


def _padded(arena: Arena) -> np.ndarray:
    """The training samples with their column of ones, padded; made once per arena."""
    if arena.padded is None:
        flat = arena.train_x.flatten(1).numpy()
        n, features = flat.shape
        padded = np.zeros((n, -(-(features + 1) // LANES) * LANES), flat.dtype)
        padded[:, :features] = flat
        padded[:, features] = 1
        arena.padded = padded  # only when complete: another thread may look at any moment
    return arena.padded


def _plans(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """The distinct batch plans of the chunk [G, K, B], padded with -1, and which slot follows which [A]."""
    groups: dict[tuple[int, ...], int] = {}
    plan_of = np.array([groups.setdefault(chunk.plans.key(s), len(groups)) for s in chunk.slots])
    chosen = {chunk.plans.key(s): chunk.plans.get(s) for s in chunk.slots}
    width = next(iter(chosen.values())).shape[1]
    plan = np.full((len(groups), int(chunk.steps.max()), width), -1, dtype=np.int64)
    for key, g in groups.items():
        plan[g, : len(chosen[key])] = chosen[key]
    return plan, plan_of
