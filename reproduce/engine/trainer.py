"""Executes requests: sorts the slots of all runs into chunks, chooses how each is computed, spreads them over threads.

How a model is run, and why (measured on two cores; `python -m benchmarks` prints the ratios again):

    quadratics                     elementwise on all clients at once
    softmax, up to 10,000 numbers  compiled loop (kernel.py): bound by the interpreter otherwise
    softmax, larger                one matrix product per batch for all siblings (linear.py)
    chains of layers, to 30 MMAC   compiled layers, a sample per vector lane (compiled.py): up to twice what follows
    one hidden layer               stacks of 10 clients, gradients written out (dense.py)
    networks up to 3.6 MMAC        stacks of 5 clients, grouped convolutions, channels-last (local.py)
    larger networks                one client at a time: at the arithmetic peak already

On CUDA there is no compiled code: softmax takes the second way, stacks hold as many models as their share of the memory
does (memory.py), and the last three run as captured graphs (graphs.py) where nothing stands against it.

The second and fourth need a C compiler; where there is none, the ones below them take over.

Chunks are fixed by the requests, each is computed by one thread with one intra-op thread, and sums are added in chunk
order: the result does not depend on the number of threads.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.algorithms.rule import Rule
from reproduce.engine import compiled, graphs, kernel, memory
from reproduce.engine.dense import dense_run
from reproduce.engine.graphs import Lanes
from reproduce.engine.layout import Layout
from reproduce.engine.library import available
from reproduce.engine.linear import sibling_run
from reproduce.engine.local import Rows, autograd_run
from reproduce.engine.machine import fast_products, keep_heap, set_cuda_arithmetic
from reproduce.engine.quadratic import Flat, quadratic_run
from reproduce.engine.reference import reference_run
from reproduce.engine.requests import Train, Trained
from reproduce.engine.slots import Chunk, Plans, Slot, static
from reproduce.engine.task import Arena, QuadraticTask, Task
from reproduce.errors import UserError
from reproduce.problems.models import MLP, Model, Softmax

STRATEGIES = ("auto", "reference", "kernel", "siblings", "compiled", "dense", "stacked", "sequential")
STACK = 5
LARGE = 3_600_000
COMPILED = 30_000_000
SMALL = 10_000


@cache
def layout_of(model: Model) -> Layout:
    return Layout(model)


class Trainer:
    """Runs Train requests with `threads` workers.

    strategy: forces one way of computing (tests and benchmarks). precision: see `settings.PRECISIONS`.
    graphs: run the strategies of `graphs.GRAPHED` as steps on fixed buffers; None: on CUDA, where they are captured.
    `used` says how was computed, for the provenance.
    """

    def __init__(
        self, threads: int = 1, strategy: str = "auto", precision: str = "float32", graphs: bool | None = None
    ) -> None:
        if strategy not in STRATEGIES:
            raise UserError(f"unknown strategy '{strategy}'; known: {', '.join(STRATEGIES)}")
        self.forced, self.arithmetic, self.graphs = strategy, precision, graphs
        self.lanes = cache(Lanes)
        self.used: set[str] = set()
        torch.set_num_threads(1)
        keep_heap()
        set_cuda_arithmetic(precision)
        if fast_products():
            self.used.add("onednn-products")
        self.pool = (
            ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) if threads > 1 else None
        )

    @property
    def precision(self) -> str:
        """The precision that results of this trainer have so far: the one that was set, if any strategy applied it."""
        return self.arithmetic if any(self.arithmetic in how.split("+") for how in self.used) else "float32"

    def close(self) -> None:
        if self.pool:
            self.pool.shutdown()

    def spread(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """The results of `function` on `items`, in their order, computed by the trainer's threads."""
        return self.pool.map(function, items) if self.pool and len(items) > 1 else map(function, items)

    def train(self, jobs: Sequence[tuple[Task, Train]]) -> list[Trained]:
        """Answers in the order of the requests."""
        collectors = [Collector(request) for _, request in jobs]
        work: list[tuple[Chunk, Callable[[], Rows], list[int]]] = []
        plans = Plans()
        for owners, slots in self._buckets(jobs):
            work += self._chunks(slots, owners, plans)
        for (chunk, _, owners), rows in zip(work, self.spread(lambda w: w[1](), work), strict=True):
            row = torch.tensor([slot.row for slot in chunk.slots], device=rows.update.device)
            for owner, row_of, rows_of in _by_owner(owners, row, rows):
                collectors[owner].add(row_of, rows_of)
        return [c.result() for c in collectors]

    def _buckets(self, jobs: Sequence[tuple[Task, Train]]) -> Iterator[tuple[list[int], list[Slot]]]:
        """Slots that may share a stack: same data, same model, same static rule."""
        buckets: dict[object, tuple[list[int], list[Slot]]] = defaultdict(lambda: ([], []))
        for i, (task, request) in enumerate(jobs):
            shared = id(request.teacher) if request.teacher is not None else None
            home = task.problem if isinstance(task, QuadraticTask) else id(task.arena)
            rule = static(request.rule)
            if rule.distill and self._strategy_of(task, request) == "siblings":
                rule, shared = replace(rule, distill=0.0), None  # siblings may have different teachers, or none
            owners, slots = buckets[(home, request.model, rule, shared)]
            for row in np.flatnonzero(np.asarray(request.steps) > 0):
                owners.append(i)
                slots.append(Slot(task, request, int(row)))
        yield from (bucket for bucket in buckets.values() if bucket[1])

    def _chunks(
        self, slots: list[Slot], owners: list[int], plans: Plans
    ) -> list[tuple[Chunk, Callable[[], Rows], list[int]]]:
        task = slots[0].task
        order = sorted(range(len(slots)), key=lambda i: -slots[i].steps)
        if isinstance(task, QuadraticTask):
            chunk = Chunk([slots[i] for i in order], Flat(), plans)  # type: ignore[arg-type]
            self.used.add("quadratic")
            return [(chunk, lambda: quadratic_run(chunk, task), [owners[i] for i in order])]
        model = slots[0].request.model or task.problem.model
        strategy = self._strategy_of(task, slots[0].request)
        run, key, mixed, size = self._recipe(strategy, model, slots, plans)
        if key is not None:
            order = sorted(order, key=lambda i: (-slots[i].steps, key(slots[i])))
        out: list[tuple[Chunk, Callable[[], Rows], list[int]]] = []
        for part in _cut(order, size, None if key is None or mixed else (lambda i: key(slots[i]))):
            chunk = Chunk([slots[i] for i in part], layout_of(model), plans)
            out.append((chunk, self._call(strategy, run, chunk, task.arena, size), [owners[i] for i in part]))
        return out

    def _call(
        self, strategy: str, run: Callable[..., Rows], chunk: Chunk, arena: Arena, size: int
    ) -> Callable[[], Rows]:
        """The call that trains `chunk`; notes in `used` how."""
        cuda = arena.device.type == "cuda"
        how = [strategy]
        applies = {"tf32": cuda, "bfloat16": strategy in ("stacked", "sequential")}
        if applies.get(self.arithmetic):
            how.append(self.arithmetic)
        if cuda and strategy in ("stacked", "dense"):
            how.append(f"{size} at most")
        lanes = self.lanes(arena.device)
        call = partial(lanes.eager, run, chunk, arena) if cuda else partial(run, chunk, arena)
        if strategy in graphs.GRAPHED and (cuda if self.graphs is None else self.graphs):
            obstacle = graphs.obstacle(chunk, arena)
            how.append(f"no graph: {obstacle}" if obstacle else "graph")
            if not obstacle:
                call = partial(lanes.graph, chunk, arena, strategy, self.arithmetic)
        self.used.add("+".join(how))
        return call

    def _stack(self, cpu: int, model: Model, slots: list[Slot]) -> int:
        """Models per stack: `cpu` of them on the CPU, what the device's memory allows on CUDA."""
        arena: Arena = slots[0].task.arena  # type: ignore[union-attr]
        if arena.device.type == "cpu":
            return cpu
        sample, batch = tuple(arena.train_x.shape[1:]), arena.problem.batches.size
        each = memory.model_bytes(model, sample, batch, slots[0].request.rule, arena.dtype.itemsize)
        return memory.stack_size(each, torch.cuda.get_device_properties(arena.device).total_memory)

    def _recipe(
        self, strategy: str, model: Model, slots: list[Slot], plans: Plans
    ) -> tuple[Callable[..., Rows], Callable[[Slot], object] | None, bool, int]:
        """(function, key by which slots are sorted, may a chunk mix keys, chunk size) of a strategy."""
        ids: dict[object, int] = {}

        def batches(slot: Slot) -> int:
            return ids.setdefault(plans.key(slot), len(ids))

        if strategy == "kernel":
            return kernel.kernel_run, batches, True, max(4, -(-len(slots) // 8))
        if strategy == "siblings":
            return sibling_run, batches, False, 64
        if strategy == "compiled":
            return compiled.compiled_run, None, True, max(1, len(slots) // 16)
        if strategy == "dense":
            return dense_run, None, True, self._stack(2 * STACK, model, slots)
        if strategy == "reference":
            return reference_run, None, True, 1
        run = partial(autograd_run, precision=self.arithmetic)
        if strategy == "sequential":
            return run, None, True, 1
        size = self._stack(STACK, model, slots)
        if model.batch_statistics:
            return run, lambda s: (plans.get(s) >= 0).sum(1).tobytes(), False, size
        return run, None, True, size

    def _strategy_of(self, task: Task, request: Train) -> str:
        if isinstance(task, QuadraticTask):
            return "quadratic"
        return self.strategy(request.model or task.problem.model, request.rule, task.arena)

    def strategy(self, model: Model, rule: Rule, arena: Arena) -> str:
        """The strategy table above as code."""
        if self.forced != "auto":
            return self.forced
        cpu = arena.device.type == "cpu"
        if isinstance(model, Softmax) and not rule.mask:
            small = model.parameters <= SMALL and cpu and not rule.distill
            return "kernel" if small and available(arena.dtype) else "siblings"
        sample = tuple(arena.train_x.shape[1:])
        if (
            cpu
            and not (rule.distill or rule.mask)
            and forward_macs(model) <= COMPILED
            and compiled.program(model, sample, arena.dtype)
        ):
            return "compiled"
        if isinstance(model, MLP) and not rule.distill and not rule.mask:
            return "dense"
        return "sequential" if forward_macs(model) > LARGE else "stacked"


def compiled_form(arena: Arena, model: Model) -> compiled.Program | None:
    """The model's compiled form where that is how it is computed."""
    if arena.device.type != "cpu" or isinstance(model, Softmax) or forward_macs(model) > COMPILED:
        return None
    return compiled.program(model, tuple(arena.train_x.shape[1:]), arena.dtype)


@cache
def forward_macs(model: Model) -> int:
    """Multiply-accumulates of one forward pass; the side length of the input is the model's or 32."""
    channels, side = getattr(model, "channels", 3), getattr(model, "size", 32)
    features = getattr(model, "features", None)
    return model.cost((features,) if features else (channels, side, side)).macs


def _cut(order: list[int], size: int, key: Callable[[int], object] | None) -> Iterator[list[int]]:
    """Consecutive parts of at most `size` and nearly equal length, never across a change of `key`."""
    for _, run in groupby(order, key or (lambda i: 0)):
        alike = list(run)
        for part in np.array_split(alike, -(-len(alike) // size)):
            yield part.tolist()


def _by_owner(owners: list[int], row: Tensor, rows: Rows) -> Iterator[tuple[int, Tensor, Rows]]:
    """(owner, his row numbers, his rows) of a chunk whose slots belong to `owners`."""
    if len(set(owners)) == 1:
        yield owners[0], row, rows
        return
    of = np.array(owners)
    order = np.argsort(of, kind="stable")
    ends = [*np.flatnonzero(np.diff(of[order])) + 1, len(of)]
    sorting = torch.from_numpy(order).to(row.device)
    row, rows = row[sorting], rows.take(sorting)
    for begin, end in itertools.pairwise([0, *ends]):
        yield int(of[order[begin]]), row[begin:end], rows.part(begin, end)


KEEP = 16 << 20
"""Bytes of updates up to which a request that wants weighted sums keeps its rows and adds them up at the end."""


class Collector:
    """Gathers the rows of one request, or adds up its weighted sums."""

    def __init__(self, request: Train) -> None:
        self.request = request
        clients, parameters, like = len(request.clients), request.start.shape[-1], request.start

        def zeros(n: int) -> Tensor:
            return torch.zeros(n, parameters, dtype=like.dtype, device=like.device)

        weights = request.weights
        self.keeps = weights is None or clients * parameters * like.element_size() <= KEEP
        self.update = zeros(clients if weights is None or self.keeps else len(weights))
        rule = request.rule
        self.mean = zeros(clients) if rule.mean_gradient or rule.first_gradient else None
        self.first = zeros(clients) if rule.first_gradient else None

    def add(self, row: Tensor, rows: Rows) -> None:
        """`rows` are the request's clients `row`."""
        if self.keeps:
            self.update.index_copy_(0, row, rows.update)
        else:
            assert self.request.weights is not None
            _add_weighted(self.update, self.request.weights.index_select(1, row), rows.update)
        for kept, new in ((self.mean, rows.mean_gradient), (self.first, rows.first_gradient)):
            if kept is not None and new is not None:
                kept.index_copy_(0, row, new)

    def result(self) -> Trained:
        weights = self.request.weights
        if weights is not None and self.keeps:
            sums = torch.zeros(len(weights), self.update.shape[1], dtype=self.update.dtype, device=self.update.device)
            return Trained(_add_weighted(sums, weights, self.update), self.mean, self.first)
        return Trained(self.update, self.mean, self.first)


def _add_weighted(sums: Tensor, weights: Tensor, update: Tensor) -> Tensor:
    """sums [M, P] += weights [M, C] @ update [C, P]; what does not count must not count as NaN either."""
    for total, weight in zip(sums, weights, strict=True):
        heard = weight != 0
        if len(update) == 1:  # a large model: without a copy
            total.add_(update[0], alpha=float(weight)) if bool(heard) else None
        elif bool(heard.all()):
            total += weight @ update
        else:
            total += weight[heard] @ update[heard]
    return sums
