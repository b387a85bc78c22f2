"""List the tables and figures, with the panels and runs behind each."""

from __future__ import annotations

import argparse

from reproduce.text import print_json, print_table

NAME = "list"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", default="paper", help="count panels and runs at this scale (default: paper)")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan
    from reproduce.papers import artifacts
    from reproduce.papers.coverage import total

    scale = plan.check_scale(args.scale)
    found = []
    for a in artifacts():
        panels = a.panels(scale)
        runs = sum(len(p.experiments) * len(p.seeds) for p in panels)
        counts = {"panels": len(panels), "runs": runs}
        found.append({"id": a.id, "paper": a.paper, "kind": a.kind, "title": a.title, **counts})
    if args.json:
        print_json(found)
        return
    print(f"{total()} figures and tables of the five papers are part of this package (README says which are not).\n")
    rows = [[str(f[key]) for key in ("id", "kind", "panels", "runs", "title")] for f in found]
    print_table(["ARTIFACT", "KIND", "PANELS", "RUNS", "TITLE"], rows, right=("PANELS", "RUNS"))
