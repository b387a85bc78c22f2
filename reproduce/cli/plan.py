"""Show what the tables and figures of a scale cost, what their results are worth and what cannot run here.

A line an artifact, or with `--jobs` a line a job, under the name that `train` takes. Artifacts may share jobs: those
count with each, and once in the total. With `--claims` a line for each claim that is not run, undecided or supported
where run, the cheapest first: the jobs without results that it reads and their time, and what all lines so far take
together, where that grows. Claims that need data sets besides have a list of their own, with the time of the jobs that
lack their data. Below, the claims that more seeds would decide in half of the cases, if means and spreads are what they
seem (if the paper is right, where nothing was run), and what these take.

Times are estimates for one core of this machine, measured when `plan` is first used (some seconds) and kept in the
store; the last line says where they come from. Where runs may end at a target they are bounds (≤). A job whose data set
is not in the data folder is left out of the workflow, and `state` says what it needs. Results are current, or of older
code (and perhaps confirmed by a replay), or have too few seeds, or runs that were followed only to their target, or are
of another declaration and not used.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from reproduce.cli.frames import plain_strings
from reproduce.errors import UserError
from reproduce.text import counted, duration, fill, print_json, print_table, short

if TYPE_CHECKING:
    from reproduce.runs.needs import Need
    from reproduce.runs.plan import Job

NAME = "plan"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", help="a paper (fedacs) or an artifact (fedacs/fig6); default: all")
    parser.add_argument("--scale", default="paper", help="smoke, reduced or paper (default)")
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--jobs", action="store_true", help="list the jobs")
    listed.add_argument("--claims", action="store_true", help="list the open claims, and what each waits for")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    measuring = parser.add_mutually_exclusive_group()
    measuring.add_argument("--calibrate", action="store_true", help="measure this machine again first")
    measuring.add_argument("--no-calibrate", action="store_true", help="measure nothing, even if nothing is known yet")


def run(args: argparse.Namespace) -> None:
    from reproduce.runs import costs, plan, results
    from reproduce.settings import budget, check_place

    wanted = {a.id for a in plan.select(args.target)}
    jobs = [j for j in plan.jobs(args.scale) if wanted.intersection(j.artifacts)]
    check_place()
    budget()  # a wrong setting is reported before anything is measured
    if not args.no_calibrate:
        learn(again=args.calibrate)
    if args.claims:
        _print_claims(args.scale, wanted, args.json)
        return
    if args.json:
        print_json([describe(j) for j in jobs])
        return
    (_print_jobs if args.jobs else _print_artifacts)(jobs, wanted)
    able = [j for j in jobs if not plan.missing(j) and not results.standing(j).holds]
    lacking = sum(bool(plan.missing(j)) and not results.standing(j).holds for j in jobs)
    seconds, flops = [costs.due(j).seconds for j in able], sum(costs.due(j).flops for j in able)
    print()
    declared = f"{counted(len(jobs), 'job')}, {counted(sum(j.runs for j in jobs), 'run')}"
    print(fill(f"{declared}; jobs without their data: {lacking}; stored: {results.tally(jobs)}"))
    most = "at most " * any(map(costs.at_most, able))
    total = f"{most}{short(flops)}FLOP, {duration(sum(seconds))} on one core{busy(seconds)}"
    print(fill(f"estimate for the {len(able)} to train: {total}" if able else "nothing to train"))
    corrected = sum(costs.correction(j) != 1 for j in jobs)
    print(fill(f"times: {costs.rates().source}; {counted(corrected, 'job')} corrected by finished ones"))


def _print_artifacts(jobs: Sequence[Job], wanted: Collection[str]) -> None:
    from reproduce.papers import artifacts
    from reproduce.runs import costs, plan, results

    rows = []
    for name in (a.id for a in artifacts() if a.id in wanted):
        mine = [j for j in jobs if name in j.artifacts]
        due = [j for j in mine if not plan.missing(j) and not results.standing(j).holds]
        each = [costs.due(j) for j in due]
        time = bound(due) + duration(sum(c.seconds for c in each))
        needs = [time, short(sum(c.flops for c in each))] if due else ["", ""]
        states = Counter(map(state, mine)).most_common()
        said = " | ".join(f"{count}: {text}" for text, count in states) or "nothing to train"
        rows.append([name, str(len(mine)), str(len(due)), *needs, said])
    print_table(["ARTIFACT", "JOBS", "DUE", "TIME", "FLOPS", "STATE"], rows, right=("JOBS", "DUE", "TIME", "FLOPS"))


def _print_jobs(jobs: Sequence[Job], wanted: Collection[str]) -> None:
    from reproduce.runs import costs

    header = ["PAPER", "JOB", "EXPERIMENTS", "SEEDS", "SAMPLES", "FLOPS", "TIME", "STATE"]
    rows = []
    for j in jobs:
        cost = costs.cost(j)
        counts = [str(len(j.experiments)), str(len(j.panel.seeds)), short(cost.samples), short(cost.flops)]
        rows.append([j.paper, j.name, *counts, bound([j]) + duration(cost.seconds), state(j)])
    print_table(header, rows, right=("EXPERIMENTS", "SEEDS", "SAMPLES", "FLOPS", "TIME"))


@plain_strings()
def _print_claims(scale: str, wanted: Collection[str], as_json: bool) -> None:
    from reproduce.runs.needs import needs, seconds

    found = needs(scale, wanted)
    if as_json:
        print_json([_told(n) for n in found])
        return
    rows: list[list[str]] = []
    lacking: list[list[str]] = []
    counted: list[Job] = []
    for n in (n for n in found if n.jobs or n.lacking):
        time = bound(n.jobs) + duration(seconds(n.jobs)) if n.jobs else ""
        if n.lacking:
            with_data = bound(n.without) + duration(seconds(n.without)) if n.without else ""
            lacking.append([n.claim, n.verdict, ", ".join(n.lacking), time, with_data])
            continue
        grows = not set(n.jobs) <= set(counted)
        counted += n.jobs
        so_far = duration(seconds(counted)) if grows else ""
        rows.append([n.claim, n.verdict, str(len(n.jobs)), time, so_far])
    for head, lines in (("CLAIM VERDICT JOBS TIME SO_FAR", rows), ("CLAIM VERDICT LACKS TIME WITH_DATA", lacking)):
        if lines:
            names = [name.replace("_", " ") for name in head.split()]
            print_table(names, lines, right=("JOBS", "TIME", "SO FAR", "WITH DATA"))
            print()
    runs = sum(bool(n.jobs and not n.lacking) for n in found)
    data = sum(bool(n.lacking) for n in found)
    there = [n.verdict for n in found if not (n.jobs or n.lacking)]
    seeds = there.count("undecided")
    rest = len(there) - seeds
    says = [f"{len(found)} open claims asked at {scale} scale: {runs} wait for runs alone, {data} for data sets too"]
    says += [f"{seeds} have all their runs (more seeds would narrow their intervals)"] if seeds else []
    says += [f"{rest} need what no declared run gives"] if rest else []
    print(fill("; ".join(says)))
    _print_prospects(found)


def _print_prospects(found: Sequence[Need]) -> None:
    """The claims that more seeds would decide, the cheapest first; those that cannot be trained here last."""
    rows = [
        [
            n.claim,
            str(n.prospect.now),
            f"~{n.prospect.seeds}",
            n.prospect.verdict,
            bound(n.done) + duration(n.more_seeds) + (" and data" if n.without else ""),
        ]
        for n in sorted(found, key=lambda n: (bool(n.without), n.more_seeds))
        if n.prospect
    ]
    if rows:
        print()
        print_table(["CLAIM", "SEEDS", "WANTED", "WOULD BE", "TIME"], rows, right=("SEEDS", "WANTED", "TIME"))
        print()
        print(
            fill("SEEDS: of the setting with the fewest; WANTED: in every setting, for a decision in half of the cases")
        )


def _told(need: Need) -> dict[str, object]:
    """A need as JSON-ready data."""
    from reproduce.runs.needs import seconds

    prospect = need.prospect and {**vars(need.prospect), "seconds_with_them": need.more_seeds}
    names = {key: [j.name for j in getattr(need, key)] for key in ("jobs", "done", "without")}
    return {**vars(need), **names, "seconds": seconds(need.jobs), "prospect": prospect}


def bound(jobs: Iterable[Job]) -> str:
    """Before a time: "≤ " where runs may end at a target, so that it is an upper bound."""
    from reproduce.runs import costs

    return "≤ " * any(map(costs.at_most, jobs))


def learn(again: bool) -> None:
    """Measure the machine unless that was done before."""
    from reproduce.runs import costs
    from reproduce.runs.speed import kept
    from reproduce.settings import settings

    here = settings()
    if here.device != "cpu":
        if again:
            raise UserError("only the CPU can be measured: set the device to cpu")
        return
    if again or not kept.rates(here).measured:
        kept.calibrate(here)
    costs.forget_speed()


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
    """A job as JSON-ready data; seconds (of one core), FLOPs, bytes are estimates for all its seeds (bounds if
    `at_most`), `missing` is "" if it can run."""
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
        "samples": cost.samples,
        "flops": cost.flops,
        "seconds": cost.seconds,
        "at_most": costs.at_most(job),
        "correction": costs.correction(job),
        "rates": costs.rates().source,
        "bytes": cost.bytes,
        "output": job.output,
        "missing": plan.missing(job),
        "done": standing.holds,
        "state": standing.state,
        "result": standing.words,
    }
