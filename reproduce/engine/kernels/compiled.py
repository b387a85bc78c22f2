"""Small convolutional networks in compiled code: chains of layers (chain.py), whose gradient is one call per step.

`convnet.c` runs the list of layers forwards and backwards with a sample in every lane of the processor's vectors,
`channels.c` with a channel: the first is faster as long as batches fill the lanes.

Without a C compiler (library.py) the stacked strategy takes over, and the results' provenance says so.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import astuple
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.client_split import DeviceData
from reproduce.engine.kernels.chain import CONV, LINEAR, POOL, RELU, Trace, chain
from reproduce.engine.kernels.library import LINE, Descent, addresses, aligned, call, level, library
from reproduce.engine.layout import Layout
from reproduce.engine.local import Rows
from reproduce.engine.stacking import Chunk
from reproduce.engine.terms import Augmentation
from reproduce.models.model import Model

PIECE = 32
"""Most samples that go through all layers together."""
SPARE = 1.1
"""Lanes per sample beyond which channels fill the lanes better than samples (`python -m benchmarks choice`)."""
CACHE = 6 << 20
"""Bytes of activations and gradients beyond which a piece holds at most half as many."""
BLOCK = 1 << 20
"""Factors of dropout layers that are drawn at a time."""
Samples = tuple[Tensor, Tensor, np.ndarray, int]
"""x [n, ...] and labels [n] of samples, index [K, B] that names those of each step (-1 behind a short batch), and the
batch size by which pieces are cut."""


class Network(ctypes.Structure):
    """The struct of that name in convnet.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("layers", "buffers")),
        *((name, ctypes.c_int64) for name in ("count", "piece")),
        *((name, ctypes.c_void_p) for name in ("work", "packed", "rows")),
    )


class Program:
    """A traced model for samples of one type. Its functions may be called from many threads at once.

    Two layouts of the activations serve it: a sample in every lane (convnet.c), or a channel (channels.c), which fills
    the lanes at any batch size but needs filters of whole vectors.
    """

    def __init__(self, trace: Trace, layout: Layout, dtype: torch.dtype, lanes: int) -> None:
        self.trace, self.layout, self.dtype, self.lanes = trace, layout, dtype, lanes
        self.library = library(dtype)
        self.drops = sum(n for _, n in trace.masks)
        self.layers = np.array([astuple(s) for s in trace.layers], dtype=np.int64)
        self.filters = [trace.names[s.weight] for s in trace.layers if s.kind == CONV]
        self.local = threading.local()
        self.wide = self._may_be_wide()
        numbers = sum(b.padded(b.border) + b.padded(b.gradient_border) for b in trace.buffers)
        self.most = max(1, PIECE // lanes)  # vectors of a piece
        while self.most > 1 and self.most * lanes * numbers * dtype.itemsize > CACHE:
            self.most //= 2

    def _may_be_wide(self) -> bool:
        """Tells whether the channels of all layers fill vectors, as channels.c needs them."""
        buffers, lanes = self.trace.buffers, self.lanes
        filters = all(buffers[s.target].channels % lanes == 0 for s in self.trace.layers if s.kind == CONV)
        return filters and all(buffers[s.source].size >= lanes for s in self.trace.layers if s.kind == LINEAR)

    def by_channel(self, batch: int) -> bool:
        """Returns whether a channel in every lane is faster for batches of this size. Without filters for all small
        ones."""
        lanes = self._lanes(batch) * -(-batch // self._lanes(batch))
        return self.wide and (lanes > SPARE * batch or (not self.filters and batch <= 2 * PIECE))

    def _lanes(self, batch: int) -> int:
        """Lanes of a piece, whole vectors of them, such that a batch leaves few of them empty."""
        return self.lanes * min(range(1, self.most + 1), key=lambda v: (-(-batch // (v * self.lanes)) * v, -v))

    def piece(self, batch: int) -> int:
        """Samples of a piece, at least a vector of them."""
        return min(self._lanes(batch), max(batch, self.lanes))

    def buffers(self, wide: bool) -> tuple[np.ndarray, int]:
        """Rows of the struct Buffer, and numbers per sample of them all.

        The layout with a sample in every lane has borders, and behind each image zeros that a row's last vector meets.
        What only a pool reads gives its place to its gradient, if the windows cover all of it.
        """
        rows, at = [], 0
        pools = {s.source for s in self.trace.layers if s.kind == POOL}
        kept = {s.source for s in self.trace.layers if s.kind == RELU}
        for n, b in enumerate(self.trace.buffers):
            border, gradient_border, zeros = (0, 0, 0) if wide else (b.border, b.gradient_border, 1)
            shared = n in pools - kept and b.height % 2 == b.width % 2 == 0
            border = gradient_border if shared else border
            slopes = at if shared else at + b.padded(border) + zeros
            rows.append((b.channels, b.height, b.width, border, gradient_border, at, slopes))
            at = slopes + b.padded(gradient_border) + zeros
        return np.array(rows, dtype=np.int64), at

    def turned(self, rows: Tensor, back: bool = False) -> Tensor:
        """Flat models [.., P] with filters as channels.c wants them, [k, k, in, out], in place; or `back`."""
        for name in self.filters:
            outputs, inputs, k, _ = self.trace.shapes[name]
            at = self.layout.offsets[name]
            part = rows.narrow(-1, at, outputs * inputs * k * k)
            if back:
                part.copy_(part.reshape(-1, k, k, inputs, outputs).permute(0, 4, 3, 1, 2).reshape(part.shape))
            else:
                part.copy_(part.reshape(-1, outputs, inputs, k, k).permute(0, 3, 4, 2, 1).reshape(part.shape))
        return rows

    def steps(self, run: Descent, y: Tensor, samples: Samples, masks: Tensor, at: int, wide: bool) -> None:
        """Steps at, at + 1, .. of a local run on the flat model y [P], in place; `wide`: y is `turned`. masks [K, ..]:
        the factors of the dropout layers."""
        x, labels, index, batch = samples
        scratch = self._scratch(min(batch, PIECE) if wide else self.piece(batch), wide)
        full, pointers, before = masks.shape[1] // max(1, self.drops), [], 0
        for _, n in self.trace.masks:
            pointers.append(masks.data_ptr() + before * masks.element_size())
            before += full * n
        call(
            self.library.channel_steps if wide else self.library.local_steps,
            *(ctypes.byref(scratch.network), ctypes.byref(run), at, at + len(index)),
            *(y, scratch.gradient, self._parameters(y), scratch.gradients),
            *(x, labels, index, index.shape[1], batch),
            *(addresses(pointers), len(pointers), masks.shape[1]),
        )

    def masks(self, generator: torch.Generator, steps: int, full: int) -> Tensor:
        """Factors [steps, B n_1 + B n_2 + ..] of the dropout layers for `full` = B samples: the draws of `ops.One`.

        They are made in place, since every call of torch waits for Python's lock.
        """
        draws = torch.empty((steps, full * self.drops)).uniform_(generator=generator)
        sizes, rates = [full * n for _, n in self.trace.masks], [p for p, _ in self.trace.masks]
        if len(set(rates)) == 1:
            sizes, rates = [draws.shape[1]], rates[:1]
        for part, p in zip(draws.split(sizes, dim=1), rates, strict=True):
            part.ge_(p)
        factors = draws.to(self.dtype)
        for part, p in zip(factors.split(sizes, dim=1), rates, strict=True):
            part.mul_(1 / (1 - p))
        return factors

    def logits(self, y: Tensor, x: Tensor, index: np.ndarray) -> Tensor:
        """[n, classes] of the samples x[index] under the flat model y [P], without dropout."""
        out = torch.empty((len(index), self.trace.buffers[-1].channels), dtype=self.dtype)
        scratch = self._scratch(self.piece(len(index)), False)
        index = np.ascontiguousarray(index, dtype=np.int64)
        call(self.library.logits, ctypes.byref(scratch.network), self._parameters(y), x, index, len(index), out)
        return out

    def _parameters(self, y: Tensor) -> Any:
        return addresses([y.data_ptr() + at * y.element_size() for at in self.layout.offsets.values()])

    def _scratch(self, piece: int, wide: bool) -> Scratch:
        """This thread's memory for pieces of so many samples."""
        known: dict[str, Scratch] = self.local.__dict__
        key = f"{piece} {wide}"
        return known.get(key) or known.setdefault(key, Scratch(self, piece, wide))


class Scratch:
    """Memory of one thread: activations (whose borders are zero and stay so), filters, features, a gradient."""

    def __init__(self, program: Program, piece: int, wide: bool) -> None:
        trace, lanes, dtype = program.trace, program.lanes, program.dtype
        self.buffers, numbers = program.buffers(wide)
        self.work = aligned(numbers * piece, dtype)
        filters = [
            trace.buffers[s.source].channels * trace.buffers[s.target].channels * s.kernel**2
            for s in trace.layers
            if s.kind == CONV
        ]
        self.filters = [torch.zeros(size, dtype=dtype) for size in filters for _ in range(2)]
        self.packed = addresses([f.data_ptr() for f in self.filters])
        widest = max(-(-trace.buffers[s.source].size // lanes) * lanes for s in trace.layers if s.kind == LINEAR)
        self.rows = aligned(2 * widest * piece, dtype)  # values, and their gradient where channels are in the lanes
        self.gradient = torch.zeros(program.layout.total, dtype=dtype)
        self.gradients = program._parameters(self.gradient)
        self.network = Network(
            program.layers.ctypes.data,
            self.buffers.ctypes.data,
            len(program.layers),
            piece,
            self.work.data_ptr(),
            ctypes.cast(self.packed, ctypes.c_void_p),
            self.rows.data_ptr(),
        )


def compiled_run(chunk: Chunk, device_data: DeviceData) -> Rows:
    """Train the chunk's clients one after another in compiled code."""
    code = program(chunk.layout.model, tuple(device_data.train_x.shape[1:]), device_data.dtype)
    start = chunk.start
    rule, index, steps = chunk.rule, chunk.batches(), chunk.steps  # index [A, K, B], steps [A]
    correction, anchor = chunk.stack("correction"), chunk.stack("anchor")
    y = start.clone(memory_format=torch.contiguous_format)  # [A, P], moved in place
    counts, generators, full = chunk.first_counts(), chunk.generators(device_data.device), chunk.full
    wide = code.by_channel(full)

    def own(row: Tensor) -> Tensor:
        """A vector of the rule as the C sources want it."""
        return code.turned(row.clone()) if wide else row.contiguous()

    if wide:
        code.turned(y)
    wanted = rule.mean_gradient or bool(rule.first_gradient)
    total = torch.zeros_like(y) if wanted else None
    first = torch.zeros_like(y) if rule.first_gradient else None
    for a in range(len(y)):
        velocity = torch.zeros_like(y[a]) if rule.momentum else None
        pull = own((start if anchor is None else anchor)[a]) if chunk.mus[a] else None
        push = None if correction is None else own(correction[a])
        vectors = (push, pull, velocity, None if total is None else total[a], None if first is None else first[a])
        pointers = [None if v is None else v.data_ptr() for v in vectors]
        run = Descent(chunk.rates[a], rule.momentum, rule.decay, chunk.mus[a], y.shape[1], int(counts[a]), *pointers)
        augment = Augmentation([chunk.slots[a]], device_data, full)
        block = max(1, BLOCK // max(1, full * code.drops)) if augment.draws is None else 1
        for k in range(0, int(steps[a]), block):
            here = index[a, k : min(k + block, int(steps[a]))]
            masks = code.masks(generators[a], len(here), full)
            code.steps(run, y[a], _samples(device_data, augment, here, full), masks, k, wide)
    if total is not None:
        total /= total.new_tensor(np.maximum(steps, 1))[:, None]
    for rows in (y, total, first):
        if wide and rows is not None:
            code.turned(rows, back=True)
    return Rows(y.sub_(start), total, first)


def _samples(device_data: DeviceData, augment: Augmentation, index: np.ndarray, full: int) -> Samples:
    """The samples `index` of batches of `full`, in the training set or in an augmented copy."""
    if augment.draws is None:
        return device_data.train_x, device_data.train_y, index, full
    where = torch.from_numpy(index[index >= 0])
    x, count = augment(device_data.train_x[where]).contiguous(), len(where)
    return x, device_data.train_y[where], np.arange(count)[None], count


def program(model: Model, sample: tuple[int, ...], dtype: torch.dtype) -> Program:
    """The compiled form of a chain of layers, for the level in force."""
    here = level()
    assert here is not None
    return _program(model, sample, dtype, here.width // dtype.itemsize)


@cache
def _program(model: Model, sample: tuple[int, ...], dtype: torch.dtype, lanes: int) -> Program:
    trace = chain(model, sample)
    assert trace is not None
    return Program(trace, Layout(model), dtype, lanes)


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
    widths = np.array([plan.shape[1] for plan in plans])
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
        *(x, width, device_data.train_y, addresses([plan.ctypes.data for plan in plans]), widths),
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
