"""Where plans have their seconds from (`reproduce/runs/rates.csv`), and how far they are from what was measured."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reproduce.engine.host import machine
from reproduce.runs import costs, plan, rates, results
from reproduce.runs.rates import Kind, estimate

LEAST = 30.0
"""Seconds of a job from which on its estimate is judged: shorter ones are mostly the start of a process."""
GONE = "siblings"
"""A strategy of older code: what it took says nothing of today's."""


class Ran(NamedTuple):
    """A run. work: FLOPs (of quadratics rounds) that are declared; of one that `ends` at a target, that it computed."""

    job: str
    processor: str
    kind: Kind
    seconds: float
    work: float
    ends: bool


def planned() -> None:
    """Writes the rates of the committed runs; measured over estimated seconds of each job, by the rates of others."""
    ran = list(on_this_processor([r for scale in ("reduced", "paper") for r in committed(scale)]))
    print(f"REFERENCE = {rates.timing():.1g}\n")
    with rates.FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Kind._fields, "rate"))
        writer.writerows((*kind, f"{rate:.3g}") for kind, rate in sorted(table(ran).items()))
    by_model: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for job in dict.fromkeys(r.job for r in ran):
        mine = [r for r in ran if r.job == job]
        others = table([r for r in ran if r.job != job])
        measured = sum(r.seconds for r in mine)
        if measured >= LEAST and not any(r.ends for r in mine):
            expected = sum(r.work * rates.rate(r.kind, others) for r in mine)
            for model in (mine[0].kind.model, "all"):
                by_model[model].append((measured, expected))
    print(f"Jobs of {LEAST:.0f} s and more that do not end at a target, each by the rates of the others.\n")
    print("| network | jobs | hours | measured / estimated | a quarter below | a quarter above | of all hours |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for model, pairs in sorted(by_model.items()):
        low, middle, high = quartiles([m / e for m, e in pairs])
        hours, expected = sum(m for m, _ in pairs) / 3600, sum(e for _, e in pairs) / 3600
        ratios = f"{middle:.2f} | {low:.2f} | {high:.2f} | {hours / expected:.2f}"
        print(f"| {model} | {len(pairs)} | {hours:.2f} | {ratios} |")


def committed(scale: str) -> Iterator[Ran]:
    """What the committed runs of a scale took."""
    for job in plan.jobs(scale):
        for e, run, ended in ((r.experiment, r.stored, r.early) for r in results.standing(job).runs):
            if not (run and run.seconds and "machine" in run.training) or GONE in run.training.get("strategies", ()):
                continue
            declared, ends = estimate(e, (0,)).samples, ended or costs.at_most(job)
            share = (run.samples or 0) / declared if declared and ends else 1.0
            if work := share * rates.work(e):
                name, processor = f"{scale} {job.paper} {job.name}", run.training["machine"]["processor"]
                yield Ran(name, processor, rates.kind(e), run.seconds, work, ends)


def on_this_processor(ran: Sequence[Ran]) -> Iterator[Ran]:
    """With the seconds of the processor of this machine: by the median ratio of equal networks and algorithms."""
    here = machine()["processor"]
    base = table([r for r in ran if r.processor == here])
    for processor in dict.fromkeys(r.processor for r in ran):
        mine = [r for r in ran if r.processor == processor]
        theirs = table(mine)
        factor = statistics.median(theirs[kind] / base[kind] for kind in theirs if kind in base)
        print(f"{processor}: {sum(r.seconds for r in mine) / 3600:.1f} h, {factor:.2f} times as long as here")
        yield from (r._replace(seconds=r.seconds / factor) for r in mine)


def table(ran: Iterable[Ran]) -> dict[Kind, float]:
    """Seconds per FLOP of each kind; by runs that do not end at a target, if there are any."""
    kinds: dict[Kind, list[Ran]] = defaultdict(list)
    for r in ran:
        kinds[r.kind].append(r)
    whole = {kind: [r for r in mine if not r.ends] or mine for kind, mine in kinds.items()}
    return {kind: sum(r.seconds for r in mine) / sum(r.work for r in mine) for kind, mine in whole.items()}


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else 3 * [*values]
    return low, middle, high
