"""Executes requests: sorts the slots of all runs into chunks and spreads them over threads.

How each is computed says strategies.py. A request's strategy follows from the request alone; slots meet in a chunk only
if they have the same strategy, data, model and rule. Requests are taken in an order that their contents decide
(`order.ordered`), each model is trained by one thread with one intra-op thread, and sums are added in chunk order:
the result depends neither on the number of threads nor on the order of the requests.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine import strategies
from reproduce.engine.client_split import ClientSplit, DeviceData
from reproduce.engine.kernels.library import available
from reproduce.engine.layout import layout_of
from reproduce.engine.local import Rows
from reproduce.engine.machine import fast_products, keep_heap, sent, set_cuda_arithmetic
from reproduce.engine.objectives import Objectives
from reproduce.engine.order import ordered
from reproduce.engine.requests import Train, Trained, used_fields
from reproduce.engine.rule import shared
from reproduce.engine.stacking import Chunk, Plans, Slot
from reproduce.engine.strategies import Demand, Strategy
from reproduce.models.model import Model


@dataclass
class Bucket:
    """Slots that may share a chunk, with the number of the request that each belongs to."""

    strategy: Strategy
    work: Demand
    owners: list[int] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """A chunk, what trains it, and the numbers of its slots' requests."""

    chunk: Chunk
    train: Callable[[], Rows]
    owners: list[int]


class Trainer:
    """Runs Train requests with `threads` workers.

    strategy: forces one way of computing (tests and benchmarks). precision: see `settings.PRECISIONS`.
    `used` says how it was computed, for the provenance.
    """

    def __init__(self, threads: int = 1, strategy: str = "auto", precision: str = "float32") -> None:
        self.threads, self.forced, self.arithmetic = threads, strategies.check(strategy), precision
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

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """The results of `function` on `items`, in their order, computed by the trainer's threads."""
        return self.pool.map(function, items) if self.pool and len(items) > 1 else map(function, items)

    def train(self, jobs: Sequence[tuple[ClientSplit, Train]]) -> list[Trained]:
        """Answers in the order of the requests. Raises UserError for a request that nothing can compute."""
        order = ordered(jobs)
        collectors = {i: Collector(*jobs[i]) for i in order}
        plans = Plans()
        # buckets: what may train together; calls: chunks of these, one per thread at a time
        calls = [call for bucket in self._buckets(jobs, order) for call in self._calls(bucket, plans)]
        for call, (rows, cpu) in zip(calls, self.map(_clocked, [call.train for call in calls]), strict=True):
            slots, steps = call.chunk.slots, call.chunk.steps  # processor time is shared out by steps
            for owner, share in zip(call.owners, (cpu * steps / steps.sum()).tolist(), strict=True):
                collectors[owner].cpu += share
            row = np.array([slot.row for slot in slots])  # places in the requests
            for owner, row_of, rows_of in _by_owner(call.owners, row, rows):
                collectors[owner].add(row_of, rows_of)
        return [collectors[i].result() for i in range(len(jobs))]

    def _buckets(self, jobs: Sequence[tuple[ClientSplit, Train]], order: list[int]) -> list[Bucket]:
        """All slots: together is what has the same strategy, data, model and rule, as far as the strategy wants it."""
        buckets: dict[object, Bucket] = {}
        for i in order:
            split, request = jobs[i]
            work = demand_of(split, request)
            strategy = strategies.choose(work, self.forced)
            apart = i if strategy.single & work.fields else None
            key = strategy.name, split.device_data, request.model, shared(request.rule), apart
            bucket = buckets.setdefault(key, Bucket(strategy, work))
            for row in np.flatnonzero(np.asarray(request.steps) > 0):
                bucket.owners.append(i)
                bucket.slots.append(Slot(split, request, int(row)))
        return [bucket for bucket in buckets.values() if bucket.slots]

    def _calls(self, bucket: Bucket, plans: Plans) -> Iterator[Call]:
        """The bucket's slots, longest first, cut into chunks."""
        strategy, work, slots = bucket.strategy, bucket.work, bucket.slots
        device_data, size = slots[0].split.device_data, strategy.size(work, len(slots))
        layout: Any = layout_of(work.model) if work.model else device_data.layout
        strategy.ahead(plans, slots)
        order = sorted(range(len(slots)), key=lambda i: -slots[i].steps)
        if key := strategy.key(work, plans):
            order = sorted(order, key=lambda i: (-slots[i].steps, key(slots[i])))
        together = None if key is None or strategy.mixed else (lambda i: key(slots[i]))
        for part in _cut(order, size, together):
            chunk = Chunk([slots[i] for i in part], layout, plans)
            yield Call(chunk, self._call(strategy, chunk, device_data), [bucket.owners[i] for i in part])

    def _call(self, strategy: Strategy, chunk: Chunk, device_data: Any) -> Callable[[], Rows]:
        """The call that trains `chunk`; notes in `used` how."""
        reduces = self.arithmetic in strategy.precisions
        applied = reduces and (device_data.device.type == "cuda" or self.arithmetic == "bfloat16")
        self.used.add(f"{strategy.name}+{self.arithmetic}" if applied else strategy.name)
        options: dict[str, Any] = {"precision": self.arithmetic} if "bfloat16" in strategy.precisions else {}
        return partial(_fitting, partial(strategy.train, device_data=device_data, **options), chunk)


def _fitting(train: Callable[[Chunk], Rows], chunk: Chunk) -> Rows:
    """The rows of a chunk; where the memory of a GPU is too small for it, those of its halves, one after the other."""
    with suppress(*[torch.OutOfMemoryError] * (len(chunk.slots) > 1)):
        return train(chunk)
    middle = len(chunk.slots) // 2  # the tensors of the attempt are free by now
    parts = [_fitting(train, replace(chunk, slots=part)) for part in (chunk.slots[:middle], chunk.slots[middle:])]
    columns = zip(*(vars(rows).values() for rows in parts), strict=True)
    return Rows(*(None if None in column else torch.cat(column) for column in columns))  # type: ignore[arg-type]


def _clocked(work: Callable[[], Rows]) -> tuple[Rows, float]:
    """The result of `work`, and the processor time of the thread that does it, in seconds."""
    before = time.thread_time()
    return work(), time.thread_time() - before


def demand(device_data: DeviceData | Objectives, model: Model | None, terms: frozenset[str] = frozenset()) -> Demand:
    """The demand by which a strategy is chosen to train `model` on this data; without `terms`, that evaluates it."""
    if not isinstance(device_data, DeviceData):
        return Demand(None, terms, device=device_data.device.type)
    return Demand(model, terms, device_data.problem.sample.shape, device_data.device.type, available(device_data.dtype))


def demand_of(split: ClientSplit, request: Train) -> Demand:
    """The demand of a request. Raises ValueError if the request lacks what its rule needs."""
    return demand(split.device_data, request.model or split.problem.model, used_fields(request))


def _cut(order: list[int], size: int, key: Callable[[int], object] | None) -> Iterator[list[int]]:
    """Consecutive parts of at most `size` and nearly equal length, never across a change of `key`."""
    for _, run in groupby(order, key or (lambda i: 0)):
        alike = list(run)
        for part in np.array_split(alike, -(-len(alike) // size)):
            yield part.tolist()


def _by_owner(owners: list[int], row: np.ndarray, rows: Rows) -> Iterator[tuple[int, np.ndarray, Rows]]:
    """(owner, its row numbers, its rows) of a chunk whose slots belong to `owners`."""
    if len(set(owners)) == 1:
        yield owners[0], row, rows
        return
    of = np.array(owners)
    order = np.argsort(of, kind="stable")
    ends = [*np.flatnonzero(np.diff(of[order])) + 1, len(of)]
    sorting = sent(order, rows.update.device)
    row, rows = row[order], rows.each(lambda x: x.index_select(0, sorting))
    for begin, end in itertools.pairwise([0, *ends]):
        yield int(of[order[begin]]), row[begin:end], rows.each(lambda x, own=slice(begin, end): x[own])  # type: ignore[misc]


KEEP = 16 << 20
"""Bytes of updates up to which a request that wants weighted sums keeps its rows and adds them up at the end."""


class Collector:
    """Gathers the rows of one request, or adds up its weighted sums."""

    def __init__(self, split: ClientSplit, request: Train) -> None:
        self.request = request
        clients, parameters, like = len(request.clients), request.start.shape[-1], request.start

        def zeros(n: int) -> Tensor:
            return torch.zeros(n, parameters, dtype=like.dtype, device=like.device)

        # On the host once, before anything trains that it would wait for.
        self.weights = weights = None if request.weights is None else request.weights.cpu().numpy()  # [M, C]
        self.keeps = weights is None or clients * parameters * like.element_size() <= KEEP
        self.update = zeros(clients if weights is None or self.keeps else len(weights))  # [C, P], or sums [M, P]
        rule = request.rule
        # 1/K sum_k g_k and the estimate of g_0, [C, P] each, where the rule asks for them
        self.mean = zeros(clients) if rule.mean_gradient or rule.first_gradient else None
        self.first = zeros(clients) if rule.first_gradient else None
        self.cpu = 0.0
        self.where = split.statistics
        whole = request.model is None and len(self.where)
        self.statistics = like[..., self.where].expand(clients, -1).clone() if whole else None

    def add(self, place: np.ndarray, rows: Rows) -> None:
        """Stores the results of some clients of the request, or adds their updates to its weighted sums where updates
        are not kept. place: their positions in `request.clients`, one per row of `rows`."""
        row = sent(place, rows.update.device)
        if self.statistics is not None:
            start = self.request.start if self.request.start.dim() == 1 else self.request.start[row]
            ends = rows.buffers if rows.buffers is not None else start[..., self.where] + rows.update[:, self.where]
            self.statistics.index_copy_(0, row, ends)
        if self.keeps:
            self.update.index_copy_(0, row, rows.update)
        else:
            assert self.weights is not None
            _add_weighted(self.update, self.weights.take(place, 1), rows.update)
        for kept, new in ((self.mean, rows.mean_gradient), (self.first, rows.first_gradient)):
            if kept is not None and new is not None:
                kept.index_copy_(0, row, new)

    def result(self) -> Trained:
        weights = self.weights
        if weights is not None and self.keeps:
            sums = torch.zeros(len(weights), self.update.shape[1], dtype=self.update.dtype, device=self.update.device)
            self.update = _add_weighted(sums, weights, self.update)
        return Trained(self.update, self.mean, self.first, self.cpu, weights is not None, self.statistics)


def _add_weighted(sums: Tensor, weights: np.ndarray, update: Tensor) -> Tensor:
    """sums [M, P] += weights [M, C] @ update [C, P]; what does not count must not count as NaN either."""
    for total, weight in zip(sums, weights, strict=True):
        received = weight != 0
        if len(update) == 1:  # a large model: without a copy
            total.add_(update[0], alpha=float(weight[0])) if received.all() else None
        elif received.all():
            total += sent(weight, update.device) @ update
        else:
            where = sent(np.flatnonzero(received), update.device)
            total += sent(weight[received], update.device) @ update[where]
    return sums
