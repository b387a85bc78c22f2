"""Every strategy for every model on a GPU, checked against the reference, in one call of a few minutes.

Prints the table from which the strategy table in `engine/trainer.py` and the throughputs in `engine/cost.py` are to be
chosen. TF32 stays off, as in every run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from benchmarks.measure import engine_round, seconds
from benchmarks.works import WORKS, Work
from reproduce.engine.requests import Train
from reproduce.engine.task import ClassificationTask, Tasks
from reproduce.engine.trainer import Trainer
from reproduce.settings import settings

STRATEGIES = ("sequential", "stacked", "dense", "siblings")


def main() -> None:
    """Samples per second and largest deviation from the reference, per model and strategy."""
    if not torch.cuda.is_available():
        print("no GPU here: nothing measured", file=sys.stderr)
        return
    os.environ["REPRODUCE_DEVICE"] = "cuda"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, TF32 {torch.backends.cuda.matmul.allow_tf32}\n")
    print("| work | strategy | samples/s | deviation from the reference |\n| --- | --- | --- | --- |")
    for work in WORKS:
        for strategy in STRATEGIES:
            try:
                call = engine_round(work, 1, strategy)
                call()
            except (ValueError, RuntimeError, KeyError) as error:
                print(f"| {work.name} | {strategy} | does not apply ({type(error).__name__}) | |", flush=True)
                continue
            rate = work.samples_per_round / seconds(partial(_synchronously, call), 1.0)
            print(f"| {work.name} | {strategy} | {rate:,.0f} | {deviation(work, strategy):.1e} |", flush=True)


def _synchronously(call: Callable[[], object]) -> None:
    call()
    torch.cuda.synchronize()


def deviation(work: Work, strategy: str) -> float:
    """Largest difference from the reference strategy after two steps of two clients, relative to the update."""
    task = Tasks(settings()).get(work.problem, 0)
    assert isinstance(task, ClassificationTask)
    request = Train(np.arange(2), np.full(2, 2), task.initial(), 0.01, 0)
    a = Trainer(1, strategy).train([(task, request)])[0].update
    b = Trainer(1, "reference").train([(task, request)])[0].update
    return float((a - b).abs().max() / b.abs().max())
