"""`python -m benchmarks [NAME ...]`: measures the engine and prints Markdown tables.

Without a name everything but `fig4`, `smoke`, `precision`, `gpu`, `gpu-dry`, `plan` and `peers`.

works       every model against the naive loop, share of the machine's matrix-product rate
seeds       five seeds of logistic regression in one cohort against one
sweep       42 sweep points in one cohort against one after another
fig4        the same for the logistic map of fedagrac/fig4, whole runs (needs a9a)
width       a HeteroFL client of width 1/8 against full width
overhead    a whole job against its pure training steps
memory      peak memory of 100 clients of ResNet-18
throughput  training samples per second of every strategy on one core (plans measure their own)
smoke       where the time of `make smoke` goes
precision   ResNet-18 in bfloat16 against float32
gpu         every strategy for every model on CUDA, checked against the reference (docs/gpu.md)
gpu-dry     the same script on the CPU with tiny models
plan        planned against measured seconds of short jobs of every kind
peers       W1 and W2 in other simulators (BENCHMARK_PEERS = their Python interpreter)
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

import numpy
import torch

from benchmarks import cohorts, gpu, planned, precision, smoke, whole
from benchmarks.measure import compare, engine_round, naive, peak
from benchmarks.works import WORKS
from reproduce.engine.trainer import forward_macs

THREADS = 2


def works() -> None:
    """Ratios to the naive loop, both with two threads, A B A B; fraction of the peak of two threads."""
    top = max(peak(1) * THREADS, peak(THREADS))
    print(f"Best float32 matrix product of this torch: {top:.0f} GFLOP/s on {THREADS} threads.\n")
    print("| work | naive samples/s | engine samples/s | ratio | range | rounds/s | of peak |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for work in WORKS:
        large = forward_macs(work.model) > 5e6
        r = compare(naive(work, THREADS), engine_round(work, THREADS), 3 if large else 5, 1.0 if large else 0.5)
        rate = work.samples_per_round / r.b
        share = rate * 6 * forward_macs(work.model) / (top * 1e9)
        print(
            f"| {work.name} | {work.samples_per_round / r.a:,.0f} | {rate:,.0f} | {r.median:.2f} |"
            f" {r.low:.2f}-{r.high:.2f} | {1 / r.b:.2f} | {share:.2f} |",
            flush=True,
        )


def throughput() -> None:
    """One core, the strategy that the table chooses."""
    print("| work | samples/s on one core | GFLOP/s |\n| --- | --- | --- |")
    for work in WORKS:
        call = engine_round(work, 1)
        seconds = compare(call, call, 3, 0.3).b
        rate = work.samples_per_round / seconds
        print(f"| {work.name} | {rate:,.0f} | {rate * 6 * forward_macs(work.model) / 1e9:.1f} |", flush=True)


def peers() -> None:
    """The comparison with other simulators."""
    from benchmarks.peers import table

    print(table())


COMMANDS: dict[str, Callable[[], None]] = {
    "works": works,
    "seeds": cohorts.seeds,
    "sweep": cohorts.sweep,
    "fig4": cohorts.fig4,
    "width": cohorts.width,
    "overhead": whole.overhead,
    "memory": whole.memory,
    "throughput": throughput,
    "smoke": smoke.smoke,
    "precision": precision.main,
    "gpu": gpu.main,
    "gpu-dry": gpu.dry,
    "plan": planned.planned,
    "peers": peers,
}
DEFAULT = ("works", "seeds", "sweep", "width", "overhead", "memory", "throughput")


def main(names: list[str]) -> int:
    """Run the named benchmarks; 2 for an unknown name."""
    unknown = [n for n in names if n not in COMMANDS]
    if unknown:
        print(f"error: unknown benchmark '{unknown[0]}'; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}; Python {platform.python_version()},"
        f" torch {torch.__version__}, numpy {numpy.__version__}"
    )
    for name in names or DEFAULT:
        print(f"\n## {name}\n\n{(COMMANDS[name].__doc__ or '').splitlines()[0]}\n", flush=True)
        COMMANDS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
