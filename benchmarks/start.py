"""What every command and every start of Snakemake waits for: the list, the plans of all papers, large partitions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np

from benchmarks.measure import seconds
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.groups import GroupedDirichlet

PLAN = """
from reproduce.runs import costs, plan
for job in plan.jobs({scale!r}):
    plan.digest(job, "float32"), costs.cost(job)
"""


def start() -> None:
    """Seconds of a process that lists, or plans all jobs of a scale with digests and costs; seconds of a partition."""
    calls: dict[str, Callable[[], object]] = {"`reproduce list --json`": _process("-m", "reproduce", "list", "--json")}
    for scale in ("smoke", "reduced", "paper"):
        calls[f"plan of {scale}"] = _process("-c", PLAN.format(scale=scale))
    fashion, cifar = (np.arange(n) % classes for n, classes in ((60_000, 10), (50_000, 100)))
    calls["60,000 samples to 200 clients, GroupedDirichlet"] = lambda: GroupedDirichlet(0.3).split(fashion, 200, 0)
    calls["50,000 samples to 100 clients, BalancedDirichlet"] = lambda: BalancedDirichlet(0.3).split(cifar, 100, 0)
    print("| what | seconds, best of three |\n| --- | --- |")
    for name, call in calls.items():
        print(f"| {name} | {min(seconds(call, 0) for _ in range(3)):.2f} |", flush=True)


def _process(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
