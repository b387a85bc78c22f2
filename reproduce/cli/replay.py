"""Train the first rounds of finished jobs again with today's code, and compare with what their results files hold.

Sessions are followed into the first one whose clients come back, the tables' first transition. What acts later still (a
message lost in the tenth round, a model that became stale) is not seen in the few rounds that are asked for unless
told: `--rounds`.

What was compared is recorded in results/SCALE/replay.csv. A result of older code whose replay agrees counts as
confirmed; one that does not is named, and trained again when it is asked for. Jobs come in the order of their cost;
those that are recorded for today's code are skipped, so that a replay that was stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.cli import options
from reproduce.text import print_json, print_table

if TYPE_CHECKING:
    from reproduce.runs.plan import Job
    from reproduce.store.reading import Stored

NAME = "replay"
EXACT = 100
"""Rounds of jobs without networks: they cost nothing, and a deviation does not grow in them."""


def arguments(parser: argparse.ArgumentParser) -> None:
    options.target(parser)
    options.scale(parser)
    parser.add_argument("--rounds", type=int, default=2, metavar="K", help="rounds to train at least (default: 2)")
    options.as_json(parser)


def run(args: argparse.Namespace) -> None:
    from reproduce.errors import UserError
    from reproduce.runs import plan, results
    from reproduce.settings import check_place

    if args.rounds < 1:
        raise UserError("replay at least 1 round")
    wanted = {a.id for a in plan.select(args.target)}
    check_place()
    found = [j for j in plan.jobs(args.scale) if wanted.intersection(j.artifacts) and results.standing(j).exists]
    again([[job] for job in found], args.scale, args.rounds, args.json)


def again(
    groups: Sequence[Sequence[Job]],
    scale: str,
    rounds: int = 2,
    json: bool = False,
) -> None:
    """Replay what of these results needs it, a group in one cohort, record and print it.

    UserError, when all is done, for what cannot be replayed and for results that today's code does not give.
    """
    from tqdm import tqdm

    from reproduce import files
    from reproduce.errors import UserError
    from reproduce.runs import replayed, results

    files.check_writable(replayed.file(scale))
    replayed.check(scale)
    found = [job for group in groups for job in group]
    todo = [list(pending(g, rounds)) for g in groups]
    todo = sorted(filter(None, todo), key=lambda g: expected(g, rounds))
    shown = ("job", "seeds", "rounds", "rows", "deviation", "tolerance", "agrees", "where")
    done: list[Mapping[str, str]] = []
    failed = []
    with tqdm(total=sum(map(len, todo)), unit="job", disable=not todo or None) as bar:
        for group in todo:
            bar.set_postfix_str(f"{group[0].paper}/{group[0].name}")
            try:
                lines = together(group, rounds)
            except UserError as error:
                failed.append(f"{group[0].paper}/{group[0].name}: {error}")
                continue
            finally:
                bar.update(len(group))
            replayed.add(scale, lines)
            done += lines
    if json:
        print_json(done)
    elif done:
        rows = [[line[c] for c in shown] for line in done]
        print_table(list(map(str.upper, shown)), rows, right=("ROUNDS", "ROWS", "DEVIATION", "TOLERANCE"))
    print(f"replayed {len(done)}; {results.tally(found)}", file=sys.stderr if json else sys.stdout)
    differing = [f"{j.paper}/{j.name}" for j in found if "differs" in states(j)]
    if differing:
        failed.append(f"today's code gives other numbers for {', '.join(differing)}: train again")
    if failed:
        raise UserError("; ".join(failed))


def pending(jobs: Iterable[Job], rounds: int) -> Iterator[Job]:
    """The jobs to replay: of older code, with data, and not recorded for today's code with as many rounds."""
    from reproduce.runs import plan, replayed, results

    for job in jobs:
        found = states(job)
        line = replayed.lines(job.scale).get(f"{job.paper}/{job.name}", {})
        if not results.standing(job).usable or found <= {"current"}:
            continue
        if found <= {"current", "confirmed", "differs"} and int(line["asked"]) >= depth(job, rounds):
            continue
        if plan.missing(job):
            print(f"{job.paper}/{job.name}: not replayed, {plan.missing(job)}", file=sys.stderr)
            continue
        yield job


def states(job: Job) -> set[str]:
    """The states of the job's runs that are there."""
    from reproduce.runs import results

    return {run.state for run in results.standing(job).runs if run.stored}


def depth(job: Job, rounds: int) -> int:
    """The round to which a replay follows: the first `rounds`; of sessions, those of the first one whose clients come
    back, which starts from what they and others left."""
    from reproduce.clocks.sessions import Sessions

    clocks = [e.clock for e in job.experiments]
    return rounds + max((c.returns * c.rounds for c in clocks if isinstance(c, Sessions)), default=0)


def expected(jobs: Sequence[Job], rounds: int) -> float:
    """Seconds that the replay takes, about: some rounds, or those up to the first evaluation, of one seed."""
    from reproduce.runs import costs

    def seconds(job: Job) -> float:
        sizes = [(e.clock.length(e), e.clock.evaluations(e)) for e in job.experiments]
        share = max(min(1.0, max(depth(job, rounds), long / looks) / long) for long, looks in sizes)
        return costs.cost(job).seconds * share / len(job.panel.seeds)

    return sum(map(seconds, jobs))


def together(jobs: Sequence[Job], rounds: int) -> list[Mapping[str, str]]:
    """Replay jobs that are alike but for their algorithms in one cohort; one by one if that does not agree. Their lines
    in the record."""
    whole = _replayed(jobs, rounds)
    if len(jobs) == 1 or all(line["agrees"] == "yes" for line in whole):
        return whole
    return [line for job in jobs for line in _replayed([job], rounds)]


def _replayed(jobs: Sequence[Job], rounds: int) -> list[Mapping[str, str]]:
    """The lines of jobs that are replayed in one cohort, which share its outcome.

    Quadratics are replayed with all their seeds for `EXACT` rounds at least, networks with the first seed of each
    training. Where these differ, all are: narrow layers round otherwise in a stack with fewer models, and a few rounds
    of a small network can make points of such a difference.
    """
    from reproduce.declare.experiment import code
    from reproduce.engine.hardware import machine
    from reproduce.errors import UserError
    from reproduce.report.histories import Source, load
    from reproduce.runs import results
    from reproduce.runs.provenance import now
    from reproduce.runs.replay import replay

    there = [run for job in jobs for run in results.standing(job).there]
    experiments = [e for job in jobs for e in job.experiments]
    problems: list[Any] = [e.problem for e in experiments]
    rounds = max(depth(job, rounds) for job in jobs)
    networks = any(problem.model for problem in problems)
    counts = Counter(run.seed for run in there)
    trained = [seed for seed in counts if counts[seed] == len(experiments)]
    if not trained:
        raise UserError("its settings have no seed in common: train the seeds that are missing")
    seeds, length = (_first(there, trained), rounds) if networks else (trained, max(rounds, EXACT))
    codes, start = [code(job.experiments) for job in jobs], time.monotonic()

    precision = there[0].precision
    files = [Source(job.panel.name, Path(job.output)) for job in jobs]
    stored = load(files, jobs[0].scale, experiments=experiments).frame
    outcome = replay(experiments, seeds, length, stored, precision)
    if not outcome.agrees and seeds != trained:
        seeds = trained
        outcome = replay(experiments, seeds, length, stored, precision)
    here, seconds = machine(), time.monotonic() - start
    said: dict[str, str] = {
        "seeds": " ".join(map(str, seeds)),
        "asked": str(rounds),
        "rounds": str(outcome.rounds),
        "rows": str(outcome.rows),
        "deviation": f"{outcome.deviation:.2g}",
        "where": outcome.where,
        "tolerance": f"{outcome.tolerance:g}",
        "agrees": "yes" if outcome.agrees else "no",
        "seconds": f"{seconds / len(jobs):.1f}",
        "processor": str(here["processor"]),
        "instructions": str(here["instructions"]),
        "date": now(),
    }
    lines: list[Mapping[str, str]] = []
    for job, source in zip(jobs, codes, strict=True):
        newest = max(run.training["date"] for run in results.standing(job).there)
        lines.append({"job": f"{job.paper}/{job.name}", "result": newest, "code": source, **said})
    return lines


def _first(there: Sequence[Stored], seeds: Sequence[int]) -> list[int]:
    """The first of the seeds that each training has."""
    firsts = {run.training["date"]: run.seed for run in reversed(there) if run.seed in seeds}
    return [seed for seed in seeds if seed in firsts.values()]
