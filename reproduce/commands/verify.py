"""Check the papers' claims against the cells of a scale, and print the scoreboard."""

from __future__ import annotations

import argparse

from reproduce.commands.text import print_table

NAME = "verify"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON list of objects")
    form.add_argument("--markdown", action="store_true", help="print Markdown, with the claims in full")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan, results

    scale = plan.check_scale(args.scale)
    from reproduce.report.scoreboard import render_scoreboard, scoreboard, to_json

    board = scoreboard(scale)
    if args.json:
        print(to_json(board))
    elif args.markdown:
        print(render_scoreboard(board), end="")
    else:
        rows = []
        for v in board:
            effect = "" if v.effect is None else f"{v.effect:.3g} {v.unit}"
            interval = "" if v.interval is None else f"{v.interval[0]:.3g} to {v.interval[1]:.3g}"
            rows.append([v.id, v.artifact, v.verdict, effect, interval, str(v.n or ""), v.reason])
        print_table(["CLAIM", "ARTIFACT", "VERDICT", "EFFECT", "95 % INTERVAL", "N", "WHY"], rows, right=("N",))
        found = [v.verdict for v in board]
        print(f"\n{len(board)} claims: " + ", ".join(f"{found.count(v)} {v}" for v in dict.fromkeys(found)))
        print(results.tally(plan.jobs(scale)))
