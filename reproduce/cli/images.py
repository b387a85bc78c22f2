"""Say whether other test images would turn a verdict: train again what decides claims that are near their border.

Intervals are over seeds, which all see the same test images. Of each claim on accuracy that was decided by less than
two points, the runs of the setting that decides are trained once more, and judged without each twentieth of the images
(the jackknife). The interval over seeds and images is printed; `verify -v` shows it, too. What is measured is kept in
results/SCALE/images.csv, and measured again only where another setting or more seeds decide.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from reproduce.cli.frames import plain_strings

if TYPE_CHECKING:
    from reproduce.verdicts.scoreboard import Verdict

NAME = "images"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", choices=("paper", "reduced", "smoke"))
    parser.add_argument("target", nargs="?", help="a paper (fedacs) or an artifact (fedacs/fig6); default: all")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin nothing that takes longer (default: all)")


@plain_strings()
def run(args: argparse.Namespace) -> None:
    from reproduce import files
    from reproduce.errors import UserError
    from reproduce.pages.images import near
    from reproduce.runs import plan
    from reproduce.settings import check_place
    from reproduce.text import print_table
    from reproduce.verdicts import images, words

    check_place()
    wanted = {a.id for a in plan.select(args.target)}
    claims = [v for v in near(args.scale) if v.artifact in wanted]
    files.check_writable(images.file(args.scale))
    failed = measure([v for v in claims if v.images is None], args.scale, args.minutes)
    known = {v.id: v for v in near(args.scale)}
    rows = [
        (v.id, v.verdict, words.measured(v.measured) if v.measured else "", words.with_images(known[v.id]))
        for v in claims
    ]
    print_table(("CLAIM", "VERDICT", "OVER SEEDS", "OVER SEEDS AND TEST IMAGES"), rows)
    if failed:
        raise UserError("; ".join(failed))


def measure(claims: list[Verdict], scale: str, minutes: float | None) -> list[str]:
    """Measure and record the claims, the cheapest first; what could not be measured, and why."""
    from tqdm import tqdm

    from reproduce.errors import UserError
    from reproduce.pages.images import Decided
    from reproduce.text import duration
    from reproduce.verdicts import images

    failed, todo = [], []
    for v in claims:
        try:
            todo.append(Decided(v, scale))
        except UserError as error:
            failed.append(str(error))
    deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
    todo.sort(key=lambda d: d.seconds)
    for decided in tqdm(todo, unit="claim", disable=not todo):
        if time.monotonic() + decided.seconds > deadline:
            break
        print(f"{decided.claim.id}: about {duration(decided.seconds)} on one core", file=sys.stderr)
        try:
            images.add(images.file(scale), [decided.line()])
        except UserError as error:
            failed.append(str(error))
    return failed
