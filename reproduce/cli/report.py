"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims.

The page is one file with the figures inside it, to open, to mail or to print; tables and figures that were not made yet
are named with the command that makes them. `make docs` puts the pages of all scales beside the documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce.cli.frames import plain_strings
from reproduce.errors import UserError

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", nargs="?", default="paper", metavar="SCALE", help="smoke, reduced or paper (default)")
    parser.add_argument("--open", action="store_true", help="show it in the browser")


@plain_strings()
def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.declare.experiment import SCALES
    from reproduce.runs import plan
    from reproduce.settings import check_place

    scale = plan.check_scale(args.scale)
    path = Path("report", scale, "index.html")
    check_place()
    if not Path("results", scale).is_dir():
        raise UserError(f"nothing of {scale} was run here yet: `snakemake {scale} --cores 2` runs it")
    files.check_writable(path)
    from reproduce.pages.page import page
    from reproduce.verdicts.scoreboard import coverage, scoreboard

    beside = [s for s in SCALES if s != scale and Path("report", s, "index.html").is_file()]
    files.write_text(path, page(scale, scoreboard(scale), coverage(scale), beside))
    print(f"Written: {path}")
    if args.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
