"""Train one job and write its results file, as the workflow does; this needs neither Snakemake nor matplotlib."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "train"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("paper", metavar="PAPER", help="such as fedacs")
    parser.add_argument("job", metavar="JOB", help="a job's name, as `plan` prints it")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: where the workflow expects it")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan, training
    from reproduce.errors import UserError

    if args.output and args.output.suffix not in ("", ".parquet"):
        raise UserError(f"-o {args.output}: results are Parquet; give a name that ends in .parquet")
    training.train(plan.job(args.scale, args.paper, args.job), args.output)
