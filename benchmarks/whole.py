"""A whole job: how much of its time is not training, and how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from benchmarks.works import CNN28, Synthetic
from reproduce import train
from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.models.declared import MLP, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs.job import begin, finish
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.work import Steps


def overhead() -> None:
    """Shares of a reduced-scale job's time: evaluation (1,000 samples, every fifth round), and all but the steps."""
    works: list[tuple[str, Model, tuple[int, ...], int, int]] = [
        ("logistic regression, 20 clients x 50 steps", Softmax(123, 2), (123,), 50, 20),
        ("MLP 784-64-10, 10 of 100 clients x 10 steps", MLP(784, 64, 10), (784,), 10, 10),
        ("two-layer CNN, 10 of 100 clients x 24 steps", CNN28, (1, 28, 28), 24, 10),
    ]
    print(
        "| job | seconds | training | evaluation | rest | evaluation / all | rest / training |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    for name, model, shape, steps, per_round in works:
        clients = 20 if per_round == 20 else 100
        data = Synthetic(clients * 200, shape, 2 if shape == (123,) else 10)
        problem = Classification(data, model, IID(), clients, Shuffled(20))
        algorithm = FedAvg(lr=0.01, participation=WeightedDraws(per_round))
        experiment = Experiment({"algorithm": "fedavg"}, problem, System(work=Steps(steps)), algorithm, Rounds(40, 5))
        train(experiment, [2], threads=1)  # warm
        scheduler = begin([experiment], [0, 1], replace(settings(), threads=1))
        start = time.perf_counter()
        finish(scheduler)
        total = time.perf_counter() - start
        training, evaluation = scheduler.seconds["train"], scheduler.seconds["evaluate"]
        rest = total - training - evaluation
        shares = f"{100 * evaluation / total:.1f} % | {100 * rest / training:.1f} %"
        print(f"| {name} | {total:.2f} | {training:.2f} | {evaluation:.2f} | {rest:.3f} | {shares} |")


MEMORY = """
import gc
from pathlib import Path
from torch.profiler import profile
from benchmarks.works import Work
from benchmarks.measure import engine_round
from reproduce.models.declared import ResNet
work = Work("memory", ResNet(), (3, 32, 32), 100, 100, 20, 20, 1)
data = 100 * 20 * 3 * 32 * 32 * 4
call = engine_round(work, 1)
def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = status("VmRSS")
call()
after = status("VmHWM")
model = work.model.parameters * 4
with profile(profile_memory=True) as run:
    call()
balance = peak = 0
for event in run.profiler.kineto_results.events():
    balance += event.nbytes() if event.name() == "[memory]" else 0
    peak = max(peak, balance)
print(f"model {model / 2**20:.0f} MiB, data {data / 2**20:.0f} MiB; training 100 clients adds"
      f" {(after - before) / 2**20:.0f} MiB to {before / 2**20:.0f} MiB: {(after - before) / model:.1f} x the model;"
    f" of this torch's tensors take {peak / model:.1f} x at most")
"""


def memory() -> None:
    """Peak resident memory that one round of 100 ResNet-18 clients adds, in a process of its own (Linux)."""
    subprocess.run([sys.executable, "-c", MEMORY], check=True)
