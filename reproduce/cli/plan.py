"""Show the cost of a scale's tables and figures, the state of their results, and what cannot run here.

A line is a table or figure, or with `--jobs` a job, under the name that `train` takes. Tables and figures may share
jobs. Shared jobs count with each, and once in the total.

Times are estimates for one core of this machine. They are those of similar committed runs, times the speed of a small
computation there over its speed here; the last line has that factor. For runs that may end at a target, the estimate
is where similar runs ended (about), with the bound beside it. Without similar runs the time is a bound (≤). A job whose
data set is not in the data folder is left out of the workflow, and `state` says what it needs. Results are current, or
stale (and perhaps re-checked), or have too few seeds, or end at their target, or are of another declaration and
unused.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from reproduce import cli
from reproduce.text import counted, duration, fill, print_json, print_table, short

if TYPE_CHECKING:
    from reproduce.runs.plan import Job

NAME = "plan"


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    parser.add_argument("--jobs", action="store_true", help="list the jobs")
    cli.as_json(parser)


def run(args: argparse.Namespace) -> None:
    from reproduce.runs import costs, plan, rates, results
    from reproduce.settings import budget, check_place, settings

    wanted = {a.id for a in plan.select(args.target)}
    jobs = [j for j in plan.jobs(args.scale) if wanted.intersection(j.artifacts)]
    check_place()
    budget()  # a wrong setting is reported before anything is estimated
    if args.json:
        print_json([describe(j) for j in jobs])
        return
    if args.jobs:
        _print_jobs(jobs)
    else:
        _print_artifacts(jobs, wanted)
    able = [j for j in jobs if not plan.missing(j) and not results.standing(j).holds]
    lacking = sum(bool(plan.missing(j)) and not results.standing(j).holds for j in jobs)
    each = [costs.due(j) for j in able]
    seconds, flops = [c.seconds for c in each], sum(c.flops for c in each)
    print()
    declared = f"{counted(len(jobs), 'job')}, {counted(sum(j.runs for j in jobs), 'run')}"
    print(fill(f"{declared}; jobs without their data: {lacking}; stored: {results.tally(results.of(jobs))}"))
    most, gpu = "at most " * any(map(costs.at_most, able)), settings().device == "cuda"
    total = f"{most}{short(flops)}FLOP, {costs.said(each)} {costs.on()}{'' if gpu else busy(seconds)}"
    print(fill(f"estimate for the {len(able)} to train: {total}" if able else "nothing to train"))
    here = f"of similar committed runs, {rates.machine():.2g} times as long here as there"
    print(fill(f"times: {'guessed, no GPU was measured (docs/gpu.md)' if gpu else here}"))


def _print_artifacts(jobs: Sequence[Job], wanted: Collection[str]) -> None:
    from reproduce.papers import artifacts
    from reproduce.runs import costs, plan, results

    rows = []
    for name in (a.id for a in artifacts() if a.id in wanted):
        mine = [j for j in jobs if name in j.artifacts]
        due = [j for j in mine if not plan.missing(j) and not results.standing(j).holds]
        each = [costs.due(j) for j in due]
        needs = [costs.said(each), short(sum(c.flops for c in each))] if due else ["", ""]
        states = Counter(map(state, mine)).most_common()
        said = " | ".join(f"{count}: {text}" for text, count in states) or "nothing to train"
        rows.append([name, str(len(mine)), str(len(due)), *needs, said])
    header = ["ARTIFACT", "JOBS", "DUE", "TIME", "FLOPS", "STATE"]
    print_table(header, rows, header[1:-1])


def _print_jobs(jobs: Sequence[Job]) -> None:
    from reproduce.runs import costs

    header = ["PAPER", "JOB", "EXPERIMENTS", "SEEDS", "SAMPLES", "FLOPS", "TIME", "STATE"]
    rows = []
    for j in jobs:
        cost = costs.cost(j)
        counts = [str(len(j.experiments)), str(len(j.panel.seeds)), short(cost.samples), short(cost.flops)]
        rows.append([j.paper, j.name, *counts, costs.said([cost]), state(j)])
    print_table(header, rows, header[2:-1])


def busy(seconds: Sequence[float]) -> str:
    """The time on all cores, if none ever waits and no job is longer than that; with a comma before it."""
    cores = os.cpu_count() or 1
    return f", {duration(max(sum(seconds) / cores, *seconds))} on all {cores}" if cores > 1 and seconds else ""


def state(job: Job) -> str:
    """What the results file is worth, in words; without one: what the job needs, or "ready"."""
    from reproduce.runs import costs, plan, results

    standing = results.standing(job)
    able = plan.missing(job) or costs.expensive(job) or "ready"
    return standing.words if standing.usable else "; ".join(filter(None, [standing.words, able]))


def describe(job: Job) -> dict[str, object]:
    """A job as JSON-ready data; seconds (of one core), FLOPs, bytes are estimates for all its seeds (bounds of which
    are `most`, and the FLOPs, if `at_most`), `missing` is "" if it can run."""
    from reproduce.runs import costs, plan, results

    cost, standing = costs.cost(job), results.standing(job)
    return {
        "paper": job.paper,
        "job": job.name,
        "scale": job.scale,
        "panel": job.panel.name,
        "artifacts": list(job.artifacts),
        "experiments": len(job.experiments),
        "seeds": list(job.panel.seeds),
        "runs": job.runs,
        **asdict(cost),
        "at_most": costs.at_most(job),
        "output": job.output,
        "missing": plan.missing(job),
        "done": standing.holds,
        "state": standing.state,
        "result": standing.words,
    }
