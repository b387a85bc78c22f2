"""Train the first rounds of finished jobs again with today's code, and compare with what their results files hold.

What was compared is recorded in results/SCALE/replay.csv. A result of older code whose replay agrees counts as
confirmed; one that does not is named, and trained again when it is asked for. Jobs come in the order of their cost;
those that are recorded for today's code are skipped, so that a replay that was stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.text import print_table

if TYPE_CHECKING:
    from reproduce.plan import Job

NAME = "replay"
EXACT = 100
"""Rounds of jobs without networks: they cost nothing, and a deviation does not grow in them."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("target", nargs="?", help="a paper (fedacs) or an artifact (fedacs/fig6); default: all")
    parser.add_argument("--rounds", type=int, default=2, metavar="K", help="rounds to train at least (default: 2)")
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="stop after so many minutes (default: when all is done)"
    )


def run(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from reproduce import files, plan, results
    from reproduce.errors import UserError

    if args.rounds < 1 or (args.minutes is not None and not args.minutes > 0):
        raise UserError("replay at least 1 round, for more than 0 minutes")
    wanted = {a.id for a in plan.select(args.target)}
    found = [j for j in plan.jobs(args.scale) if wanted.intersection(j.artifacts) and results.standing(j).exists]
    files.check_writable(results.replay_file(args.scale))
    todo = sorted(pending(found, args.rounds), key=lambda j: expected(j, args.rounds))
    deadline = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    rows, late, failed = [], 0, []
    with tqdm(todo, unit="job", disable=not todo) as bar:
        for job in bar:
            bar.set_postfix_str(f"{job.paper}/{job.name}")
            try:
                line = one(job, args.rounds, deadline) if time.monotonic() < deadline else None
            except UserError as error:
                failed.append(f"{job.paper}/{job.name}: {error}")
                continue
            if line is None:
                late += 1
                continue
            results.record_replay(args.scale, line)
            rows.append(
                [line[c] for c in ("job", "seeds", "rounds", "rows", "deviation", "tolerance", "agrees", "where")]
            )
    if rows:
        header = ["JOB", "SEEDS", "ROUNDS", "ROWS", "DEVIATION", "TOLERANCE", "AGREES", "WHERE"]
        print_table(header, rows, right=("ROUNDS", "ROWS", "DEVIATION", "TOLERANCE"))
    left = f", {late} left when the time was up" if late else ""
    print(f"replayed {len(rows)}{left}; {results.tally(found)}")
    differing = [f"{j.paper}/{j.name}" for j in found if results.standing(j).code == "differs"]
    if differing:
        failed.append(f"today's code gives other numbers for {', '.join(differing)}: train again")
    if failed:
        raise UserError("; ".join(failed))


def pending(jobs: list[Job], rounds: int) -> Iterator[Job]:
    """The jobs to replay: of older code, with data, and not recorded for today's code with as many rounds."""
    from reproduce import plan, results

    for job in jobs:
        standing = results.standing(job)
        line = results.replays(job.scale).get(f"{job.paper}/{job.name}", {})
        if not standing.usable or standing.code == "current":
            continue
        if standing.code in ("confirmed", "differs") and int(line["asked"]) >= rounds:
            continue
        if plan.missing(job):
            print(f"{job.paper}/{job.name}: not replayed, {plan.missing(job)}", file=sys.stderr)
            continue
        yield job


def expected(job: Job, rounds: int) -> float:
    """Seconds that the replay of a job takes, about: some rounds, or those up to the first evaluation, of one seed."""
    from reproduce import plan

    sizes = [(e.clock.length(e), e.clock.evaluations(e)) for e in job.experiments]
    share = max(max(rounds, length / evaluations) / length for length, evaluations in sizes)
    return plan.cost(job).seconds * share / len(job.panel.seeds)


def one(job: Job, rounds: int, deadline: float) -> Mapping[str, str] | None:
    """Replay one job: its line in the record, or None if the deadline came first.

    Quadratics are replayed with all their seeds for `EXACT` rounds at least, networks with the first seed. Where that
    one differs, all are: narrow layers round otherwise in a stack with fewer models, and a few rounds of a small
    network can make points of such a difference.
    """
    from reproduce import results
    from reproduce.engine.hardware import machine
    from reproduce.engine.provenance import now
    from reproduce.engine.replay import replay
    from reproduce.experiment import code
    from reproduce.report.histories import load

    note = results.provenance(job.output)
    problems: list[Any] = [e.problem for e in job.experiments]
    networks = any(problem.model for problem in problems)
    seeds, length = (note["seeds"][:1], rounds) if networks else (note["seeds"], max(rounds, EXACT))
    source, start = code(job.experiments), time.monotonic()

    def tick() -> None:
        if time.monotonic() > deadline:
            raise TimeoutError

    precision = results.precision(note)
    try:
        stored = load([(job.panel.name, Path(job.output), "")], job.scale).frame
        outcome = replay(job.experiments, seeds, length, stored, precision, tick)
        if not outcome.agrees and seeds != note["seeds"]:
            seeds = note["seeds"]
            outcome = replay(job.experiments, seeds, length, stored, precision, tick)
    except TimeoutError:
        return None
    here = machine()
    return {
        "job": f"{job.paper}/{job.name}",
        "result": note["date"],
        "code": source,
        "seeds": " ".join(map(str, seeds)),
        "asked": str(rounds),
        "rounds": str(outcome.rounds),
        "rows": str(outcome.rows),
        "deviation": f"{outcome.deviation:.2g}",
        "where": outcome.where,
        "tolerance": f"{outcome.tolerance:g}",
        "agrees": "yes" if outcome.agrees else "no",
        "seconds": f"{time.monotonic() - start:.1f}",
        "processor": here["processor"],
        "instructions": here["instructions"],
        "date": now(),
    }
