"""Train the first rounds of finished jobs again with current code, and compare them with the results files.

Sessions are followed into the first one whose clients come back, the tables' first transition. The comparison misses
effects in later rounds, such as a message lost in the tenth round.

results/SCALE/replay.csv records the comparisons. A stale result that the comparison reproduces counts as re-checked.
Where numbers deviate, a second run from a start moved by rounding shows what rounding alone does (`noise`). A result
that the comparison does not reproduce is named, and trained again on request. Results of current code, and those
compared with it before, are skipped, so that a stopped comparison resumes; `--again` compares them too.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reproduce import cli, files
from reproduce.declare.experiment import code
from reproduce.engine.host import machine
from reproduce.errors import UserError
from reproduce.runs import plan, results
from reproduce.runs.plan import Job
from reproduce.runs.provenance import now
from reproduce.settings import check_place
from reproduce.store import Stored
from reproduce.text import counted, duration

NAME = "replay"
ROUNDS = 2
"""Rounds to train at least."""
EXACT = 100
"""Rounds of jobs without networks: they cost nothing, and a deviation does not grow in them."""


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    parser.add_argument("--again", action="store_true", help="replay also what is of today's code, or was replayed")


def run(args: argparse.Namespace) -> None:
    """Replays the jobs. Raises UserError at the end, for jobs that cannot be replayed and for results that differ."""
    ids = {a.id for a in plan.select(args.target)}
    check_place()
    files.check_writable(results.replay_file(args.scale))
    every = plan.jobs(args.scale)
    jobs = [j for j in every if ids.intersection(j.artifacts) and results.standing(j).exists]
    todo, failed, lines = [j for j in jobs if pending(j, args.again)], [], []
    if todo and not args.target:
        raise UserError(f"name a paper or an artifact to replay; there are {costs(todo, args.scale)}")
    with tqdm(todo, unit="job", disable=not todo or None) as bar:
        for job in bar:
            bar.set_postfix_str(f"{job.paper}/{job.name}")
            try:
                lines.append(replay(job))
                results.add_replay(args.scale, lines[-1])
            except UserError as error:
                failed.append(f"{job.paper}/{job.name}: {error}")
    results.drop_replays(args.scale, every)
    deviating = [line["job"] for line in lines if line["agrees"] == "no"]
    agree = f", {len(lines) - len(deviating) if deviating else 'all'} agree" * bool(lines)
    print(f"replayed {len(lines)}{agree}; {results.tally(r.status for j in jobs for r in results.standing(j).runs)}")
    differing = dict.fromkeys([*deviating, *(f"{j.paper}/{j.name}" for j in jobs if "not reproduced" in states(j))])
    if differing:
        failed.append(f"today's code gives other numbers for {', '.join(differing)}: train again")
    if failed:
        raise UserError("; ".join(failed))


def costs(jobs: Sequence[Job], scale: str) -> str:
    """The number of jobs of each paper, and how long their last replays took, in words."""
    took, papers = results.replay_lines(scale), Counter(job.paper for job in jobs)
    seconds = dict.fromkeys(papers, 0.0)
    for job in jobs:
        seconds[job.paper] += float(took.get(f"{job.paper}/{job.name}", {}).get("seconds", 0))
    return ", ".join(f"{counted(n, 'job')} of {p} ({duration(seconds[p])} last time)" for p, n in papers.items())


def pending(job: Job, again: bool = False) -> bool:
    """Tells whether to replay the job: it has usable results and data, and stale runs without a replay by
    today's code, or is asked for `again`."""
    if not results.standing(job).usable or (not again and states(job) <= {"current", "re-checked", "not reproduced"}):
        return False
    if missing := plan.missing(job):
        print(f"{job.paper}/{job.name}: not replayed, {missing}", file=sys.stderr)
    return not missing


def states(job: Job) -> set[str]:
    """The states of the job's runs that are there."""
    return {run.state for run in results.standing(job).runs if run.stored}


def depth(job: Job) -> int:
    """The round up to which a replay goes: `ROUNDS`, with sessions counted from the first whose clients come back,
    since that one starts from stored models."""
    from reproduce.clocks.sessions import Sessions

    clocks = [e.clock for e in job.experiments]
    return ROUNDS + max((c.returns * c.rounds for c in clocks if isinstance(c, Sessions)), default=0)


def replay(job: Job) -> Mapping[str, str]:
    """Replay a job; its line in the record.

    Quadratics are replayed with all their seeds for `EXACT` rounds at least, networks with the first seed of each
    training.
    """
    from reproduce.report.histories import Source, load
    from reproduce.runs import replay

    runs = results.standing(job).stored
    problems: list[Any] = [e.problem for e in job.experiments]
    rounds = depth(job)
    counts = Counter(run.seed for run in runs)
    trained = [seed for seed in counts if counts[seed] == len(job.experiments)]
    if not trained:
        raise UserError("its settings have no seed in common: train the seeds that are missing")
    networks = any(problem.model for problem in problems)
    seeds, length = (_first_seeds(runs, trained), rounds) if networks else (trained, max(rounds, EXACT))
    source, start, precision = code(job.experiments), time.monotonic(), runs[0].precision
    stored = load([Source(job.panel.name, Path(job.output))], job.scale, experiments=job.experiments).frame
    outcome = replay.replay(job.experiments, seeds, length, stored, precision)
    host = machine()
    return {
        "job": f"{job.paper}/{job.name}",
        "result": max(run.training["date"] for run in runs),
        "code": source,
        "seeds": " ".join(map(str, seeds)),
        "asked": str(rounds),
        "rounds": str(outcome.rounds),
        "rows": str(outcome.rows),
        "deviation": f"{outcome.deviation:.2g}",
        "where": outcome.where,
        "tolerance": f"{outcome.tolerance:g}",
        "noise": "" if math.isnan(outcome.noise) else f"{outcome.noise:.2g}",
        "agrees": "yes" if outcome.agrees else "no",
        "seconds": f"{time.monotonic() - start:.1f}",
        "processor": str(host["processor"]),
        "instructions": str(host["instructions"]),
        "date": now(),
    }


def _first_seeds(runs: Sequence[Stored], seeds: Sequence[int]) -> list[int]:
    """The seeds that are the first of some training, in the order of `seeds`; a training is known by its date."""
    firsts = {run.training["date"]: run.seed for run in reversed(runs) if run.seed in seeds}
    return [seed for seed in seeds if seed in firsts.values()]
