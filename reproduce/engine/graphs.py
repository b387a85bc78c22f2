"""The local step on buffers that never move, so that CUDA can record it once and replay it K times without the host.

A `Step` holds a stack of A models, the batch indices of the whole local run and a step counter, all on the device; one
call trains one step of the whole stack and advances the counter. On CUDA that call is captured as a graph; elsewhere
it runs as it is, which is how it is tested. Captured steps are kept and loaded with the next chunk of the same shape.

Clients of unequal K: the stack is not narrowed, as the eager strategies do, because every width would be another graph.
Who has finished stays in the stack and is held still; chunks are sorted by K, so that little is computed in vain.

Capture and streams have never been run: no GPU was at hand. They follow PyTorch's notes on CUDA graphs: warm-up on
a side stream, generators registered, no inputs allocated inside. The first replay of every graph is compared with the
step that it recorded, and a difference ends the job.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from queue import LifoQueue

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.dense import dense_gradient
from reproduce.engine.local import Blocks, Rows, reduced
from reproduce.engine.memory import FLIGHT, KEPT
from reproduce.engine.ops import Stacked
from reproduce.engine.requests import IDLE, asked
from reproduce.engine.stacking import Chunk
from reproduce.engine.strategies import NEEDED, SGD
from reproduce.engine.task import Arena

SERVES = NEEDED | {"model"} | SGD - {"first_gradient"}
"""The fields of `Train` and `Rule` that a step on fixed buffers knows."""
_CAPTURE = threading.Lock()  # one capture at a time in a process


def obstacle(chunk: Chunk, arena: Arena) -> str:
    """What of this chunk a step on fixed buffers cannot do, in words for the provenance; "" if nothing."""
    terms = frozenset[str]().union(*(asked(s.request) for s in chunk.slots))
    reasons = sorted(terms - SERVES - IDLE.keys())
    if arena.problem.augment != "none":
        reasons.append("augmentation")
    if chunk.layout.model.trimmed:
        reasons.append("texts of different length")
    if chunk.layout.model.kind == "alone":
        reasons.append("a module that runs by itself")
    if chunk.layout.buffers:
        reasons.append("running statistics")
    if chunk.layout.model.batch_statistics and any((chunk.plans.get(s) < 0).any() for s in chunk.slots):
        reasons.append("short batches with batch statistics")
    return ", ".join(reasons)


class Step:
    """One local step of the models of a chunk like `chunk`: same model, rule, number of slots and terms of the update.

    y <- y - lr (1 - decay)^k v with v = momentum v + g + correction + mu (y - anchor), as in `local.Stepper`.
    """

    def __init__(self, chunk: Chunk, arena: Arena, strategy: str, precision: str) -> None:
        self.arena, self.layout, self.rule, self.precision = arena, chunk.layout, chunk.rule, precision
        self.models, self.batch = len(chunk.slots), chunk.plans.get(chunk.slots[0]).shape[1]
        self.gradient = self._dense if strategy == "dense" else self._autograd
        self.uniform = bool((chunk.steps == chunk.steps[0]).all())
        length = _capacity(chunk)

        def zeros(*shape: int, dtype: torch.dtype = arena.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=arena.device)

        def parameters(wanted: bool) -> Blocks:
            return self.layout.blocks(zeros(self.models, self.layout.total)) if wanted else []

        self.k, self.steps = zeros(1, dtype=torch.int64), zeros(self.models, dtype=torch.int64)
        self.plan = zeros(length, self.models, self.batch, dtype=torch.int64)
        self.weight = zeros(length, self.models, self.batch)
        self.rate, self.mu = zeros(length, self.models), zeros(self.models)
        self.start = zeros(self.models, self.layout.total)
        self.y = parameters(True)
        self.correction = parameters(chunk.has("correction"))
        self.anchor = parameters(any(chunk.mus))
        self.velocity = parameters(bool(self.rule.momentum))
        self.total = parameters(self.rule.mean_gradient)
        drops = any(kind.startswith("Dropout") for _, kind, _, _ in self._layers())
        self.generators = [torch.Generator(arena.device) for _ in range(self.models if drops else 0)]
        self.graph: torch.cuda.CUDAGraph | None = None

    def _layers(self) -> list[tuple[str, str, tuple[int, ...], int]]:
        return self.layout.model.cost(tuple(self.arena.train_x.shape[1:])).layers

    def load(self, chunk: Chunk) -> None:
        """Fill the buffers for step 0 of `chunk`."""
        index = chunk.batches().swapaxes(0, 1)
        keep = index >= 0
        weight = keep / np.maximum(keep.sum(2, keepdims=True), 1)
        self.plan[: len(index)].copy_(torch.from_numpy(np.where(keep, index, 0)))
        self.weight[: len(index)].copy_(torch.from_numpy(weight))
        self.k.zero_()
        rates = np.outer((1 - self.rule.decay) ** np.arange(len(self.rate)), chunk.rates)
        for buffer, values in ((self.steps, chunk.steps), (self.rate, rates), (self.mu, chunk.mus)):
            buffer.copy_(torch.from_numpy(np.asarray(values)))
        start = chunk.stack("start")
        assert start is not None
        self.start.copy_(start)
        self._fill(self.y, start)
        anchor = chunk.stack("anchor") if self.anchor else None
        self._fill(self.anchor, start if anchor is None else anchor)
        if self.correction:
            self._fill(self.correction, chunk.stack("correction"))
        for block in (*self.velocity, *self.total):
            block.zero_()
        for generator, seed in zip(self.generators, chunk.dropout_seeds(), strict=False):
            generator.manual_seed(seed)

    def _fill(self, blocks: Blocks, rows: Tensor | None) -> None:
        if blocks and rows is not None:
            for block, new in zip(blocks, self.layout.blocks(rows), strict=True):
                block.copy_(new)

    def __call__(self) -> None:
        """The step that the counter points at, for all models; reads and writes nothing but the buffers."""
        index = self.plan.index_select(0, self.k)[0]
        weight = self.weight.index_select(0, self.k)[0]
        x, labels = (v.index_select(0, index.flatten()) for v in (self.arena.train_x, self.arena.train_y))
        grads = self.gradient(x.view(*index.shape, *x.shape[1:]), labels.view(index.shape), weight)
        with torch.no_grad():
            self._update(grads)
            self.k += 1

    def _dense(self, x: Tensor, labels: Tensor, weight: Tensor) -> Blocks:
        return dense_gradient(self.y, x.flatten(2), labels, weight)

    def _autograd(self, x: Tensor, labels: Tensor, weight: Tensor) -> Blocks:
        leaves = [b.detach().requires_grad_() for b in self.y]
        ops = Stacked(self.models, self.generators, self.batch)
        p = dict(zip(self.layout.names, leaves, strict=True))
        with reduced(self.precision, x.device):
            logits = self.layout.model.forward(ops, p, ops.images(x)).to(x.dtype)
        return list(torch.autograd.grad(ops.losses(logits, labels, weight), leaves))

    def _update(self, grads: Blocks) -> None:
        """Move the models that have not finished; a finished one is not even multiplied, it may hold NaN."""
        rate = self.rate.index_select(0, self.k)[0]
        done = self.k >= self.steps
        for i, (y, g) in enumerate(zip(self.y, grads, strict=True)):
            shape = (-1, *[1] * (y.dim() - 1))
            if self.total:
                self.total[i] += g if self.uniform else g.masked_fill(done.view(shape), 0)
            if self.correction:
                g = g + self.correction[i]
            if self.anchor:
                g = torch.addcmul(g, y - self.anchor[i], self.mu.view(shape))
            if self.velocity:
                g = self.velocity[i].mul_(self.rule.momentum).add_(g)
            if self.uniform:
                y.addcmul_(g, rate.view(shape), value=-1)
            else:
                y.copy_(torch.where(done.view(shape), y, torch.addcmul(y, g, rate.view(shape), value=-1)))

    def run(self, chunk: Chunk) -> Rows:
        """Train `chunk`, as the function that the step's strategy is named after."""
        self.load(chunk)
        call: Callable[[], None] = self if self.arena.device.type == "cpu" else self._captured(chunk).replay
        for _ in range(int(chunk.steps.max())):
            call()
        mean = self.layout.rows(self.total) / self.steps[:, None] if self.total else None
        return Rows(self.layout.rows(self.y).sub_(self.start), mean)

    def _captured(self, chunk: Chunk) -> torch.cuda.CUDAGraph:
        """The graph of this step, recorded at the first call; the buffers are loaded with step 0 of `chunk`."""
        if self.graph is None:
            with _CAPTURE:
                self.graph = self._capture(chunk)
        return self.graph

    def _capture(self, chunk: Chunk) -> torch.cuda.CUDAGraph:
        here, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            for _ in range(3):  # libraries choose algorithms and allocate workspaces in their first calls
                self.load(chunk)
                self()
        here.wait_stream(side)
        expected = self.layout.rows(self.y)
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        self.load(chunk)
        # thread_local: other lanes may go on allocating meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self()
        graph.replay()
        if not torch.allclose(self.layout.rows(self.y), expected, rtol=1e-5, atol=1e-6, equal_nan=True):
            raise RuntimeError(f"the CUDA graph of {self.layout.model} computes something else than its step")
        self.load(chunk)
        return graph


def _capacity(chunk: Chunk) -> int:
    """Steps that the buffers hold: a power of two, so that few lengths of local runs need a graph of their own."""
    return 1 << int(chunk.steps.max() - 1).bit_length()


class Lane:
    """What one chunk at a time needs on a device: a stream of its own on CUDA, and the steps kept for its graphs."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.steps: OrderedDict[Hashable, Step] = OrderedDict()

    def run(self, call: Callable[[Lane], Rows]) -> Rows:
        """`call(self)` on this lane's stream; complete when it returns."""
        if self.stream is None:
            return call(self)
        home = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(home)
        with torch.cuda.stream(self.stream):
            rows = call(self)
        self.stream.synchronize()
        for tensor in (rows.update, rows.mean_gradient, rows.first_gradient):
            if tensor is not None:
                tensor.record_stream(home)  # its memory must not come back to this lane while it is being summed up
        return rows

    def step(self, chunk: Chunk, arena: Arena, strategy: str, precision: str) -> Step:
        """The step for chunks like this one, made or kept."""
        terms = chunk.has("correction"), any(chunk.mus), bool((chunk.steps == chunk.steps[0]).all())
        shape = len(chunk.slots), _capacity(chunk), chunk.plans.get(chunk.slots[0]).shape[1]
        key = (arena, chunk.layout.model, strategy, precision, chunk.rule, terms, shape)
        if key in self.steps:
            self.steps.move_to_end(key)
            return self.steps[key]
        while len(self.steps) >= KEPT:
            self.steps.popitem(last=False)
        self.steps[key] = step = Step(chunk, arena, strategy, precision)
        return step


class Lanes:
    """The lanes of a device. The last one to be given back is taken first: one thread meets its own graphs again."""

    def __init__(self, device: torch.device) -> None:
        self.free: LifoQueue[Lane] = LifoQueue()
        for _ in range(FLIGHT):
            self.free.put(Lane(device))

    def run(self, call: Callable[[Lane], Rows]) -> Rows:
        """`call` on a free lane; waits for one."""
        lane = self.free.get()
        try:
            return lane.run(call)
        finally:
            self.free.put(lane)

    def eager(self, run: Callable[[], Rows]) -> Rows:
        """A strategy as it is, on a stream of its own."""
        return self.run(lambda lane: run())

    def graph(self, chunk: Chunk, arena: Arena, strategy: str, precision: str) -> Rows:
        """A strategy as a captured step (on the CPU: the step without capture)."""
        return self.run(lambda lane: lane.step(chunk, arena, strategy, precision).run(chunk))
