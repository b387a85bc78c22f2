"""List the tables and figures, with the panels and runs behind each, and whether they are made."""

import argparse
from pathlib import Path

from reproduce import cli
from reproduce.declare.paper import has_numbers
from reproduce.runs import plan
from reproduce.runs.catalogue import catalogue
from reproduce.settings import in_place
from reproduce.text import fill, print_json, print_table

NAME = "list"


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    cli.as_json(parser)


def run(args: argparse.Namespace) -> None:
    scale = plan.check_scale(args.scale)
    known, rows = catalogue(scale), []
    for a in known.select(args.target):
        status = "no"
        if Path(plan.for_readers(scale, a.id, a.kind)[0]).exists() and has_numbers(scale, a.id):
            status = "yes" if all(job.usable for job in known.of(a.id)) else "in part"
        rows.append({**a._asdict(), "made": status})
    if args.json:
        print_json(rows)
        return
    if args.target is None:
        print(fill(f"{known.total} figures and tables of the five papers are part of this package."))
    print(fill(f"At {scale} scale (another one: --scale):") + "\n")
    keys = ["id", "panels", "runs", *["made"] * in_place(), "title"]  # elsewhere nobody knows what is made
    header = ["ARTIFACT", *(key.upper() for key in keys[1:])]
    print_table(header, [[str(f[key]) for key in keys] for f in rows], ("PANELS", "RUNS"))
