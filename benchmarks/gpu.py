"""The ways to train on a GPU, each checked against the reference: what a choice for CUDA is made from.

The largest networks come first, which no CPU trains, and the ways in the order of what is expected of them: a time that
runs out costs the least. Each work may use an equal part of what is left of eight minutes. All is timed without
dropout, which the ways of `ways.py` leave out; the engine is checked with it. Needs torch and numpy, and JAX for the
ways in JAX. docs/gpu.md says what to do with the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import seconds
from benchmarks.modules import plain
from benchmarks.ways import RATE, Call, Contiguous, Unfolded, jax_way, torch_way
from benchmarks.works import WORKS, Work
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.machine import set_cuda_arithmetic
from reproduce.engine.requests import Train
from reproduce.engine.strategies import LARGE, NAMED, macs
from reproduce.engine.trainer import Trainer, demand_of
from reproduce.models.declared import ConvNet, ResNet, Softmax
from reproduce.modules.ops import Stacked
from reproduce.settings import settings

TOLERANCE = {"float32": 0.05, "tf32": 0.4, "bfloat16": 0.7}
"""Distance from the reference after two steps, over the length of the update. Rounding switches ReLUs, and deep
networks with batch statistics multiply that; the others are nearer than 1e-4 in float32."""

Way = Callable[[ClassificationSplit, int, int, str], Call]
"""(split, clients, steps, precision) -> a call that trains, and gives the updates [clients, P] or None."""


def engine(strategy: str, split: ClassificationSplit, clients: int, steps: int, precision: str) -> Call:
    """A round by a strategy of the engine."""
    trainer, start = Trainer(1, strategy, precision), split.initial()
    request = Train(np.arange(clients), np.full(clients, steps), start, RATE, 0)
    if (named := NAMED.get(strategy)) and (obstacle := named.obstacle(demand_of(split, request))):
        raise RuntimeError(obstacle)
    return lambda: trainer.train([(split, request)])[0].rows


WAYS: dict[str, Way] = {
    "sequential": partial(engine, "sequential"),
    "stacked": partial(engine, "stacked"),
    "graph": partial(torch_way, graph=True),
    "graph, 8 streams": partial(torch_way, graph=True, streams=8),
    "plain loop over the module": lambda split, clients, steps, precision: plain(
        split.problem.model, split.device_data, clients, steps, precision
    ),
    "JAX, map": partial(jax_way, together=False),
    "JAX, vmap": partial(jax_way, together=True),
    "graph, cuDNN's own choice": partial(torch_way, graph=True, search=True),
    "graph, not channels-last": partial(torch_way, graph=True, ops=Contiguous),
    "graph, grouped": partial(torch_way, graph=True, ops=Stacked),
    "graph, unfolded": partial(torch_way, graph=True, ops=Unfolded),
    "streams": partial(torch_way, streams=8),
}
"""Those with "graph" replay a captured step, on the CPU they run it."""
BESIDE = ("plain", "JAX")
"""How the floor and the peer begin, which no choice is made of."""
REDUCED = ("sequential", "stacked", "graph", "graph, 8 streams", "graph, cuDNN's own choice", "JAX, map", "JAX, vmap")

TINY = (
    Work("CNN", ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.5), (1, 8, 8), 4, 4, 8, 4, 3),
    Work("softmax", Softmax(64, 2), (64,), 4, 4, 8, 4, 3, classes=2),
    Work("residual", ResNet(1, 10, (4, 6), (1, 1), stem_stride=2), (1, 8, 8), 4, 4, 8, 4, 3),
)


def main() -> None:
    """Samples per second of every way and precision, with 10 and 100 clients, and the deviation from the reference."""
    if not torch.cuda.is_available():
        print("no GPU here: nothing measured", file=sys.stderr)
        return
    print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}\n")
    works = sorted(WORKS, key=lambda work: -macs(work.model, work.shape) * work.batch)
    measure("cuda", works, (10, 100), ("float32", "tf32", "bfloat16"), 480, 0.3)


def dry() -> None:
    """The same code on the CPU with tiny models: shows that the script runs, its numbers mean nothing."""
    measure("cpu", TINY, (3,), ("float32", "bfloat16"), 240, 0.0)


@dataclass(frozen=True)
class Row:
    """A way that was measured; rate: samples per second, 0 if it failed; said: its deviation, or why it failed."""

    way: str
    clients: int
    precision: str
    rate: float
    peak: float
    said: str

    @property
    def right(self) -> bool:
        return not self.said.endswith("WRONG")


def measure(
    device: str, works: Sequence[Work], clients: Sequence[int], precisions: Sequence[str], time_s: float, box: float
) -> int:
    """Print a row per way, measured for `box` seconds, and the choice for each work; returns how many were wrong."""
    print("| work | clients | way | precision | samples/s | TFLOP/s | peak MiB | deviation |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    chosen, wrong, end = [], 0, time.perf_counter() + time_s
    for i, work in enumerate(works):
        until = time.perf_counter() + (end - time.perf_counter()) / (len(works) - i)
        rows, cost = [], macs(work.model, work.shape)
        for row in _rows(device, work, clients if cost <= LARGE else clients[:1], precisions, until, box):
            rows.append(row)
            rate = f"{row.rate:,.0f} | {6 * cost * row.rate / 1e12:.3g} | {row.peak:,.0f}" if row.rate else "| |"
            print(f"| {work.name} | {row.clients} | {row.way} | {row.precision} | {rate} | {row.said} |", flush=True)
        wrong += sum(not row.right for row in rows)
        chosen += [_choice(work, [row for row in rows if row.precision == p]) for p in precisions]
    print("\n" + "\n".join(filter(None, chosen)) + f"\n\n{wrong} of these ways are wrong.")
    return wrong


def _choice(work: Work, rows: Sequence[Row]) -> str:
    """What the rows of a work in one precision suggest, beside the engine, the floor and the peer."""
    able = [row for row in rows if row.rate and row.right]
    ours = [row for row in able if not row.way.startswith(BESIDE)]
    if not ours:
        return ""
    best = max(ours, key=lambda row: row.rate)
    others = [r for r in able if r.way in NAMED or r.way.startswith(BESIDE)]
    beside = ", ".join(f"{best.rate / r.rate:.2f} x {r.way}" for r in others if r.clients == best.clients)
    tera = 6 * macs(work.model, work.shape) * best.rate / 1e12
    return f"{work.name}, {best.precision}: {best.way}, {best.clients} clients ({beside}); {tera:.3g} TFLOP/s"


def _rows(
    device: str, work: Work, clients: Sequence[int], precisions: Sequence[str], until: float, box: float
) -> Iterator[Row]:
    """The ways in turn; what fails is named and does not stop the others."""
    # Two batches per client and no more clients than train: synthetic data take longer to make than to use.
    small = replace(work, clients=max(clients), samples=2 * work.batch, steps=min(work.steps, 10))
    split, still = _split(device, small), _split(device, replace(small, model=_without_dropout(work)))
    expected = {s: engine("reference", s, 2, 2, "float32")() for s in (split, still)}
    for n, precision, way in ((n, p, w) for p in precisions for n in clients for w in WAYS):
        if (precision != "float32" and way not in REDUCED) or (way.startswith("JAX") and not find_spec("jax")):
            continue
        if time.perf_counter() > until:
            yield Row("no time for the rest", n, precision, 0, 0, "")
            return
        try:
            set_cuda_arithmetic(precision)
            checked = split if way in NAMED else still
            deviation = _deviation(WAYS[way](checked, 2, 2, precision)(), expected[checked], precision)
            call = _synced(WAYS[way](still, n, small.steps, precision), device)
            call()
            _peak(device)
            rate = n * small.steps * small.batch / seconds(call, box)
            yield Row(way, n, precision, rate, _peak(device), deviation)
        except Exception as error:  # whatever a library raises: the table must come back
            text = (str(error) or type(error).__name__).splitlines()[0]
            yield Row(way, n, precision, 0, 0, f"failed: {text[:120]}")


def _deviation(rows: Tensor | None, expected: Tensor, precision: str) -> str:
    if rows is None:
        return ""
    far = float((rows.to(expected.device) - expected).norm() / expected.norm())
    return f"{far:.1e}{'' if far <= TOLERANCE[precision] else ' WRONG'}"


def _without_dropout(work: Work) -> Any:
    names = [name for name in ("dropout", "channel_dropout") if hasattr(work.model, name)]
    return replace(work.model, **dict.fromkeys(names, 0.0))


def _split(device: str, work: Work) -> ClassificationSplit:
    split = ClientSplits(replace(settings(), device=device)).get(work.problem, 0)
    assert isinstance(split, ClassificationSplit)
    return split


def _synced(call: Call, device: str) -> Call:
    def waiting() -> None:
        call()
        if device == "cuda":
            torch.cuda.synchronize()

    return waiting


def _peak(device: str) -> float:
    """MiB of the GPU's memory that torch had at most since the last call."""
    if device == "cpu":
        return 0.0
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.reset_peak_memory_stats()
    return peak
