"""Show the cost of a scale's tables and figures, and what cannot run here.

A line is a paper; of one paper, a table or figure; of one of these, or with `--jobs`, a job, under the name that
`train` takes and with the state of its results. Tables and figures may share jobs. Shared jobs count with each, and
once in the total.

Times are estimates for one core of this machine. They are those of similar committed runs, times the speed of a small
computation there over its speed here; the last line has that factor. For runs that may end at a target, the estimate
is where similar runs ended (about), with the bound beside it. Without similar runs the time is a bound (≤). A job whose
data set is not in the data folder is left out of the workflow, and the last column names what is missing. Results are
current, or stale (and perhaps re-checked), or have too few seeds, or end at their target, or are of another
declaration and unused.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
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
    if args.jobs or "/" in (args.target or ""):
        _print_jobs(jobs, named=not args.target)
    else:
        _print_groups(jobs, args.target)
    able = [j for j in jobs if trains(j)]
    each = [costs.due(j) for j in able]
    seconds, flops = [c.seconds for c in each], sum(c.flops for c in each)
    print()
    declared = f"{counted(len(jobs), 'job')}, {counted(sum(j.runs for j in jobs), 'run')}"
    print(fill(f"{declared}; stored: {results.tally(results.of(jobs))}"))
    most, gpu = "at most " * any(map(costs.at_most, able)), settings().device == "cuda"
    total = f"{most}{short(flops)}FLOP, {costs.said(each)} {costs.on()}{'' if gpu else busy(seconds)}"
    print(fill(f"estimate for the {len(able)} to train: {total}" if able else "nothing to train"))
    here = f"of similar committed runs, {rates.machine():.2g} times as long here as there"
    print(fill(f"times: {'guessed, no GPU was measured (docs/gpu.md)' if gpu else here}"))


def trains(job: Job) -> bool:
    """Is there something to train of a job, and can it be trained here?"""
    from reproduce.runs import plan, results

    return not plan.missing(job) and not results.standing(job).holds


def _print_groups(jobs: Sequence[Job], paper: str | None) -> None:
    """A line for each of the papers, or for each artifact of one."""
    from reproduce.papers import PAPERS, artifacts
    from reproduce.runs import costs, plan, results

    groups = {a.id: [j for j in jobs if a.id in j.artifacts] for a in artifacts(paper)} if paper else {}
    rows = []
    for name, mine in (groups or {p: [j for j in jobs if j.paper == p] for p in PAPERS}).items():
        each = [costs.due(j) for j in mine if trains(j)]
        lacking = Counter(n for j in mine if not results.standing(j).holds for n in plan.lacking(j))
        missing = ", ".join(f"{name} ({count})" for name, count in lacking.items())
        seconds, flops = sum(c.seconds for c in each), short(sum(c.flops for c in each))
        bound = "≤ " * any(c.loose for c in each)
        time = [f"{bound}{duration(seconds)}", flops] if each else ["", ""]
        rows.append([name, str(len(mine)), str(len(each)), *time, missing])
    header = ["ARTIFACT" if paper else "PAPER", "JOBS", "DUE", "TIME", "FLOPS", "DATA SETS MISSING (OF JOBS)"]
    print_table(header, rows, header[1:-1])


def _print_jobs(jobs: Sequence[Job], named: bool) -> None:
    """A line for each job; named: with its paper."""
    from reproduce.runs import costs

    rows = [[*[j.paper] * named, j.name, str(j.runs), costs.said([costs.cost(j)]), state(j)] for j in jobs]
    print_table([*["PAPER"] * named, "JOB", "RUNS", "TIME", "STATE"], rows, ("RUNS", "TIME"))


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
