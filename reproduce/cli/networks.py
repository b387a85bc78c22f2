"""The declared networks: parameters, multiplications, how they are trained.

`--keep` writes their graphs into the package, after a network of `SOURCES` was added or changed: planning then needs no
torch (`reproduce/models/graph.py`).
"""

from __future__ import annotations

import argparse
from typing import Any

from reproduce.text import print_json, print_table

NAME = "networks"
SOURCES = ("reproduce.models.small", "reproduce.models.library")
"""Modules whose graphs are kept. `graph.sources` is a digest of them; a graph of another would outlive its module."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="write their graphs into the package")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def run(args: argparse.Namespace) -> None:
    from reproduce.declare.experiment import SCALES
    from reproduce.engine.cost import expected_strategy
    from reproduce.models.graph import KEPT, keep
    from reproduce.runs import plan

    of: list[Any] = [e.problem for scale in SCALES for j in plan.jobs(scale) for e in j.experiments]
    found = {repr(problem.model): problem for problem in of if problem.model}
    if args.keep:
        from reproduce.models.lower import lowered

        parts = (part for problem in found.values() for part in problem.model.parts)
        keep({repr(part): lowered(part) for part in parts if part.make.partition(":")[0] in SOURCES})
    rows = [
        {
            "network": said,
            "module": problem.model.make,
            "parameters": problem.model.parameters,
            "macs": problem.model.cost(problem.sample.shape).macs,
            "strategy": expected_strategy(problem.model, problem.sample.shape),
        }
        for said, problem in sorted(found.items())
    ]
    if args.json:
        print_json(rows)
    else:
        names = [name for name in rows[0] if name != "module"]  # of which no terminal has room for the whole
        cells = [[f"{row[n]:,}" if isinstance(row[n], int) else row[n] for n in names] for row in rows]
        print_table([name.upper() for name in names], cells, right=("PARAMETERS", "MACS"))
        if args.keep:
            print(f"written: {KEPT}")
