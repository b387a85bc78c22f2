"""Compare the results of a scale with the numbers that are committed, `results/<scale>.json`.

`make smoke` does so: a kernel or an algorithm that computes something else than when they were written ends it.
"""

from __future__ import annotations

import argparse

NAME = "expected"
SHOWN = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scale", nargs="?", default="smoke", metavar="SCALE", help="smoke (default), reduced or paper")
    parser.add_argument("--update", action="store_true", help="write the numbers of the results that are there")


def run(args: argparse.Namespace) -> None:
    from reproduce.errors import UserError
    from reproduce.runs import expected, plan
    from reproduce.settings import check_place

    check_place()
    there = expected.found(plan.check_scale(args.scale))
    count = expected.count(there)
    if args.update:
        expected.write(args.scale, there)
        print(f"{expected.file(args.scale)}: {count:,} numbers of {len(there)} jobs")
        return
    deviating = expected.differences(expected.read(args.scale), there)
    for text in deviating[:SHOWN]:
        print(text)
    if deviating:
        raise UserError(
            f"{len(deviating):,} of {count:,} numbers are not as expected: find out why; "
            f"if it is meant, `python -m reproduce expected {args.scale} --update`"
        )
    print(f"{count:,} numbers of {len(there)} jobs are as expected")
