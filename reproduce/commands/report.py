"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan

    scale = plan.check_scale(args.scale)
    print(scale, Path())
