"""One module a command: NAME, `arguments(parser)`, `run(args)`; heavy imports live inside `run`. Here is what several
have: options with one name and one meaning, and how frames are kept."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from reproduce.errors import check_platform

check_platform()  # before what Windows does not have is imported

from reproduce.declare.experiment import SCALES  # noqa: E402


def scale(parser: argparse.ArgumentParser, default: str = "paper") -> None:
    known = ", ".join(f"{name} (default)" if name == default else name for name in SCALES)
    parser.add_argument("--scale", default=default, metavar="SCALE", help=known)


def target(parser: argparse.ArgumentParser, several: bool = False) -> None:
    about = "a paper (fedacs) or an artifact (fedacs/fig6); " + ("several: in turn" if several else "default: all")
    parser.add_argument("target", nargs="+" if several else "?", metavar="TARGET", help=about)


def as_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


@contextmanager
def plain_strings() -> Iterator[None]:
    """Keep the strings of frames as Python's own objects, not in Arrow's memory, which pays for large frames alone:
    `verify` then takes 23 s of the processor in place of 29, and its output is the same."""
    import pandas as pd

    with pd.option_context("mode.string_storage", "python"):
        yield
