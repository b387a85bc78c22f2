"""The commands, one module each: NAME, `arguments(parser)`, `run(args)`; heavy imports are inside `run`. This module
has the options that several commands share."""

import argparse

from reproduce.errors import check_platform

check_platform()  # before what Windows does not have is imported

from reproduce.declare.experiment import SCALES  # noqa: E402


def scale(parser: argparse._ActionsContainer, default: str = "paper") -> None:
    known = ", ".join(f"{name} (default)" if name == default else name for name in SCALES)
    parser.add_argument("--scale", default=default, metavar="SCALE", help=known)


def target(parser: argparse.ArgumentParser, several: bool = False) -> None:
    about = "a paper (fedacs) or an artifact (fedacs/fig6); " + ("several: in turn" if several else "default: all")
    parser.add_argument("target", nargs="+" if several else "?", metavar="TARGET", help=about)


def as_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def reuse(parser: argparse._ActionsContainer) -> None:
    about = "own code: take results as they are if its files are the same, go on from checkpoints"
    parser.add_argument("--reuse", action="store_true", help=about)
