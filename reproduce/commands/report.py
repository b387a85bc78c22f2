"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims.

The page is one file with the figures inside it, to open, to mail or to print; tables and figures that were not made yet
are named with the command that makes them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", metavar="SCALE", help="smoke, reduced or paper")
    parser.add_argument("--open", action="store_true", help="show it in the browser")


def run(args: argparse.Namespace) -> None:
    from reproduce import files, plan
    from reproduce.experiment import SCALES

    scale = plan.check_scale(args.scale)
    from reproduce.page.page import page
    from reproduce.verdicts.scoreboard import coverage, scoreboard

    path = Path("report", scale, "index.html")
    files.check_writable(path)
    others = [s for s in SCALES if s != scale and Path("report", s, "index.html").is_file()]
    files.write_text(path, page(scale, scoreboard(scale), coverage(scale), others))
    print(f"Written: {path}")
    if args.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
