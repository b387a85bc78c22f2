"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims.

The page is one file with the figures inside it, to open, to mail or to print; tables and figures that were not made yet
are named with the command that makes them. `--site` writes the pages of all scales that have results, the documents and
every file that they link to into a folder that a web server can serve as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce.errors import UserError

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", nargs="?", metavar="SCALE", help="smoke, reduced or paper (default)")
    parser.add_argument("--open", action="store_true", help="show it in the browser")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="write all pages into this folder instead")


def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.declare.experiment import SCALES
    from reproduce.runs import plan
    from reproduce.settings import check_place

    def written(scale: str, beside: list[str]) -> str:
        from reproduce.page.page import page
        from reproduce.verdicts.scoreboard import coverage, scoreboard

        return page(scale, scoreboard(scale), coverage(scale), [s for s in beside if s != scale])

    if args.site and args.scale:
        raise UserError("a site has the pages of all scales: leave SCALE out")
    scale = plan.check_scale("paper" if args.scale is None else args.scale)
    path = args.site / "index.html" if args.site else Path("report", scale, "index.html")
    check_place()
    found = [s for s in SCALES if Path("results", s, "cells").is_dir()]
    if args.site:
        if not (found and Path("README.md").is_file()):
            raise UserError("a site is made of a repository with results: run this where README.md and results/ are")
        _check_site(args.site)
    elif not Path("results", scale).is_dir():
        raise UserError(f"nothing of {scale} was run here yet: `snakemake {scale} --cores 2` runs it")
    files.check_writable(path)
    if args.site:
        from reproduce.page import site

        count = len(site.write(args.site, {s: written(s, found) for s in found}))
        print(f"Written: {path} and {count - 1} more files")
    else:
        files.write_text(path, written(scale, [s for s in SCALES if Path("report", s, "index.html").is_file()]))
        print(f"Written: {path}")
    if args.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def _check_site(folder: Path) -> None:
    """Raises UserError for a folder with something else in it than a site; hidden files (.git) are the user's there."""
    from reproduce import files

    if not folder.is_dir() or all(f.name.startswith(".") for f in folder.iterdir()):
        return
    if not files.begins(rb".*<meta name=\"generator\" content=\"reproduce\">")(folder / "index.html"):
        raise UserError(f"--site {folder}: the folder has other files; name a new one, or delete it")
