"""Make a table or a figure, and its per-seed cells, from the results files that are there."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

NAME = "render"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("artifact", metavar="PAPER/NAME", help="such as fedacs/fig6")


def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.runs import due, plan
    from reproduce.settings import check_place

    artifact = plan.artifact(args.artifact)
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
    render(artifact, args.scale, Path(), sources, due.stamp(args.scale, artifact.id), seeds)
    due.write_record(args.scale, artifact.id, made)
