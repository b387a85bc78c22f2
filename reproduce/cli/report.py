"""Write report/SCALE/index.html: the scoreboard, and every table and figure with the paper's claims.

The page is one file that contains the figures, to open, to mail or to print. Tables and figures that are not made yet
are named with the command that makes them. `make docs` puts the pages of all scales beside the documents.

`--docs` instead writes the documents with results: docs/papers, the numbers in README.md, and
figures/paper/agreement.png and overview.svg.
"""

import argparse
from pathlib import Path

from reproduce import cli, files
from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import papers
from reproduce.errors import UserError
from reproduce.runs import plan
from reproduce.settings import check_place

NAME = "report"


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.scale(parser)
    parser.add_argument("--docs", action="store_true", help="write docs/papers and the numbers in README.md")


def run(args: argparse.Namespace) -> None:
    scale = plan.check_scale(args.scale)
    check_place()
    if args.docs:
        write_documents()
    else:
        write_page(scale)


def write_documents() -> None:
    from reproduce.pages import agreement, documents, overview
    from reproduce.report.figures import style
    from reproduce.verdicts.scoreboard import scoreboard

    texts, failed = documents.documents()
    stale = [file for file, text in texts.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    for file in stale:
        files.write_text(file, texts[file])
        print(f"Written: {file}")
    if failed:
        raise UserError("; ".join(failed))
    with style():
        figure = agreement.figure()
        files.write(agreement.PICTURE, lambda file: figure.savefig(file, format="png"))
    overview.save(overview.tiles(scoreboard("paper")))
    if not stale:
        print("up to date")


def write_page(scale: str) -> None:
    from reproduce.pages.page import page, sheet
    from reproduce.verdicts.scoreboard import scoreboard

    path = Path("report", scale, "index.html")
    if not Path("results", scale).is_dir():
        raise UserError(f"nothing of {scale} was run here yet: `snakemake {scale} --cores 2` runs it")
    files.check_writable(path)
    beside = [s for s in SCALES if s != scale and Path("report", s, "index.html").is_file()]
    board = scoreboard(scale)
    files.write_text(path, page(scale, board, beside))
    print(f"Written: {path}")
    failed = []
    for paper in papers() if scale != "smoke" else ():
        try:
            files.write_text(path.with_name(f"{paper}.html"), sheet(paper, scale, board))
        except UserError as error:  # of a paper without an answer
            failed.append(str(error))
    if failed:
        raise UserError("; ".join(failed))
