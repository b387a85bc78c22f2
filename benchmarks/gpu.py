"""Every strategy for every model on a GPU, checked against the reference, in one call of less than nine minutes.

Prints the machine's limits, one line per way of running a model, and the best ways: the table from which the strategy
table in `engine/strategies.py` and the rates in `engine/cost.py` are to be chosen
(docs/gpu.md says how). Needs torch and numpy, nothing else.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.measure import seconds
from benchmarks.works import WORKS, Work
from reproduce.engine.machine import set_cuda_arithmetic
from reproduce.engine.memory import FLIGHT
from reproduce.engine.requests import Train
from reproduce.engine.strategies import NAMED, macs
from reproduce.engine.task import ClassificationTask, Tasks
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ConvNet, ResNet, Softmax
from reproduce.settings import PRECISIONS, settings

TOLERANCE = {"float32": 1e-4, "tf32": 0.4, "bfloat16": 0.7}
"""Distance from the reference, relative to the length of the update, that a way may have after two steps.

Rounding switches ReLUs, and deep networks with batch statistics at their random start multiply that: ResNet-18 is 0.02
away after two steps if its start is scaled by 1 + 1e-7, and 0.3 after one step in bfloat16."""
RESIDUAL = 0.05
"""The same in float32 for networks with batch statistics."""

TINY = (
    Work("CNN", ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.5), (1, 8, 8), 4, 4, 8, 4, 3),
    Work("softmax", Softmax(64, 2), (64,), 4, 4, 8, 4, 3, classes=2),
    Work("MLP", MLP(64, 12, 10), (64,), 4, 4, 8, 4, 3),
    Work("residual", ResNet(1, 10, (4, 6), (1, 1), stem_stride=2), (1, 8, 8), 4, 4, 8, 4, 3),
)


def main() -> None:
    """Limits, then samples per second and deviation from the reference of every way, then the best ways."""
    if not torch.cuda.is_available():
        print("no GPU here: nothing measured", file=sys.stderr)
        return
    memory = torch.cuda.get_device_properties(0).total_memory
    print(f"{torch.cuda.get_device_name()}, {memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}\n")
    end = time.perf_counter() + 500
    limits("cuda", 8192, 100)
    report(measure("cuda", WORKS, (10, 100, 1), end, 0.3))


def dry() -> None:
    """The same code on the CPU with tiny models: shows that the script runs, its numbers mean nothing."""
    limits("cpu", 64, 2)
    report(measure("cpu", TINY, (3, 1), time.perf_counter() + 60, 0.0))


# --- limits -----------------------------------------------------------------------------------------------------------


def limits(device: str, size: int, calls: int) -> None:
    """Rates of matrix products and copies, and what one small operator costs, as it is and in a graph."""
    print("| limit | measured |\n| --- | --- |")
    for precision in PRECISIONS:
        set_cuda_arithmetic(precision)
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        a = torch.randn(size, size, device=device).to(dtype)
        rate = 2 * size**3 / _per_call(lambda a=a: torch.mm(a, a), max(1, calls // 10)) / 1e12  # type: ignore[misc]
        print(f"| matrix product, {precision} | {rate:.1f} TFLOP/s |")
    set_cuda_arithmetic("float32")
    source = torch.ones(4 * size * size, device=device)
    target = torch.empty_like(source)
    rate = 2 * source.nbytes / _per_call(lambda: target.copy_(source), calls) / 1e12
    print(f"| copy, read and write | {rate:.2f} TB/s |")
    small = torch.zeros(64, device=device)
    print(f"| small operator, eager | {1e6 * _per_call(lambda: small.add_(1), 10 * calls):.1f} us |")
    if device == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(100):
                small.add_(1)
        print(f"| small operator, replayed | {1e4 * _per_call(graph.replay, calls):.1f} us |")
    print(flush=True)


def _per_call(call: Callable[[], object], calls: int) -> float:
    """Seconds per call, the last one waited for."""
    call()
    _wait()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    _wait()
    return (time.perf_counter() - start) / calls


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# --- ways of running a model ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """How a model is run: by which strategy, in which precision, as a graph or not, in how many chunks at a time."""

    strategy: str
    precision: str
    graph: bool
    threads: int


@dataclass(frozen=True)
class Row:
    """A way, measured: samples per second with `clients` clients, peak MiB, deviation from the reference."""

    work: Work
    clients: int
    way: Way
    how: str
    rate: float
    peak: float
    deviation: float

    @property
    def right(self) -> bool:
        exact = self.way.precision == "float32"
        deep = exact and self.work.model.batch_statistics
        return self.deviation <= (RESIDUAL if deep else TOLERANCE[self.way.precision])

    def __str__(self) -> str:
        step = 1e6 * self.work.batch / self.rate
        wrong = "" if self.right else " WRONG"
        return (
            f"| {self.work.name} | {self.clients} | {self.how} | {self.way.threads} | {self.rate:,.0f} | {step:,.1f} |"
            f" {self.peak:,.0f} | {self.deviation:.1e}{wrong} |"
        )


def ways(work: Work, clients: int, device: str) -> Iterator[Way]:
    """The ways that apply to a model and are not the same as another, float32 first."""
    large = macs(work.model, work.shape) > 3e7
    written = {Softmax: "siblings", MLP: "dense"}.get(type(work.model))
    strategies = [s for s in (written, "sequential" if large else "stacked", "stacked" if large else "sequential") if s]
    if clients == 1:
        strategies.remove("stacked")  # a stack of one is `sequential`
    for precision in PRECISIONS if device == "cuda" else ("float32", "bfloat16"):
        for strategy in strategies:
            if precision == "bfloat16" and strategy == written:
                continue
            several = FLIGHT if strategy == "sequential" and clients > 1 else 1
            for graph in (True, False) if NAMED[strategy].captured else (False,):
                yield Way(strategy, precision, graph, several)
            if several > 1 and precision == "float32":
                yield Way(strategy, precision, True, 1)


def measure(device: str, works: Sequence[Work], clients: Sequence[int], end: float, box: float) -> list[Row]:
    """Print and return a row per way; each work may use an equal part of the time that is left until `end`."""
    print("| work | clients | how | threads | samples/s | us per client-step | peak MiB | deviation |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    rows: list[Row] = []
    for i, work in enumerate(works):
        until = time.perf_counter() + (end - time.perf_counter()) / (len(works) - i)
        # Two batches per client and no more clients than train: synthetic data take longer to make than to use.
        rows += _rows(device, replace(work, clients=max(clients), samples=2 * work.batch), clients, until, box)
    return rows


def _rows(device: str, work: Work, clients: Sequence[int], until: float, box: float) -> Iterator[Row]:
    """The rows of one work, printed as they are measured; what fails is named and does not stop the others."""
    task = Tasks(replace(settings(), device=device, precision="float32")).get(work.problem, 0)
    assert isinstance(task, ClassificationTask)
    check = _check(task)
    asked = [(n, way) for n in clients for way in ways(work, n, device)]
    for at, (n, way) in enumerate(asked):
        if time.perf_counter() > until:
            print(f"| {work.name} | | no time for {len(asked) - at} of {len(asked)} ways | | | | | |", flush=True)
            return
        try:
            row = _row(work, task, n, way, check, box)
        except RuntimeError as error:  # out of memory, or a capture that fails
            print(f"| {work.name} | {n} | {way} failed: {str(error).splitlines()[0]} | | | | | |", flush=True)
            continue
        print(row, flush=True)
        yield row


def _row(
    work: Work, task: ClassificationTask, clients: int, way: Way, check: Callable[[Trainer], float], box: float
) -> Row:
    gc.collect()  # the graphs of the way before
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    trainer = Trainer(way.threads, way.strategy, way.precision, way.graph)
    try:
        deviation = check(trainer)
        trainer.used.clear()
        call = _round(work, task, clients, trainer)
        call()
        rate = clients * work.steps * work.batch / seconds(call, box)
    finally:
        trainer.close()
    peak = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
    return Row(work, clients, way, "; ".join(sorted(trainer.used)), rate, peak, deviation)


def _round(work: Work, task: ClassificationTask, clients: int, trainer: Trainer) -> Callable[[], object]:
    """A call that trains `clients` clients for one round and waits for the result."""
    start = task.initial()
    weights = torch.full((1, clients), 1 / clients, device=task.device)
    counter = iter(range(10**9))

    def call() -> None:
        steps = np.full(clients, work.steps)
        trainer.train([(task, Train(np.arange(clients), steps, start, 0.01, next(counter), weights=weights))])
        _wait()

    return call


def _check(task: ClassificationTask) -> Callable[[Trainer], float]:
    """Distance of a trainer's updates from the float32 reference, relative to their length, for two clients with two
    steps and with one."""
    request = Train(np.arange(min(2, task.clients)), np.array([2, 1])[: task.clients], task.initial(), 0.01, 0)
    expected = Trainer(1, "reference").train([(task, request)])[0].rows

    def deviation(trainer: Trainer) -> float:
        found = trainer.train([(task, request)])[0].rows
        return float((found - expected).norm() / expected.norm())

    return deviation


def report(rows: Sequence[Row]) -> None:
    """The fastest way of each work, per number of clients and precision, and which ways are wrong."""
    print("\n| work | clients | precision | fastest | samples/s | GFLOP/s for `cost.py` |")
    print("| --- | --- | --- | --- | --- | --- |")
    best: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        key = row.work.name, row.clients, row.way.precision
        if row.right and (key not in best or row.rate > best[key].rate):
            best[key] = row
    for (name, clients, precision), row in best.items():
        rate = row.rate * 6 * macs(row.work.model, row.work.shape) / 1e9
        how = f"{row.how}, {row.way.threads} threads"
        print(f"| {name} | {clients} | {precision} | {how} | {row.rate:,.0f} | {rate:,.1f} |")
    wrong = [row for row in rows if not row.right]
    print(f"\n{len(rows)} ways measured, {len(wrong)} of them wrong.")
