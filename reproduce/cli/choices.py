"""Say what the papers leave open, what is run here, and what the other options change.

Without a paper: the questions that people ask first, and how many open choices each paper has.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reproduce.pages.choices import OpenChoice

NAME = "choices"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="all open choices of this paper")


def run(args: argparse.Namespace) -> None:
    from reproduce.errors import unknown
    from reproduce.pages.choices import QUESTIONS, register
    from reproduce.papers import PAPERS
    from reproduce.settings import check_place
    from reproduce.text import fill, paint

    check_place()
    if args.paper is not None and args.paper not in PAPERS:
        raise unknown("paper", args.paper, PAPERS)
    for paper in [args.paper] if args.paper else PAPERS:
        found = register(paper)
        print(paint(paper, "bold"))
        for question in QUESTIONS:
            print(fill(f"{question}: {found.answers[question]}", "  "))
        if args.paper:
            print("\n" + fill(found.code))
            for number, choice in enumerate(found.choices, 1):
                show(number, choice)
        else:
            counts = f"{len(found.choices)} open choices, {found.measured} with a measured effect"
            print(f"  {counts}: `python -m reproduce choices {paper}`\n")


def show(number: int, choice: OpenChoice) -> None:
    """One open choice, with the cells that its numbers are from."""
    from reproduce.pages.choices import AS_RUN
    from reproduce.text import fill, paint

    print("\n" + paint(f"{number}. {choice.open}", "bold"))
    print(fill(f"The paper: {choice.paper}", "   "))
    print(fill(f"Here: {choice.run}. {choice.why}", "   "))
    if choice.code:
        print(fill(f"The authors' code: {choice.code}", "   "))
    for name, text in choice.effects():
        print(fill(f"- {name}: {text}", "   "))
        for effect in choice.options[choice.run if name == AS_RUN else name]:
            for artifact in effect.cells:
                print(paint(fill(effect.selections(artifact), "       "), "grey"))
