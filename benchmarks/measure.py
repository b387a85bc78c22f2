"""Timing side by side: A B A B, medians and spreads of the ratio."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.naive import naive_round
from benchmarks.works import Work
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.layout import Layout
from reproduce.engine.machine import fast_products
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.models.model import Model
from reproduce.modules.ops import One
from reproduce.settings import Settings, settings


@dataclass(frozen=True)
class Ratio:
    """How often faster B is than A: median, smallest and largest of the repeats; seconds are medians per call."""

    median: float
    low: float
    high: float
    a: float
    b: float


def seconds(call: Callable[[], object], least: float = 0.5) -> float:
    """Seconds per call, repeated for at least `least` seconds."""
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < least:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls


def compare(a: Callable[[], object], b: Callable[[], object], repeats: int = 5, least: float = 0.5) -> Ratio:
    """Time A and B in turn after one warm call each."""
    a()
    b()
    pairs = [(seconds(a, least), seconds(b, least)) for _ in range(repeats)]
    ratios = [x / y for x, y in pairs]
    x, y = np.median([p[0] for p in pairs]), np.median([p[1] for p in pairs])
    return Ratio(float(np.median(ratios)), min(ratios), max(ratios), float(x), float(y))


def engine_round(
    work: Work, threads: int, strategy: str = "auto", seeds: int = 1, precision: str = "float32"
) -> Callable[[], object]:
    """A call that trains one round of `work` for `seeds` seeds with the engine."""
    here = settings()
    splits = ClientSplits(Settings(here.data, here.store, here.device, threads))
    trainer = Trainer(threads, strategy, precision)
    jobs = [splits.get(work.problem, seed) for seed in range(seeds)]
    starts = [split.initial() for split in jobs]
    counter = iter(range(10**9))
    weights = torch.full((1, work.per_round), 1 / work.per_round, device=here.device)

    def call() -> None:
        r = next(counter)
        requests = []
        for split, start in zip(jobs, starts, strict=True):
            assert isinstance(split, ClassificationSplit)
            clients = np.arange(work.per_round) + r * work.per_round % work.clients
            steps = np.full(work.per_round, work.steps)
            requests.append((split, Train(clients % work.clients, steps, start, 0.01, r, weights=weights)))
        for answer, start in zip(trainer.train(requests), starts, strict=True):
            start += answer.sums[0]

    return call


class Module(nn.Module):
    """A model of the engine as an ordinary torch module."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        layout = Layout(model)
        named = layout.named(layout.initial(0))
        self.tensors = nn.ParameterDict({n.replace(".", "_"): nn.Parameter(t.clone()) for n, t in named.items()})
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        p = {n: self.tensors[n.replace(".", "_")] for n in self.model.shapes}
        ops = _Plain([self.generator] if self.training else [], len(x))
        return self.model.forward(ops, p, x)


class _Plain(One):
    """PyTorch's usual operators: contiguous NCHW pooling, as in any module."""

    def pool(self, x: Tensor, size: int = 2, stride: int = 2, padding: int = 0) -> Tensor:
        return nn.functional.max_pool2d(x, size, stride, padding)


def naive(work: Work, threads: int) -> Callable[[], object]:
    """A call that trains one round of `work` as scripts do, with `threads` intra-op threads."""
    server, data = Module(work.model), work.tensors()
    counter = iter(range(10**9))

    def call() -> None:
        torch.set_num_threads(threads)
        r = next(counter)
        clients = [(r * work.per_round + i) % work.clients for i in range(work.per_round)]
        naive_round(server, data, clients, work.batch, 0.01, work.steps)
        torch.set_num_threads(1)

    return call


def peak(threads: int = 1, size: int = 2048) -> float:
    """GFLOP/s of a float32 matrix product: what the machine can do through this torch."""
    fast_products()
    torch.set_num_threads(threads)
    a, b = torch.randn(size, size), torch.randn(size, size)
    torch.mm(a, b)
    best = min(seconds(lambda: torch.mm(a, b), 0.2) for _ in range(5))
    torch.set_num_threads(1)
    return 2 * size**3 / best / 1e9
