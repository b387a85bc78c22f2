"""Test the papers' claims against the per-seed values of a scale, and print the verdicts.

First comes a table of verdicts by papers, then a line for each claim, refuted ones first. Claims that were not run, or
are out of scope at this scale, are counted; `--only "not run"` lists them. Checks, which are true or false whatever is
trained, come last. A paper, a table or figure, or `--only` select claims and print the numbers behind the verdicts.

`--expected` evaluates no claim. It compares the results with committed numbers, as `make smoke` does, and fails if a
kernel or an algorithm computes other numbers.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from reproduce import cli
from reproduce.errors import UserError
from reproduce.runs import outdated, plan, results
from reproduce.runs.catalogue import catalogue, statuses
from reproduce.settings import check_place
from reproduce.text import fill, paint, print_table

if TYPE_CHECKING:
    from reproduce.verdicts.scoreboard import Verdict

NAME = "verify"
SHOWN = 20
COLOURS: Mapping[str, str] = {
    "refuted": "red", "not supported on substitute data": "red", "depends on an unstated choice": "magenta",
    "inconclusive": "yellow", "supported where run": "green", "supported": "green",
    "supported where run on substitute data": "green", "supported on substitute data": "green", "not run": "grey",
}  # fmt: skip
"""Verdicts in the order in which they are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    cli.target(parser)
    cli.scale(parser)
    parser.add_argument("--only", choices=COLOURS, metavar="VERDICT", help=f"one of {', '.join(COLOURS)}")
    form = parser.add_mutually_exclusive_group()
    cli.as_json(form)
    form.add_argument("--expected", action="store_true", help="compare the results with results/SCALE.csv instead")
    form.add_argument("--update", action="store_true", help="write results/SCALE.csv of the results that are there")


def run(args: argparse.Namespace) -> None:
    scale = plan.check_scale(args.scale)
    ids = {a.id for a in plan.select(args.target)}
    check_place()
    if args.expected or args.update:
        compare(scale, args.update)
        return
    from reproduce.verdicts.claims import claims_files
    from reproduce.verdicts.scoreboard import claims, headline, scoreboard, to_json

    files = [f for f in claims_files() if any(name.startswith(f"{f.paper}/") for name in ids)]
    of_target = [v for v in scoreboard(scale, files=files) if v.artifact in ids or not args.target]
    board = [v for v in of_target if args.only in (None, v.verdict)]
    if args.json:
        print(to_json(board))
    elif not board:
        about = f" about {args.target}" if args.target else ""
        print(f"no claim{about} " + (f"has the verdict '{args.only}'" if args.only else "is declared"))
    else:
        in_full = bool(args.target or args.only)
        evaluated = claims(board)
        head, rows = tally(evaluated)
        print_table(head, rows, head[1:])
        print()
        lines = [line for verdict in COLOURS for line in group(verdict, evaluated, in_full, args.only == "not run")]
        print("\n".join([*lines, *listed_checks(board)]))
        runs = results.tally(statuses(catalogue(scale).jobs))
        whole_scale = [] if args.target else headline(scale, of_target)
        print(
            "\n".join(map(fill, [*whole_scale, f"{runs}.", *(f"refused: {line}" for line in outdated.refused(scale))]))
        )


def compare(scale: str, update: bool) -> None:
    """Compares the results of a scale with the committed numbers in results/<scale>.csv. update: writes that file
    instead. Raises UserError if numbers deviate, or if results or the committed file are missing."""
    from reproduce.runs import expected

    measured = expected.numbers(scale)
    summary = f"{len(measured):,} numbers of {measured['job'].nunique()} jobs"
    if update:
        expected.write(scale, measured)
        print(f"{expected.file(scale)}: {summary}")
        return
    deviating = expected.differences(expected.read(scale), measured)
    for text in deviating[:SHOWN]:
        print(text)
    if deviating:
        raise UserError(
            f"{len(deviating):,} of {len(measured):,} numbers are not as expected: find out why; "
            f"if it is meant, `reproduce verify --scale {scale} --update`"
        )
    print(f"{summary} are as expected")


def tally(board: Sequence[Verdict]) -> tuple[list[str], list[list[str]]]:
    """Verdicts by papers: the header and the lines of a table."""
    from reproduce.verdicts.scoreboard import counts

    papers = list(dict.fromkeys(v.paper for v in board))
    by_paper = [counts(v for v in board if v.paper == paper) for paper in papers]
    table = {word: [count[word] for count in by_paper] for word in COLOURS}
    table = {word: numbers for word, numbers in table.items() if any(numbers)}
    table["all"] = [sum(numbers) for numbers in zip(*table.values(), strict=True)]
    return ["VERDICT", *papers, "ALL"], [[w, *(str(n or "") for n in (*ns, sum(ns)))] for w, ns in table.items()]


def group(verdict: str, board: Iterable[Verdict], in_full: bool, idle: bool) -> list[str]:
    """The claims with a verdict, under a heading; in_full: with their numbers. idle: list those that were not run."""
    claims = [v for v in board if v.verdict == verdict]
    if not claims:
        return []
    head = paint(f"{verdict}: {len(claims)}", COLOURS[verdict])
    if verdict != "not run" or idle:
        return [head, *(line for v in claims for line in (entry(v) if in_full else [short(v)])), ""]
    reasons = Counter("no values yet" if v.reason.startswith("no values") else v.reason for v in claims)
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
    return [head, fill(f'{listed}{", ..." * (len(reasons) > 3)}; `--only "not run"` lists them', "  "), ""]


def listed_checks(board: Iterable[Verdict]) -> list[str]:
    """The checks that are true or false whatever is trained, one line each."""
    from reproduce.verdicts.scoreboard import checked, checks

    if not (verdicts := checks(board)):
        return []
    lines = [f"{v.verdict}: {v.id}" + f" ({v.note})" * bool(v.note and v.verdict != "supported") for v in verdicts]
    return [paint(checked(verdicts), "bold"), *(fill(line, "  ") for line in sorted(lines)), ""]


def short(v: Verdict) -> str:
    """A claim in one line of a terminal: its name, and the beginning of what it says."""
    statement = " ".join(v.statement.split())
    name = v.id + " (one split)" * v.one_split
    room = shutil.get_terminal_size().columns - len(name) - 4
    cut = sys.stdout.isatty() and len(statement) > room
    return f"  {paint(name, 'bold')}  {statement[: max(room - 1, 0)].rstrip() + '…' if cut else statement}"


def entry(v: Verdict) -> list[str]:
    """Returns the terminal lines on one claim, wrapped to the terminal, at most 80 columns. They have name, basis,
    statement, deciding number with the required one, reason and remarks; empty parts are left out."""
    from reproduce.verdicts import wording

    lines = [f"  {paint(v.id, 'bold')} ({'; '.join(filter(None, [v.rests_on, wording.basis(v)]))})"]
    texts = [f'"{v.statement}"']
    if v.measured:
        texts.append(f"{wording.deciding(v.measured, v.names)}; required: {wording.demanded(v.measured, v.ours)}")
    texts += [wording.named(v.reason, v.names), "; ".join(wording.beside_print(v)), wording.named(v.note, v.names)]
    return lines + [fill(text, "    ") for text in texts if text]
