"""Where plans have their seconds from (`reproduce/runs/rates.csv`), and how far they are from what was measured."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from reproduce.engine.host import machine
from reproduce.runs import ends, plan, rates, results
from reproduce.runs.rates import Kind, estimate
from reproduce.runs.results import Joined

LEAST = 30.0
"""Seconds of a job from which on its estimate is judged: shorter ones are mostly the start of a process."""
FACTOR = 1.5
FIXED, TOLD, LOOSE = "", "to a target", "to a target, of runs like which there are none"
GONE = "siblings"
"""A strategy of older code: what it took says nothing of today's."""


class Ran(NamedTuple):
    """A run. whole: FLOPs (of quadratics rounds) that are declared; work: those that it computed, fewer where it
    ended at a target."""

    job: tuple[str, str, str]
    processor: str
    kind: Kind
    seconds: float
    work: float
    whole: float
    joined: Joined

    @property
    def ends(self) -> bool:
        return ends.early(self.joined.experiment)


def planned() -> None:
    """Writes the rates of the committed runs; measured over estimated seconds of each job, by the rates of others."""
    ran = list(on_this_processor([r for scale in ("reduced", "paper") for r in committed(scale)]))
    print(f"REFERENCE = {rates.timing():.1g}\n")
    with rates.FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Kind._fields, "rate"))
        writer.writerows((*kind, f"{rate:.3g}") for kind, rate in sorted(table(ran).items()))
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    jobs: dict[tuple[str, str, str], list[Ran]] = defaultdict(list)
    for r in ran:
        jobs[r.job].append(r)
    for job, runs in jobs.items():
        measured = sum(r.seconds for r in runs)
        if measured >= LEAST:
            others = [r for r in ran if r.job != job]
            expected, bound, kind = estimated(runs, others)
            names = (runs[0].kind.model, "all") if kind == FIXED else (kind, "all")
            for name in names:
                groups[name].append((measured, expected))
            if kind == TOLD:
                groups[f"{kind}: their bounds"].append((measured, bound))
    print(f"Jobs of {LEAST:.0f} s and more, each by the rates of the others and by where runs of the others ended.\n")
    head = (
        "network",
        "jobs",
        "hours",
        f"within {FACTOR}",
        "measured / estimated",
        "a quarter below",
        "above",
        "of hours",
    )
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for name, pairs in sorted(groups.items()):
        low, middle, high = quartiles([m / e for m, e in pairs])
        hours, expected = sum(m for m, _ in pairs) / 3600, sum(e for _, e in pairs) / 3600
        near = sum(1 / FACTOR <= m / e <= FACTOR for m, e in pairs) / len(pairs)
        ratios = f"{near:.0%} | {middle:.2f} | {low:.2f} | {high:.2f} | {hours / expected:.2f}"
        print(f"| {name} | {len(pairs)} | {hours:.2f} | {ratios} |")


def estimated(runs: Sequence[Ran], others: Sequence[Ran]) -> tuple[float, float, str]:
    """Seconds of a job by other jobs, those if no run ends early, and whether runs of others say where its own end."""
    scale, paper, _ = runs[0].job
    known = ends.of(r.joined for r in others if r.ends and r.job[:2] == (scale, paper))
    by, went = table(others), dict[Any, float | None]()
    expected = bound = 0.0
    for r in runs:
        e = r.joined.experiment.to_target if r.joined.early else r.joined.experiment
        if e not in went:
            went[e] = ends.share(e, known) if r.ends else 1.0
        seconds, share = r.whole * rates.rate(r.kind, by), went[e]
        bound += seconds
        expected += seconds * (1.0 if share is None else share)
    return expected, bound, FIXED if not any(r.ends for r in runs) else LOOSE if None in went.values() else TOLD


def committed(scale: str) -> Iterator[Ran]:
    """What the committed runs of a scale took."""
    for job in plan.jobs(scale):
        for joined in results.standing(job).runs:
            e, run = joined.experiment, joined.stored
            if not (run and run.seconds and "machine" in run.training) or GONE in run.training.get("strategies", ()):
                continue
            declared, work = estimate(e, (0,)).samples, rates.work(e)
            share = (run.samples or 0) / declared if declared and ends.early(e) else 1.0
            processor = run.training["machine"]["processor"]
            yield Ran((scale, job.paper, job.name), processor, rates.kind(e), run.seconds, share * work, work, joined)


def on_this_processor(ran: Sequence[Ran]) -> Iterator[Ran]:
    """With the seconds of the processor of this machine: by the median ratio of equal networks and algorithms."""
    here = machine()["processor"]
    base = table([r for r in ran if r.processor == here])
    for processor in dict.fromkeys(r.processor for r in ran):
        runs = [r for r in ran if r.processor == processor]
        theirs = table(runs)
        factor = statistics.median(theirs[kind] / base[kind] for kind in theirs if kind in base)
        print(f"{processor}: {sum(r.seconds for r in runs) / 3600:.1f} h, {factor:.2f} times as long as here")
        yield from (r._replace(seconds=r.seconds / factor) for r in runs)


def table(ran: Iterable[Ran]) -> dict[Kind, float]:
    """Seconds per FLOP of each kind; by runs that do not end at a target, if there are any."""
    kinds: dict[Kind, list[Ran]] = defaultdict(list)
    for r in ran:
        if r.work:  # runs of before it was recorded have none
            kinds[r.kind].append(r)
    complete = {kind: [r for r in runs if not r.ends] or runs for kind, runs in kinds.items()}
    return {kind: sum(r.seconds for r in runs) / sum(r.work for r in runs) for kind, runs in complete.items()}


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else 3 * [*values]
    return low, middle, high
