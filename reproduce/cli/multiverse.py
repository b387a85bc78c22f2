"""Judge all claims again under other readings of the same curves: last, best, smoothed; say which verdicts turn.

Nothing is trained. It takes about three minutes. Runs that ended at their target have no curve beyond it, so that a
smoothed first hit is then only a bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce.cli.frames import plain_strings

NAME = "multiverse"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", nargs="?", choices=("paper", "reduced", "smoke"), default="paper")


@plain_strings()
def run(args: argparse.Namespace) -> None:
    from reproduce.errors import UserError
    from reproduce.settings import check_place
    from reproduce.text import print_table

    check_place()
    if not Path("results", args.scale).is_dir():
        raise UserError(f"no results/{args.scale} in {Path.cwd()}: nothing of it was run here")
    from reproduce.pages import multiverse
    from reproduce.report.metrics import DECLARED

    found = multiverse.boards(args.scale)
    turns = multiverse.turned(found)
    judged = sum(v.verdict != "not run" for v in found[DECLARED.name])
    rows = []
    for turn in turns:
        rows.append((turn.claim.id, DECLARED.name, turn.claim.verdict))
        rows += [("", name, verdict) for name, verdict in turn.verdicts.items()]
    if rows:
        print_table(("claim", "reading", "verdict"), rows, whole=("claim",))
    print(f"{len(turns)} of {judged} judged claims turn under one of {len(found) - 1} other readings.")
