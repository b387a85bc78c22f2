"""Show the jobs of a scale, what they cost, what their results are worth and what cannot run here.

Seconds are estimates for one core of an ordinary CPU. A job whose data set is not in the data folder is left out of the
workflow, and `state` says what it needs. Results are current, or of older code (and perhaps confirmed by a replay), or
have too few seeds, or are of another declaration and not used.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reproduce.commands.text import duration, print_json, print_table, short

if TYPE_CHECKING:
    from reproduce.plan import Job

NAME = "plan"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", help="a paper (fedacs) or an artifact (fedacs/fig6); default: all")
    parser.add_argument("--scale", default="paper", help="smoke, reduced or paper (default)")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan, results

    wanted = {a.id for a in plan.select(args.target)}
    jobs = [j for j in plan.jobs(args.scale) if wanted.intersection(j.artifacts)]
    if args.json:
        print_json([describe(j) for j in jobs])
        return
    header = ["PAPER", "JOB", "EXPERIMENTS", "SEEDS", "SAMPLES", "FLOPS", "TIME", "STATE"]
    rows = []
    for j in jobs:
        cost = plan.cost(j)
        counts = [str(len(j.experiments)), str(len(j.panel.seeds)), short(cost.samples), short(cost.flops)]
        rows.append([j.paper, j.name, *counts, duration(cost.seconds), state(j)])
    print_table(header, rows, right=("EXPERIMENTS", "SEEDS", "SAMPLES", "FLOPS", "TIME"))
    able = [j for j in jobs if not plan.missing(j) and not results.standing(j).holds]
    lacking = sum(bool(plan.missing(j)) and not results.standing(j).usable for j in jobs)
    seconds, flops = sum(plan.cost(j).seconds for j in able), sum(plan.cost(j).flops for j in able)
    print(
        f"\n{len(jobs)} jobs, {sum(j.runs for j in jobs)} runs; {lacking} jobs lack their data; {results.tally(jobs)}"
    )
    print(f"estimate for the {len(able)} to train: {short(flops)}FLOP, {duration(seconds)} on one core")


def state(job: Job) -> str:
    """What the results file is worth, in words; without one: what the job needs, or "ready"."""
    from reproduce import plan, results

    standing = results.standing(job)
    able = plan.missing(job) or plan.expensive(job) or "ready"
    return standing.words if standing.usable else "; ".join(filter(None, [standing.words, able]))


def describe(job: Job) -> dict[str, object]:
    """A job as JSON-ready data; seconds, FLOPs and bytes are estimates, `missing` is "" for a job that can run."""
    from reproduce import plan, results

    cost, standing = plan.cost(job), results.standing(job)
    return {
        "paper": job.paper,
        "job": job.name,
        "scale": job.scale,
        "panel": job.panel.name,
        "artifacts": list(job.artifacts),
        "experiments": len(job.experiments),
        "seeds": list(job.panel.seeds),
        "runs": job.runs,
        "samples": cost.samples,
        "flops": cost.flops,
        "seconds": cost.seconds,
        "bytes": cost.bytes,
        "output": job.output,
        "missing": plan.missing(job),
        "done": standing.holds,
        "state": standing.state,
        "result": standing.words,
    }
