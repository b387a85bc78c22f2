"""Compare our numbers with the printed ones over all tables of a scale: how many agree, and whether the leads do.

A number agrees within one point of percent, or within a tenth. A lead is what a paper proposes minus what it is
compared with, in the same setting.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "agreement"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", nargs="?", choices=("paper", "reduced"), default="paper")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="also draw it: a .png, .pdf or .svg file")


def draw(output: Path, scale: str) -> None:
    from reproduce.errors import UserError
    from reproduce.files import write
    from reproduce.pages.agreement import figure
    from reproduce.report.figures import style

    if output.suffix not in (".png", ".pdf", ".svg"):
        raise UserError(f"{output}: name a .png, .pdf or .svg file")
    with style():
        write(output, lambda file: figure(scale).savefig(file, format=output.suffix[1:]))


def run(args: argparse.Namespace) -> None:
    from reproduce.pages import agreement
    from reproduce.settings import check_place
    from reproduce.text import print_table

    check_place()
    print_table(agreement.HEAD, agreement.counts(args.scale), right=agreement.HEAD[1:])
    if args.output:
        draw(args.output, args.scale)
        print(f"wrote {args.output}")
