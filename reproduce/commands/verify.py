"""Check the papers' claims against the cells of a scale, and print the scoreboard."""

from __future__ import annotations

import argparse

from reproduce.text import print_table

NAME = "verify"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON list of objects")
    form.add_argument("--markdown", action="store_true", help="print Markdown, with the claims in full")


def run(args: argparse.Namespace) -> None:
    from reproduce import due, plan, results

    scale = plan.check_scale(args.scale)
    from reproduce.verdicts.scoreboard import coverage, headline, render_scoreboard, scoreboard, to_json

    board, found = scoreboard(scale), coverage(scale)
    if args.json:
        print(to_json(board))
    elif args.markdown:
        print(render_scoreboard(board, found), end="")
    else:
        rows = []
        for v in board:
            effect = "" if v.effect is None else f"{v.effect:.3g} {v.unit}"
            interval = "" if v.interval is None else f"{v.interval[0]:.3g} to {v.interval[1]:.3g}"
            why = "; ".join(filter(None, [v.covers, v.reason]))
            rows.append([v.id, v.artifact, v.verdict, v.rests_on, effect, interval, str(v.n or ""), why])
        header = ["CLAIM", "ARTIFACT", "VERDICT", "RESTS ON", "EFFECT", "95 % INTERVAL", "N", "WHY"]
        print_table(header, rows, right=("N",))
        print()
        print("\n".join(headline(found, board)))
        print(results.tally(plan.jobs(scale)))
        for line in due.refused(scale):
            print(f"refused: {line}")
