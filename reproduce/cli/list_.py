"""List the tables and figures, with the panels and runs behind each, and whether they are made."""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce import cli
from reproduce.text import fill, print_json, print_table

NAME = "list"


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    cli.as_json(parser)


def run(args: argparse.Namespace) -> None:
    from reproduce.papers import has_numbers, total
    from reproduce.runs import plan, results
    from reproduce.settings import check_place

    scale = plan.check_scale(args.scale)
    check_place()
    found = []
    for a in plan.select(args.target):
        panels = a.panels(scale)
        runs = sum(len(p.experiments) * len(p.seeds) for p in panels)
        made = "no"
        if Path(plan.outputs(scale, a.id)[0]).exists() and has_numbers(scale, a.id):
            whole = all(results.standing(job).usable for job in plan.artifact_jobs(scale, a.id))
            made = "yes" if whole else "in part"
        counts = {"panels": len(panels), "runs": runs, "made": made}
        found.append({"id": a.id, "paper": a.paper, "kind": a.kind, "title": a.title, **counts})
    if args.json:
        print_json(found)
        return
    if args.target is None:
        print(fill(f"{total()} figures and tables of the five papers are part of this package."))
    print(fill(f"At {scale} scale (another one: --scale):") + "\n")
    rows = [[str(f[key]) for key in ("id", "panels", "runs", "made", "title")] for f in found]
    print_table(["ARTIFACT", "PANELS", "RUNS", "MADE", "TITLE"], rows, ("PANELS", "RUNS"))
