"""The ways to run each model on a GPU, checked against the reference: what a choice for CUDA would be made from.

Each work may use an equal part of eight minutes. docs/gpu.md says what to do with the table. Needs torch and numpy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from benchmarks.measure import seconds
from benchmarks.works import WORKS, Work
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.strategies import NAMED
from reproduce.engine.trainer import Trainer, demand_of
from reproduce.models.declared import ConvNet, ResNet, Softmax
from reproduce.settings import settings

TOLERANCE = {"float32": 0.05, "tf32": 0.4, "bfloat16": 0.7}
"""Distance from the reference after two steps, over the length of the update. Rounding switches ReLUs, and deep
networks with batch statistics multiply that; the others are nearer than 1e-4 in float32."""
STRATEGIES = ("stacked", "sequential")

TINY = (
    Work("CNN", ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.5), (1, 8, 8), 4, 4, 8, 4, 3),
    Work("softmax", Softmax(64, 2), (64,), 4, 4, 8, 4, 3, classes=2),
    Work("residual", ResNet(1, 10, (4, 6), (1, 1), stem_stride=2), (1, 8, 8), 4, 4, 8, 4, 3),
)


def main() -> None:
    """Samples per second and deviation from the reference of every strategy and precision, with 100 and 10 clients."""
    if not torch.cuda.is_available():
        print("no GPU here: nothing measured", file=sys.stderr)
        return
    print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}\n")
    measure("cuda", WORKS, (100, 10), ("float32", "tf32", "bfloat16"), 480, 0.3)


def dry() -> None:
    """The same code on the CPU with tiny models: shows that the script runs, its numbers mean nothing."""
    measure("cpu", TINY, (3,), ("float32", "bfloat16"), 60, 0.0)


def measure(
    device: str, works: Sequence[Work], clients: Sequence[int], precisions: Sequence[str], time_s: float, box: float
) -> int:
    """Print a row per way, measured for `box` seconds, and how many were wrong, which is returned."""
    print(
        "| work | clients | how | samples/s | peak MiB | deviation |\n| --- | --- | --- | --- | --- | --- |", flush=True
    )
    wrong, end = 0, time.perf_counter() + time_s
    for i, work in enumerate(works):
        until = time.perf_counter() + (end - time.perf_counter()) / (len(works) - i)
        # Two batches per client and no more clients than train: synthetic data take longer to make than to use.
        small = replace(work, clients=max(clients), samples=2 * work.batch)
        for line, right in _rows(device, small, clients, precisions, until, box):
            wrong += not right
            print(line, flush=True)
    print(f"\n{wrong} of these ways are wrong.")
    return wrong


def _rows(
    device: str, work: Work, clients: Sequence[int], precisions: Sequence[str], until: float, box: float
) -> Iterator[tuple[str, bool]]:
    """Lines of the table, and whether they are right; what fails is named and does not stop the others."""
    split = ClientSplits(replace(settings(), device=device)).get(work.problem, 0)
    assert isinstance(split, ClassificationSplit)
    two = Train(np.arange(2), np.array([2, 1]), split.initial(), 0.01, 0)
    expected = Trainer(strategy="reference").train([(split, two)])[0].rows
    able = [s for s in STRATEGIES if not NAMED[s].obstacle(demand_of(split, two))]
    for n, precision, strategy in ((n, p, s) for n in clients for p in precisions for s in able):
        if time.perf_counter() > until:
            yield f"| {work.name} | | no time for the rest | | | |", True
            return
        how = f"{strategy}, {precision}"
        trainer = Trainer(1, strategy, precision)
        try:
            found = trainer.train([(split, two)])[0].rows
            deviation = float((found - expected).norm() / expected.norm())
            _peak(device)
            rate = n * work.steps * work.batch / seconds(_round(work, split, n, trainer), box)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            yield f"| {work.name} | {n} | {how} | failed: {str(error).splitlines()[0]} | | |", True
            continue
        right = deviation <= TOLERANCE[precision]
        said = f"{deviation:.1e}{'' if right else ' WRONG'}"
        yield f"| {work.name} | {n} | {how} | {rate:,.0f} | {_peak(device):,.0f} | {said} |", right


def _peak(device: str) -> float:
    """MiB of the GPU's memory at most, since the last call."""
    if device == "cpu":
        return 0.0
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.reset_peak_memory_stats()
    return peak


def _round(work: Work, split: ClassificationSplit, clients: int, trainer: Trainer) -> Callable[[], object]:
    """A call that trains `clients` clients for one round and waits for the result."""
    start = split.initial()
    weights = torch.full((1, clients), 1 / clients, device=split.device)
    counter = iter(range(10**9))

    def call() -> None:
        steps = np.full(clients, work.steps)
        trainer.train([(split, Train(np.arange(clients), steps, start, 0.01, next(counter), weights=weights))])
        if split.device.type == "cuda":
            torch.cuda.synchronize()

    return call
