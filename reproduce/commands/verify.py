"""Check the papers' claims against the cells of a scale, and print the scoreboard."""

from __future__ import annotations

import argparse

from reproduce.commands.text import print_json

NAME = "verify"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def run(args: argparse.Namespace) -> None:
    from reproduce import plan

    scale = plan.check_scale(args.scale)
    from reproduce.report.scoreboard import render_scoreboard, scoreboard, to_json

    board = scoreboard(scale)
    if args.json:
        print_json(to_json(board))
    else:
        print(render_scoreboard(board))
