"""Softmax regression with few parameters: the local runs of a chunk's clients in one call of softmax.c.

Small models are bound by the interpreter and by memory, not by arithmetic; compiled, a local step of logistic
regression on a9a costs less than one torch operator.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.device_data import DeviceData
from reproduce.engine.kernels.library import LINE, Descent, addresses, aligned, call, library
from reproduce.engine.local import Rows
from reproduce.engine.stacking import Chunk


def kernel_run(chunk: Chunk, device_data: DeviceData) -> Rows:
    """Train a chunk in compiled code, in one call; CPU only."""
    start = chunk.start
    rule, dtype = chunk.rule, device_data.dtype
    classes, features = chunk.layout.shapes[0]
    x = _padded(device_data)

    def pack(rows: Tensor | None) -> np.ndarray | None:
        """[A, P] -> [A, classes, width]: weights, bias, zeros. Small operations of numpy cost half of torch's."""
        if rows is None:
            return None
        packed = aligned(len(rows) * classes * x.shape[1], dtype).numpy().reshape(len(rows), classes, -1)
        packed[:, :, :features] = rows.numpy()[:, : classes * features].reshape(-1, classes, features)
        packed[:, :, features] = rows.numpy()[:, classes * features :]
        return packed

    def unpack(packed: np.ndarray) -> np.ndarray:
        weights = packed[:, :, :features].reshape(len(packed), classes * features)
        return np.concatenate([weights, packed[:, :, features]], axis=1)

    out = pack(start)  # moved in place
    assert out is not None
    anchor = chunk.stack("anchor")
    wanted = rule.mean_gradient or bool(rule.first_gradient)
    vectors = (
        pack(chunk.stack("correction")),
        pack((start if anchor is None else anchor) if any(chunk.mus) else None),
        np.zeros_like(out) if rule.momentum else None,
        total := np.zeros_like(out) if wanted else None,
        first := np.zeros_like(out) if rule.first_gradient else None,
    )
    _call(chunk, device_data, x, out, vectors)
    if total is not None:
        total /= np.maximum(chunk.steps, 1).astype(total.dtype)[:, None, None]
    left = Rows(torch.from_numpy(unpack(out) - start.numpy()))
    left.mean_gradient, left.first_gradient = (v if v is None else torch.from_numpy(unpack(v)) for v in (total, first))
    return left


def _call(
    chunk: Chunk, device_data: DeviceData, x: Tensor, out: np.ndarray, vectors: tuple[np.ndarray | None, ...]
) -> None:
    """Calls softmax.c; out is [A, classes, width], so are the vectors of `Descent`, or absent."""
    rule, (count, classes, width) = chunk.rule, out.shape
    plans = [np.ascontiguousarray(plan) for plan in chunk.plans.all(chunk.slots)]  # [steps, B] each
    counts, steps = chunk.first_counts().tolist(), np.ascontiguousarray(chunk.steps, dtype=np.int64)
    places = [None if v is None else v.ctypes.data for v in vectors]
    rows = [
        Descent(
            *(chunk.rates[a], rule.momentum, rule.decay, chunk.mus[a], classes * width, counts[a]),
            *(None if place is None else place + a * out.strides[0] for place in places),
        )
        for a in range(count)
    ]
    done = call(
        library(device_data.dtype).softmax_runs,
        *(x, width, device_data.train_y, addresses([plan.ctypes.data for plan in plans]), plans[0].shape[1]),
        *(steps, count, classes, out, (Descent * count)(*rows)),
    )
    if not done:
        raise MemoryError(f"no memory for a step of {classes} classes and {width} features")


def _padded(device_data: DeviceData) -> Tensor:
    """The training samples with their column of ones and zeros up to whole vectors; made once."""
    if device_data.padded is None:
        flat = device_data.train_x.flatten(1)
        n, features = flat.shape
        lanes = LINE // flat.element_size()
        width = -(-(features + 1) // lanes) * lanes
        padded = aligned(n * width, flat.dtype).view(n, width)
        padded[:, :features] = flat
        padded[:, features] = 1
        device_data.padded = padded  # only when complete: another thread may look at any moment
    return device_data.padded
