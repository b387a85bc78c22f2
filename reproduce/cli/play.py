"""Run algorithms on benchmarks, including your own class, and print a table of differences with confidence intervals.

An algorithm is a name with options, "fedprox(mu=0.01)", or a class in a file of the working directory,
"my_module:FedSlow(lr=0.1)". A benchmark is an alias (`play --list`), any declared panel (PAPER/PANEL), or a plain one
on your own data (--data). Every algorithm is compared with the benchmark's FedAvg (or the first algorithm of a panel
without it) on the same seeds, at its learning rate unless you give one. Nothing is trained twice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from reproduce import cli, files
from reproduce.clocks.step import Clock
from reproduce.declare.values import kinds
from reproduce.errors import UserError
from reproduce.problem import Score
from reproduce.runs import plan
from reproduce.settings import configure
from reproduce.text import duration, fill, print_json, print_table

if TYPE_CHECKING:
    from reproduce.play.benchmarks import Benchmark
    from reproduce.play.match import Match
    from reproduce.play.specs import Spec

NAME = "play"
WRITTEN = ".md", ".csv", ".png", ".pdf"
"""Endings of what is written."""
SCORES, DECAYS = get_args(Score), get_args(kinds(Clock)["lr_decay"])[1:]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("algorithms", nargs="*", metavar="ALGORITHM", help='such as fedprox "fedprox(mu=0.01)"')
    on = "aliases or panels; with --all and --list by default all aliases"
    parser.add_argument("--on", nargs="+", default=[], metavar="BENCHMARK", help=on)
    add = parser.add_argument_group("your own data, network and clients").add_argument
    data = (
        "a folder of class folders with pictures, a CSV, parquet or npz file; "
        "without --on on a plain benchmark, which --cost shows"
    )
    add("--data", metavar="FOLDER|FILE", help=data)
    add("--label", default="label", metavar="COLUMN", help="of --data, with the labels (default: label)")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="of --data, to leave out, such as a row number")
    add("--model", metavar="NETWORK", help="a torch.nn.Module: my_file:Net(width=8), with literals")
    add("--partition", metavar="PARTITION", help='"Dirichlet(0.3)", a file who.parquet, or column:NAME of --data')
    add("--clients", type=int, metavar="N", help="number of clients (plain benchmark: 20)")
    add("--epochs", type=float, metavar="E", help="passes of a client per round, such as 0.5 (plain benchmark: 2)")
    group = parser.add_argument_group("what is trained")
    cli.scale(group, "reduced")
    add = group.add_argument
    add("--seeds", default="0-4", metavar="SEEDS", help="reported seeds, such as 0-4 (default) or 0,2,7")
    add("--all", action="store_true", help="all algorithms of the papers; those that do not fit are left out")
    add("--own", action="store_true", help="also the benchmark's own algorithms, as declared")
    add("--lr-decay", default="", choices=DECAYS, help="of the clients' learning rates, over the rounds")
    attack = 'what some clients do: "Scaled(0.2)", "Noise(0.2)", "FlippedLabels(0.2)"; 0.2: their share'
    add("--attack", metavar="ATTACK", help=attack)
    add(
        "--tune",
        action="store_true",
        help="first choose each one's rate from a grid of equal size, by training data that no client has",
    )
    grid = "of each one's rate, to try, such as 0.1,1,10 (default: eight from 0.03 to 100)"
    add("--grid", metavar="FACTORS", help=grid)
    add = parser.add_argument_group("what is measured").add_argument
    add("--metric", default="", choices=SCORES, help="what is compared in place of accuracy")
    add("--by-client", action="store_true", help="also the accuracy of the worst client, and its spread over clients")
    add(
        "--target",
        type=float,
        metavar="SCORE",
        help="also the round and the bytes at which runs reach it, 80 for 80 %%",
    )
    group = parser.add_argument_group("what is done, shown and written")
    modes = group.add_mutually_exclusive_group()
    for name, about in {
        "--list": "show the benchmarks with size and cost; train nothing",
        "--cost": "show what it would cost; train nothing",
        "--finished": "take results of older code as they are; train nothing",
    }.items():
        modes.add_argument(name, action="store_true", help=about)
    cli.reuse(group)
    cli.as_json(group)
    group.add_argument("--save", metavar="FOLDER", help="gets the trained models, a safetensors file a run")
    group.add_argument("-o", "--output", type=Path, metavar="NAME", help="also write NAME.md, NAME.csv, NAME.png, .pdf")


def run(args: argparse.Namespace) -> None:
    configure({"REPRODUCE_REUSE": "1"} if args.reuse else {})
    configure({"REPRODUCE_SAVE": args.save} if args.save else {})
    from reproduce.play.benchmarks import ALIASES
    from reproduce.play.owndata import benchmarks as chosen
    from reproduce.play.specs import ALL, parse

    scale = plan.check_scale(args.scale)
    specs = [parse(text) for text in args.algorithms]
    if args.all:
        specs += map(parse, ALL)
    aliases = [name for name, scales in ALIASES.items() if scale in scales]
    own = {"model": args.model, "partition": args.partition, "clients": args.clients, "data": args.data}
    own |= {"drop": args.drop, "epochs": args.epochs, "by_client": args.by_client, "metric": args.metric}
    own |= {"lr_decay": args.lr_decay, "target": args.target, "attack": args.attack}
    places = args.on or ([] if any(own.values()) else aliases)
    benchmarks = chosen(places, scale, **own, label=args.label)
    if args.list:
        _list(benchmarks)
    else:
        if not (specs or args.own) or not benchmarks or not (args.on or args.all or args.data):
            raise UserError(
                "name an algorithm and a benchmark: play ALGORITHM --on BENCHMARK (`play --list` shows them; there is "
                "no alias at paper scale), or bring your own, --data FOLDER"
            )
        _play(_match(args, specs, benchmarks), args, [b.substitute for b in benchmarks] if any(own.values()) else [])


def _match(args: argparse.Namespace, specs: list[Spec], benchmarks: list[Benchmark]) -> Match:
    from reproduce.play.match import FACTORS, Match
    from reproduce.play.specs import Spec, grid, seeds

    if args.grid and not args.tune:
        raise UserError("--grid is of --tune: add it, or write a rate as an option, fedprox(lr=0.1)")
    if args.own and len(benchmarks) > 1:
        raise UserError("--own is for one benchmark: each has other algorithms")
    if args.own:
        specs = [*(Spec(label) for label in benchmarks[0].own), *specs]
    factors = grid(args.grid) if args.grid else FACTORS
    return Match(specs, benchmarks, seeds(args.seeds), args.tune, args.all, factors, args.finished)


def _play(match: Match, args: argparse.Namespace, notes: list[str]) -> None:
    """Checks a match, says its cost, trains it and shows the result; nothing begins if the result could not be written.
    notes: on the user's own data."""
    match.check()
    if args.output:
        _check_output(args.output)
    print(*notes, match.cost(), sep="\n", file=sys.stdout if args.cost else sys.stderr)
    if not args.cost:
        match.train()
        _shown(match, args)
        _check_failed(match)


def _check_output(output: Path) -> None:
    """Raises UserError if something of a play cannot be written there."""
    if output.suffix in WRITTEN:
        raise UserError(f"-o {output}: give a name without an ending; {', '.join(WRITTEN)} are written")
    files.check_writable(output)  # endings come after a device's name, too
    for ending in WRITTEN:
        files.check_writable(output.with_name(output.name + ending))


def _check_failed(match: Match) -> None:
    """Raises UserError for an algorithm whose own code failed wherever it was run."""
    for spec in match.specs:
        entries = [e for e in match.entries if e.spec == spec and not e.refused]
        if entries and all(e.failed and not e.failed.startswith("diverged") for e in entries):  # which is a result
            raise UserError(f"{spec.text} failed in all its runs: {entries[0].failed}")


def _list(benchmarks: list[Benchmark]) -> None:
    """The benchmarks in a table; the time is of one run of the reference."""
    from reproduce.play.specs import Spec
    from reproduce.runs import costs

    rows = []
    for b in benchmarks:
        template: Any = b.experiment(Spec(b.reference))
        problem, time = template.problem, duration(costs.together((template,), (0,)).seconds)
        data = getattr(problem, "data", problem)
        data = data if isinstance(data, str) else type(data).__name__
        model = type(problem.model).__name__ if problem.model else ""
        clock = type(template.clock).__name__.lower()
        rows.append([b.name, clock, data, model, str(problem.clients), str(template.algorithm.lr), b.reference, time])
    header = ["BENCHMARK", "CLOCK", "DATA", "MODEL", "CLIENTS", "RATE", "REFERENCE", "TIME"]
    print_table(header, rows, right=("CLIENTS", "RATE", "TIME"))
    note = (
        "The time is of one run of the reference on one core. Any declared panel is a benchmark too, as PAPER/PANEL "
        "(`plan --jobs --scale reduced`)."
    )
    print(f"\n{fill(note)}")


def _shown(match: Match, args: argparse.Namespace) -> None:
    from reproduce.play import display, summary

    frame = match.frame()
    table = summary(frame)
    if args.json:
        print_json([{k: None if v != v else v for k, v in row.items()} for row in table.to_dict("records")])
    else:
        one = len(match.benchmarks) == 1
        header, rows = display.header(table)[one:], [r[one:] for r in display.rows(table)]
        if {r[-1] for r in rows} == {"ok"}:  # which says nothing
            header, rows = header[:-1], [r[:-1] for r in rows]
        print_table(header, rows, right=display.RIGHT)
        print("", *map(fill, display.notes(match)), sep="\n")
    if args.output:
        written = display.write(match, frame, args.output)
        if ".png" not in written:
            print("not drawn: no run has numbers", file=sys.stderr)
        if not args.json:
            print(f"written: {args.output}{', '.join(written)}")
