"""Make a table or a figure, and its per-seed cells, from the results files that are there."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from reproduce.errors import UserError

NAME = "render"
WIDTHS = (2.5, 10.0)
"""Inches between which a figure can be laid out."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("artifact", metavar="PAPER/NAME", help="such as fedacs/fig6")
    parser.add_argument(
        "--width", type=float, metavar="INCHES", default=0.0,
        help="lay a figure out for another width, beside the usual one of 7 inches (IEEE's page): 3.25 is a column of "
        "ICML, 3.5 of IEEE, 5.5 the page of NeurIPS and ICLR, 6.75 that of ICML",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.runs import due, plan
    from reproduce.settings import check_place

    artifact = plan.artifact(args.artifact)
    if args.width and (artifact.kind == "table" or not WIDTHS[0] <= args.width <= WIDTHS[1]):
        why = "a table has no width" if artifact.kind == "table" else f"use {WIDTHS[0]:g} to {WIDTHS[1]:g} inches"
        raise UserError(f"--width {args.width:g}: {why}")
    check_place()
    sources = due.sources(args.scale, artifact.id)
    jobs = Counter(panel for panel, _, _ in sources)
    for (panel, reason), lacking in Counter((panel, reason) for panel, _, reason in sources if reason).items():
        part = f"{lacking} of the {jobs[panel]} jobs of " if lacking < jobs[panel] else ""
        print(f"{artifact.id} at scale {args.scale}: {part}panel {panel} not run: {reason}")
    for name in plan.outputs(args.scale, artifact.id):
        files.check_writable(Path(name))
    from reproduce.report.render import render

    seeds = plan.seeds_read(args.scale, artifact.id)
    made = due.made_from(args.scale, artifact.id)  # before they are read: what ends meanwhile is not in the cells
    written = render(artifact, args.scale, Path(), sources, due.stamp(args.scale, artifact.id), seeds, args.width)
    if args.width:
        print(*written, sep="\n")
    else:
        due.write_record(args.scale, artifact.id, made)
