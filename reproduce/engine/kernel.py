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


def _local_runs(  # type: ignore[no-untyped-def]
    x, y, plan, plan_of, steps, out, correction, anchor, mu, lr, momentum, decay, first_count, total, first
):
    """For every slot a: out[a] <- the end point of its local run from out[a]; see `algorithms.rule` for the formula.

    x [n, D], y [n], plan [G, K, B], plan_of [A], steps [A], out, correction, anchor, total, first [A, P] with
    P = classes * (D + 1); correction and anchor may be [0, 0] (absent); total [0, 0] if no gradients are wanted.
    """
    slots, parameters = out.shape
    features = x.shape[1]
    classes = parameters // (features + 1)
    bias = classes * features
    g = np.empty(parameters, out.dtype)
    v = np.empty(parameters, out.dtype)
    d = np.empty(classes, out.dtype)
    for a in range(slots):
        w = out[a]
        rows = plan[plan_of[a]]
        v[:] = 0
        rate = lr[a]
        for k in range(steps[a]):
            g[:] = 0
            count = 0
            for j in range(rows.shape[1]):
                i = rows[k, j]
                if i < 0:
                    continue
                count += 1
                top = -np.inf
                for c in range(classes):
                    z = w[bias + c]
                    at = c * features
                    for f in range(features):
                        z += w[at + f] * x[i, f]
                    d[c] = z
                    top = max(top, z)
                norm = w[0] * 0
                for c in range(classes):
                    d[c] = np.exp(d[c] - top)
                    norm += d[c]
                for c in range(classes):
                    e = d[c] / norm
                    if y[i] == c:
                        e -= 1
                    g[bias + c] += e
                    at = c * features
                    for f in range(features):
                        g[at + f] += e * x[i, f]
            for q in range(parameters):
                g[q] /= count
            if total.shape[0]:
                for q in range(parameters):
                    total[a, q] += g[q]
                if k + 1 == first_count[a] and first.shape[0]:
                    for q in range(parameters):
                        first[a, q] = total[a, q] / (k + 1)
            if correction.shape[0]:
                for q in range(parameters):
                    g[q] += correction[a, q]
            if mu[a] != 0:
                for q in range(parameters):
                    g[q] += mu[a] * (w[q] - anchor[a, q])
            if momentum != 0:
                for q in range(parameters):
                    v[q] = momentum * v[q] + g[q]
                    w[q] -= rate * v[q]
            else:
                for q in range(parameters):
                    w[q] -= rate * g[q]
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
    dtype = start.numpy().dtype
    none = np.zeros((0, 0), dtype)
    groups: dict[tuple[int, ...], int] = {}
    plan_of = np.array([groups.setdefault(chunk.plans.key(s), len(groups)) for s in chunk.slots])
    chosen = {chunk.plans.key(s): chunk.plans.get(s) for s in chunk.slots}
    width = next(iter(chosen.values())).shape[1]
    plan = np.full((len(groups), int(chunk.steps.max()), width), -1, dtype=np.int64)
    for key, g in groups.items():
        plan[g, : len(chosen[key])] = chosen[key]
    correction = chunk.stack("correction")
    anchor = chunk.stack("anchor")
    out = start.numpy().copy()
    wanted = rule.mean_gradient or bool(rule.first_gradient)
    total = np.zeros_like(out) if wanted else none
    first = np.zeros_like(out) if rule.first_gradient else none
    pull = any(chunk.mus)
    _compiled(
        arena.train_x.flatten(1).numpy(),
        arena.labels,
        plan,
        plan_of,
        chunk.steps,
        out,
        none if correction is None else correction.numpy(),
        none if not pull else (start if anchor is None else anchor).numpy(),
        np.array(chunk.mus, dtype),
        np.array(chunk.rates, dtype),
        dtype.type(rule.momentum),
        dtype.type(rule.decay),
        chunk.first_counts(),
        total,
        first,
    )
    if wanted:
        total /= np.maximum(chunk.steps, 1)[:, None].astype(dtype)
    return Rows(
        torch.from_numpy(out) - start,
        torch.from_numpy(total) if wanted else None,
        torch.from_numpy(first) if rule.first_gradient else None,
    )
