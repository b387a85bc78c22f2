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

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reproduce import cli
from reproduce.runs import costs, plan, rates, results
from reproduce.runs.catalogue import Known, Listed, catalogue, statuses
from reproduce.settings import budget, check_place, settings
from reproduce.text import counted, duration, fill, print_json, print_table, short

NAME = "plan"


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    parser.add_argument("--jobs", action="store_true", help="list the jobs")
    cli.as_json(parser)


def run(args: argparse.Namespace) -> None:
    check_place()
    known = catalogue(args.scale)
    artifacts = known.select(args.target)
    ids = {a.id for a in artifacts}
    jobs = [j for j in known.jobs if ids.intersection(j.artifacts)]
    budget()  # a wrong setting is reported before anything is estimated
    if args.json:
        print_json([describe(j) for j in jobs])
        return
    if args.jobs or "/" in (args.target or ""):
        named = not args.target
        rows = [[*[j.paper] * named, j.name, str(j.runs), costs.total_time([j.cost]), state(j)] for j in jobs]
        print_table([*["PAPER"] * named, "JOB", "RUNS", "TIME", "STATE"], rows, ("RUNS", "TIME"))
    else:
        _print_groups(jobs, artifacts, one=bool(args.target))
    able = [j for j in jobs if trains(j)]
    each = [j.due for j in able]
    seconds, flops = [c.seconds for c in each], sum(c.flops for c in each)
    print()
    declared = f"{counted(len(jobs), 'job')}, {counted(sum(j.runs for j in jobs), 'run')}"
    print(fill(f"{declared}; stored: {results.tally(statuses(jobs))}"))
    most, gpu = "at most " * any(j.at_most for j in able), settings().device == "cuda"
    total = f"{most}{short(flops)}FLOP, {costs.total_time(each)} {costs.processor()}{'' if gpu else busy(seconds)}"
    print(fill(f"estimate for the {len(able)} to train: {total}" if able else "nothing to train"))
    basis = f"of similar committed runs, {rates.machine():.2g} times as long here as there"
    print(fill(f"times: {'guessed, no GPU was measured (docs/gpu.md)' if gpu else basis}"))


def trains(job: Known) -> bool:
    """Tells whether a job has runs to train and can be trained here."""
    return not job.holds and not plan.missing(job)


def _print_groups(jobs: Sequence[Known], artifacts: Sequence[Listed], one: bool) -> None:
    """A line for each of the papers, or for each artifact of one."""
    rows = []
    for name in dict.fromkeys(a.id if one else a.paper for a in artifacts):
        group = [j for j in jobs if name in (j.artifacts if one else (j.paper,))]
        each = [j.due for j in group if trains(j)]
        lacking = Counter(n for j in group if not j.holds for n in plan.lacking(j))
        missing = ", ".join(f"{name} ({count})" for name, count in lacking.items())
        seconds, flops = sum(c.seconds for c in each), short(sum(c.flops for c in each))
        bound = "≤ " * any(c.loose for c in each)
        time = [f"{bound}{duration(seconds)}", flops] if each else ["", ""]
        rows.append([name, str(len(group)), str(len(each)), *time, missing])
    header = ["ARTIFACT" if one else "PAPER", "JOBS", "DUE", "TIME", "FLOPS", "DATA SETS MISSING (OF JOBS)"]
    print_table(header, rows, header[1:-1])


def busy(seconds: Sequence[float]) -> str:
    """The time if all cores are busy throughout, and at least that of the longest job. It begins with a comma; "" on
    one core."""
    cores = os.cpu_count() or 1
    return f", {duration(max(sum(seconds) / cores, *seconds))} on all {cores}" if cores > 1 and seconds else ""


def state(job: Known) -> str:
    """The state of the results file, in words. Without a file, what the job needs, or "ready"."""
    able = plan.missing(job) or costs.expensive(job) or "ready"
    return job.words if job.usable else "; ".join(filter(None, [job.words, able]))


def describe(job: Known) -> dict[str, object]:
    """A job as JSON-ready data; seconds (of one core), FLOPs, bytes are estimates for all its seeds (bounds of which
    are `most`, and the FLOPs, if `at_most`), `missing` is "" if it can run."""
    what = ("paper", "scale", "panel", "artifacts", "experiments", "seeds", "runs", "at_most", "output", "state")
    status = {"missing": plan.missing(job), "done": job.holds, "result": job.words}
    return {"job": job.name, **{name: getattr(job, name) for name in what}, **asdict(job.cost), **status}
