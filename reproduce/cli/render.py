"""Make tables and figures, and their per-seed values, from the results files that are there."""

import argparse
import json
import sys
from pathlib import Path

from reproduce import cli, files, store
from reproduce.errors import UserError
from reproduce.runs import plan, results
from reproduce.settings import check_place

NAME = "render"
WIDTHS = (2.5, 10.0)
"""Inches between which a figure or table can be laid out."""


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser, several=True)
    cli.scale(parser)
    parser.add_argument(
        "--width", type=float, metavar="INCHES", default=0.0,
        help="lay figures and LaTeX out for another width, beside the usual one (IEEE's page): 3.25 is a column of "
        "ICML, 3.5 of IEEE, 5.5 the page of NeurIPS and ICLR, 6.75 that of ICML",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    scale = plan.check_scale(args.scale)
    names = list(dict.fromkeys(a.id for target in args.target for a in plan.select(target)))
    if args.width and not WIDTHS[0] <= args.width <= WIDTHS[1]:
        raise UserError(f"--width {args.width:g}: use {WIDTHS[0]:g} to {WIDTHS[1]:g} inches")
    check_place()
    failed = []
    for name in names:
        try:
            _render(scale, name, args.width)
        except Exception as error:
            if len(names) == 1 or args.debug:
                raise
            print(f"error: {name}: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
            failed.append(name)
    if failed:
        raise UserError(f"{len(failed)} of {len(names)} are not made, see above: {', '.join(failed)}")


def _render(scale: str, name: str, width: float) -> None:
    from reproduce.report import render

    outputs = [Path(file) for file in plan.outputs(scale, name)]
    for file in outputs:
        files.check_writable(file)
    artifact, record = plan.artifact(name), plan.made_from(scale, name)  # before they are read: the cells have no more
    histories = render.read(artifact, scale, plan.sources(scale, name), plan.seeds_read(scale, name))
    states = {job.panel.name: results.standing(job).words for job in plan.artifact_jobs(scale, name)}
    for panel, reason in histories.missing:
        print(f"{name} at scale {scale}: panel {panel} not run, or in part: {states.get(panel) or reason}")
    written = render.make(artifact, histories, Path(), width)
    if width:
        print(*written, sep="\n")
        return
    files.write_text(outputs[-1], json.dumps(store.sealed(record, outputs[-2]), indent=1) + "\n")
    print("written:", next(file for file in outputs if file.suffix in (".png", ".md")))
