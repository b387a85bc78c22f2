"""Train one job and write its results file, as the workflow does; this needs neither Snakemake nor matplotlib."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

NAME = "train"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("paper", metavar="PAPER", help="such as fedacs")
    parser.add_argument("job", metavar="JOB", help="a job's name, as `plan` prints it")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: where the workflow expects it")


def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.errors import UserError
    from reproduce.runs import plan, results, training

    job, output = plan.job(args.scale, args.paper, args.job), args.output
    if output and output.name and not output.is_dir() and output.suffix != ".parquet":
        raise UserError(f"-o {output}: results are Parquet; give a name that ends in .parquet")
    if output and _elsewhere(output, Path(job.output)):

        def ours(path: Path) -> bool:
            names = {(*sorted(e.labels.items()), seed) for e in job.experiments for seed in job.panel.seeds}
            return any(run.name in names for run in results.stored(path))

        files.check_output(output, ours, f"result of {job.scale}/{job.paper}/{job.name}")
        training.train(job, output)
    else:
        training.train(job)


def _elsewhere(path: Path, place: Path) -> bool:
    """Is this another file than the one in its place, whatever way there is written?"""
    return os.path.abspath(path) != os.path.abspath(place)
