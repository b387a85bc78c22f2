"""Train jobs and write their results files, as the workflow does; this needs neither Snakemake nor matplotlib."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reproduce import cli
from reproduce.engine.host import SIGNALS
from reproduce.errors import Stopped, UserError
from reproduce.runs import costs, plan, training
from reproduce.runs.plan import Job
from reproduce.settings import configure
from reproduce.text import duration

NAME = "train"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", metavar="PAPER", help="such as fedacs")
    parser.add_argument("job", nargs="+", metavar="JOB", help="a job's name, as `plan` prints it; several: in turn")
    cli.scale(parser)
    cli.reuse(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE",
        help="default: where the workflow expects it; another one is compared with the one that is there",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    configure({"REPRODUCE_REUSE": "1"} if args.reuse else {})

    jobs, output = [plan.job(args.scale, args.paper, name) for name in dict.fromkeys(args.job)], args.output
    if len(jobs) > 1:
        if output:
            raise UserError(f"-o {output} is one file: name one job")
        training.prepare(jobs)
        in_turn(jobs, training.train)
        return
    (job,) = jobs
    if output and output.name and not output.is_dir() and output.suffix != ".parquet":
        raise UserError(f"-o {output}: results are Parquet; give a name that ends in .parquet")
    training.train(job, output)
    if output and output.absolute() != Path(job.output).absolute():
        from reproduce.runs import replay

        print(replay.beside(job, output))


def in_turn(jobs: Sequence[Job], train: Callable[[Job], None]) -> None:
    """Train each in a process of its own, forked from this one, which is prepared: starting anew takes longer than a
    short job. Times, memory and a crash are those of one job. Says how long all take that are left.

    Raises Stopped if a job was asked to stop, and UserError when all have ended, if some have failed.
    """
    ahead = [costs.due(job).seconds for job in jobs]
    gc.freeze()
    failed = []
    for i, job in enumerate(jobs):
        progress = f"job {i + 1} of {len(jobs)}: {job.name}; about {duration(sum(ahead[i:]))} left for all"
        print(progress, file=sys.stderr)
        sys.stdout.flush()
        child = os.fork()
        if not child:  # the process of that job, which fails as if it had been called with it alone
            os.setpgid(0, 0)  # what is sent to this process comes to it once
            train(job)
            sys.stdout.flush()
            os._exit(0)  # taking apart what it shares with this process would copy it
        passed_on = partial(lambda child, number, frame: os.kill(child, number), child)
        before = {number: signal.signal(number, passed_on) for number in SIGNALS}
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for number, handler in before.items():
            signal.signal(number, handler)
        if status - 128 in SIGNALS:
            raise Stopped(f"{len(jobs) - i - 1} more jobs wait: the same command goes on with them", status - 128)
        failed += [job.name] if status else []
    if failed:
        raise UserError(f"{len(failed)} of {len(jobs)} jobs were not trained, see above: {', '.join(failed)}")
