"""`python -m benchmarks [NAME ...] [--isa LEVEL] [...]`: measures the engine, prints Markdown tables.

Without a name everything but `fig4`, `choice`, `modules`, `precision`, `gpu`, `gpu-dry`, `hour`, `plan`,
`peers`, `schedules`, `events`, `roberta`, `play`, `rules`, `asked`, `readings` and `faults`.

--isa LEVEL: as on a machine with no more than these instructions; torch and the peers are held to them as well.

works       every model against the naive loop, share of the machine's matrix-product rate
seeds       five seeds of logistic regression in one batch of runs against one
sweep       42 sweep points in one batch of runs against one after another
fig4        the same for the logistic map of fedagrac/fig4, whole runs (needs a9a)
play        every algorithm at every rate of a play in one batch of runs against one after another (needs Fashion-MNIST)
width       a HeteroFL client of width 1/8 against full width
overhead    a whole job against its pure training steps
memory      peak memory of 100 clients of ResNet-18
choice      every strategy that can run a work, and which one the trainer takes
modules     a user's module beside its declared twin, large networks beside a plain loop over the module
throughput  training samples per second of the trainer's choice on one core
precision   ResNet-18 in bfloat16 against float32
gpu         ways to train every network on CUDA, checked against the reference, beside JAX and a loop (docs/gpu.md)
gpu-dry     the same script on the CPU with tiny models
hour        that, and jobs of FedACS and FIARSE, on a GPU within `--minutes N` (60)
faults      kills of every kind against all smoke jobs, `--kills N` of them (200), sampled by `--seed N` (0)
plan        writes the rates of committed runs, by which plans estimate, and how far the estimates are from them
schedules   100,000 clients and 10,000,000 updates of every policy, Table I of defedavg; peak memory
events      training by replay of a schedule against job by job; models kept to the horizon, and the bound
rules       how often verdicts err: normal noise, our own residuals, skewed noise, runs that collapse
asked       writes docs/papers/asked.md: claims whose check was changed, with both verdicts (needs the history)
readings    distance of fitted alternatives from published numbers, and findings: `readings [PAPER ...]`
roberta     what masks cost, and what a 1/64 client saves, of a small RoBERTa and of residual networks
peers       W1 and W2 in other simulators and in JAX (BENCHMARK_PEERS = their Python interpreter)
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence

import numpy
import torch

from benchmarks import choice, cohorts, faults, gpu, hour, modules, planned, precision, schedules, texts, whole
from benchmarks.measure import compare, engine_round, naive, peak
from benchmarks.works import WORKS
from reproduce.declare.paper import papers as known
from reproduce.engine.host import machine
from reproduce.engine.kernels import library
from reproduce.engine.strategies import macs
from reproduce.errors import UserError

THREADS = 2


def works() -> None:
    """Ratios to the naive loop, both with two threads, A B A B; fraction of the peak of two threads."""
    top = max(peak(1) * THREADS, peak(THREADS))
    print(f"Best float32 matrix product of this torch: {top:.0f} GFLOP/s on {THREADS} threads.\n")
    print("| work | naive samples/s | engine samples/s | ratio | range | rounds/s | of peak |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for work in WORKS:
        large = macs(work.model, work.shape) > 5e6
        r = compare(naive(work, THREADS), engine_round(work, THREADS), 3 if large else 5, 1.0 if large else 0.5)
        rate = work.samples_per_round / r.b
        share = rate * 6 * macs(work.model, work.shape) / (top * 1e9)
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
        print(f"| {work.name} | {rate:,.0f} | {rate * 6 * macs(work.model, work.shape) / 1e9:.1f} |", flush=True)


def peers() -> None:
    """The comparison with other simulators."""
    from benchmarks.peers import table

    print(table())


def plays() -> None:
    """`benchmarks.plays`, which needs pandas; a GPU's machine may be without."""
    from benchmarks import plays

    plays.plays()


def rules() -> None:
    """`benchmarks.rules`, which needs pandas and scipy."""
    from benchmarks import rules

    rules.rules()


def asked() -> None:
    """`benchmarks.judgements.asked`, which needs pandas."""
    from benchmarks import judgements

    judgements.asked()


def readings(papers: Sequence[str]) -> None:
    """What the pages of papers say of their printed numbers."""
    from reproduce.pages import agreement

    for paper in papers or known():
        print(f"### {paper}\n\n{agreement.section(paper)}\n", flush=True)


COMMANDS: dict[str, Callable[..., object]] = {
    "works": works,
    "seeds": cohorts.seeds,
    "sweep": cohorts.sweep,
    "fig4": cohorts.fig4,
    "play": plays,
    "width": cohorts.width,
    "overhead": whole.overhead,
    "memory": whole.memory,
    "choice": choice.choice,
    "modules": modules.modules,
    "throughput": throughput,
    "precision": precision.main,
    "gpu": gpu.main,
    "gpu-dry": gpu.dry,
    "hour": hour.main,
    "plan": planned.planned,
    "faults": faults.faults,
    "peers": peers,
    "schedules": schedules.schedules,
    "events": schedules.events,
    "roberta": texts.texts,
    "rules": rules,
    "asked": asked,
    "readings": readings,
}
DEFAULT = ("works", "seeds", "sweep", "width", "overhead", "memory", "throughput")


HELD = {
    "sse2": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
"""What holds torch and its libraries to a level's instructions; they read it when they start."""


def hold(level: str) -> None:
    """Start this process again with no more than the instructions of `level`; UserError if there is no such level."""
    os.environ["REPRODUCE_ISA"] = level
    library.level()
    wanted = HELD.get(level, {})
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])


def main(arguments: list[str]) -> int:
    """Run the named benchmarks; 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", add_help=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--isa")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("-h", "--help", action="store_true")
    args = parser.parse_args(arguments)
    if args.help:
        print(__doc__)
        return 0
    papers = [n for n in args.names if n in known()] if "readings" in args.names else []
    unknown = [n for n in args.names if n not in (*COMMANDS, *papers)]
    if unknown:
        print(f"error: unknown benchmark '{unknown[0]}'; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    if args.isa:
        try:
            hold(args.isa)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, numpy {numpy.__version__}"
    print(f"Machine: {machine()['processor']}, {os.cpu_count()} cores, load {load:.1f}; {versions}")
    print(f"Compiled code: {', '.join(library.how().values())}")
    more: dict[str, list[object]] = {"faults": [args.kills, args.seed], "hour": [args.minutes], "readings": [papers]}
    for name in (n for n in args.names or DEFAULT if n not in papers):
        print(f"\n## {name}\n\n{(COMMANDS[name].__doc__ or '').splitlines()[0]}\n", flush=True)
        COMMANDS[name](*more.get(name, []))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
