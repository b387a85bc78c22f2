"""The first hour on a GPU, in the order of what it tells: does anything train, which ways are fast, how do the jobs of
FedACS on CIFAR-10 and of FIARSE's Table 1 end.

All comes into the folder `out`. What is there is left out, and a job that was stopped goes on from its checkpoint, so
that the same command continues where the time ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from reproduce.runs.plan import Job, artifact_jobs

OUT = Path("out")
STOP = 60.0
"""Seconds in which a job that is told to stop ends its round and writes a checkpoint."""


def main(minutes: float) -> None:
    """Runs what the hour is for, and ends within so many minutes."""
    if not torch.cuda.is_available():
        print("no GPU here: nothing started", file=sys.stderr)
        return
    end = time.monotonic() + 60 * minutes
    os.environ |= {"REPRODUCE_DEVICE": "cuda", "REPRODUCE_CHECKPOINT": "60"}
    smoke, ways = artifact_jobs("smoke", "fedacs/fig6")[0], OUT / "gpu.md"
    _train(smoke, end)
    if not ways.exists():
        run(["benchmarks", "gpu"], min(end, time.monotonic() + 600), ways)
    for job in (*artifact_jobs("paper", "fedacs/fig6"), *artifact_jobs("paper", "fiarse/table1")):
        if "-cifar10-" in f"-{job.name}":
            _train(job, end)


def _train(job: Job, end: float) -> None:
    output = OUT / job.scale / job.paper / f"{job.name}.parquet"
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        run(["reproduce", "train", "--scale", job.scale, job.paper, job.name, "-o", str(output)], end)


def run(module: Sequence[str], end: float, output: Path | None = None) -> int | None:
    """The exit code of a module of Python that is stopped, if necessary, so that it ends at `end`, of the monotonic
    clock; None if there is no time to begin."""
    left, command = end - STOP - time.monotonic(), " ".join(module)
    if left <= 0:
        print(f"no time is left for {command}", file=sys.stderr)
        return None
    print(command, file=sys.stderr)
    with output.open("w") if output else nullcontext() as file:
        child = subprocess.Popen([sys.executable, "-m", *module], stdout=file)
        for seconds, ask in ((left, child.terminate), (STOP, child.kill)):
            try:
                return child.wait(seconds)
            except subprocess.TimeoutExpired:
                ask()
        return child.wait()
