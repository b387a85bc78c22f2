"""Softmax regression with few parameters: the whole local run of a client in one compiled loop (numba).

Small models are bound by the interpreter, not by arithmetic; compiled, a local step of logistic regression on a9a
costs less than one torch operator. Every slot is computed by itself, so its bits depend on nothing else.
"""

from __future__ import annotations

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


def _local_runs(  # type: ignore[no-untyped-def]
    x, y, plan, plan_of, steps, out, correction, anchor, mu, lr, momentum, decay, first_count, total, first
):
    """For every slot a: out[a] <- the end point of its local run from out[a]; see `algorithms.rule` for the formula.

    x [n, D] with a column of ones for the bias and zeros up to a multiple of LANES; y [n]; plan [G, K, B];
    plan_of, steps, mu, lr, first_count [A]; out, correction, anchor, total, first [A, classes, D], of which the last
    four may be empty (absent, or not wanted).
    """
    slots, classes, width = out.shape
    g = np.empty((classes, width), out.dtype)
    v = np.empty((classes, width), out.dtype)
    d = np.empty(classes, out.dtype)
    between = np.empty(width, out.dtype)
    for a in range(slots):
        w = out[a]
        rows = plan[plan_of[a]]
        v[:] = 0
        rate = lr[a]
        for k in range(steps[a]):
            g[:] = 0
            count = 0
            if classes == 2:  # one product per sample: the two logits enter through their difference only
                for f in range(width):
                    between[f] = w[1, f] - w[0, f]
            for j in range(rows.shape[1]):
                i = rows[k, j]
                if i < 0:
                    continue
                count += 1
                if classes == 2:
                    z = between[0] * 0
                    for f in range(width):
                        z += between[f] * x[i, f]
                    e = 1 / (1 + np.exp(-z)) - y[i]
                    for f in range(width):
                        g[1, f] += e * x[i, f]
                    continue
                top = -np.inf
                for c in range(classes):
                    z = between[0] * 0
                    for f in range(width):
                        z += w[c, f] * x[i, f]
                    d[c] = z
                    top = max(top, z)
                norm = d[0] * 0
                for c in range(classes):
                    d[c] = np.exp(d[c] - top)
                    norm += d[c]
                for c in range(classes):
                    e = d[c] / norm
                    if y[i] == c:
                        e -= 1
                    for f in range(width):
                        g[c, f] += e * x[i, f]
            if classes == 2:
                for f in range(width):
                    g[0, f] = -g[1, f]
            for c in range(classes):
                for f in range(width):
                    g[c, f] /= count
            if total.shape[0]:
                for c in range(classes):
                    for f in range(width):
                        total[a, c, f] += g[c, f]
                if k + 1 == first_count[a] and first.shape[0]:
                    for c in range(classes):
                        for f in range(width):
                            first[a, c, f] = total[a, c, f] / (k + 1)
            for c in range(classes):
                if correction.shape[0]:
                    for f in range(width):
                        g[c, f] += correction[a, c, f]
                if mu[a] != 0:
                    for f in range(width):
                        g[c, f] += mu[a] * (w[c, f] - anchor[a, c, f])
                if momentum != 0:
                    for f in range(width):
                        v[c, f] = momentum * v[c, f] + g[c, f]
                        w[c, f] -= rate * v[c, f]
                else:
                    for f in range(width):
                        w[c, f] -= rate * g[c, f]
            rate *= 1 - decay


FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums may be reordered; NaN and infinity stay what they are

_compiled: Any = (
    numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)(_local_runs) if AVAILABLE else None
)


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
    _compiled(
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
        arena.padded = np.zeros((n, -(-(features + 1) // LANES) * LANES), flat.dtype)
        arena.padded[:, :features] = flat
        arena.padded[:, features] = 1
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
