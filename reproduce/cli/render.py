"""Make tables and figures, and their per-seed cells, from the results files that are there."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from reproduce.cli.frames import plain_strings
from reproduce.errors import UserError

NAME = "render"
WIDTHS = (2.5, 10.0)
"""Inches between which a figure can be laid out."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("artifact", nargs="+", metavar="PAPER/NAME", help="such as fedacs/fig6; several: in turn")
    parser.add_argument(
        "--width", type=float, metavar="INCHES", default=0.0,
        help="lay figures out for another width, beside the usual one of 7 inches (IEEE's page): 3.25 is a column of "
        "ICML, 3.5 of IEEE, 5.5 the page of NeurIPS and ICLR, 6.75 that of ICML",
    )  # fmt: skip


@plain_strings()
def run(args: argparse.Namespace) -> None:
    from reproduce.runs import plan
    from reproduce.settings import check_place

    names = [plan.artifact(name).id for name in args.artifact]
    tables = [name for name in names if plan.artifact(name).kind == "table"]
    if args.width and (tables or not WIDTHS[0] <= args.width <= WIDTHS[1]):
        why = f"{tables[0]} is a table, without a width" if tables else f"use {WIDTHS[0]:g} to {WIDTHS[1]:g} inches"
        raise UserError(f"--width {args.width:g}: {why}")
    check_place()
    failed = []
    for name in names:
        try:
            _render(args.scale, name, args.width)
        except Exception as error:
            if len(names) == 1 or args.debug:
                raise
            print(f"error: {name}: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
            failed.append(name)
    if failed:
        raise UserError(f"{len(failed)} of {len(names)} are not made, see above: {', '.join(failed)}")


def _render(scale: str, name: str, width: float) -> None:
    from reproduce import files
    from reproduce.runs import due, plan

    sources = due.sources(scale, name)
    jobs = Counter(panel for panel, _, _ in sources)
    for (panel, reason), lacking in Counter((panel, reason) for panel, _, reason in sources if reason).items():
        part = f"{lacking} of the {jobs[panel]} jobs of " if lacking < jobs[panel] else ""
        print(f"{name} at scale {scale}: {part}panel {panel} not run: {reason}")
    for file in plan.outputs(scale, name):
        files.check_writable(Path(file))
    from reproduce.report.render import render

    seeds = plan.seeds_read(scale, name)
    made = due.made_from(scale, name)  # before they are read: what ends meanwhile is not in the cells
    written = render(plan.artifact(name), scale, Path(), sources, due.stamp(scale, name), seeds, width)
    if width:
        print(*written, sep="\n")
    else:
        due.write_record(scale, name, made)
        print("written:", next(file for file in plan.outputs(scale, name) if file.endswith((".png", ".md"))))
