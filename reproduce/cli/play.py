"""Try algorithms on benchmarks, your own class included: a table with intervals, paired by seed, and a figure.

An algorithm is a name with options, "fedprox(mu=0.01)", or a class in a file of the working directory,
"my_module:FedSlow(lr=0.1)". A benchmark is an alias (`play --list`), any declared panel (PAPER/PANEL), or a plain one
on your own data (--data). Every algorithm is compared with the benchmark's FedAvg on the same seeds, at its learning
rate unless one is given. What was trained before is not trained again.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.errors import UserError
from reproduce.text import duration, fill, print_json, print_table

if TYPE_CHECKING:
    from reproduce.play.benchmarks import Benchmark
    from reproduce.play.match import Match
    from reproduce.play.specs import Spec

NAME = "play"
WRITTEN = {
    ".md": files.begins(rb"# [^\r\n]+ at (smoke|reduced|paper) scale\r?\n"),
    ".csv": files.begins(rb"benchmark,scale,algorithm,lr,seed,metric,value,"),
    ".png": files.PNG,
    ".pdf": files.PDF,
}
"""Endings of what is written, and how an earlier one is known."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("algorithms", nargs="*", metavar="ALGORITHM", help='such as fedprox "fedprox(mu=0.01)"')
    parser.add_argument(
        "--on",
        nargs="+",
        default=[],
        metavar="BENCHMARK",
        help="aliases or panels; with --all, --list and --matrix by default all aliases",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER|FILE",
        help="your own: a folder of class folders with pictures, a CSV, parquet or npz file, a saved datasets.Dataset; "
        "without --on on a plain benchmark, which --cost shows",
    )
    parser.add_argument(
        "--label", default="label", metavar="COLUMN", help="of --data, with the labels (default: label)"
    )
    parser.add_argument("--model", metavar="NETWORK", help="a torch.nn.Module: my_file:Net(width=8), with literals")
    parser.add_argument("--partition", metavar="PARTITION", help='such as "Dirichlet(0.3)", or column:NAME of --data')
    parser.add_argument("--clients", type=int, metavar="N", help="how many there are (plain benchmark: 20)")
    parser.add_argument("--scale", default="reduced", help="smoke, reduced (default) or paper")
    parser.add_argument(
        "--seeds", default="0-4", metavar="SEEDS", help="that are reported, such as 0-4 (default) or 0,2,7"
    )
    parser.add_argument("--all", action="store_true", help="all named algorithms; those that do not fit are left out")
    parser.add_argument("--own", action="store_true", help="also the benchmark's own algorithms, as declared")
    parser.add_argument(
        "--against",
        metavar="ALGORITHM",
        help="what the others are compared with (default: FedAvg, or the first algorithm of a panel that has none)",
    )
    parser.add_argument("--tune", action="store_true", help="first choose each one's rate from a grid of equal size")
    parser.add_argument(
        "--tuning-seeds", default="1000,1001", metavar="SEEDS", help="to choose on (default: 1000,1001)"
    )
    parser.add_argument(
        "--grid",
        metavar="FACTORS",
        help="of each one's rate, to try, such as 0.1,1,10 (default: eight from 0.03 to 100)",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--list", action="store_true", help="show the benchmarks with size and cost; train nothing")
    asked.add_argument(
        "--matrix", action="store_true", help="show which algorithms fit which benchmarks; train nothing"
    )
    asked.add_argument("--panels", metavar="PAPER", help="list a paper's panels, benchmarks too; train nothing")
    asked.add_argument("--cost", action="store_true", help="show what it would cost; train nothing")
    asked.add_argument("--finished", action="store_true", help="show what is trained; train nothing")
    asked.add_argument(
        "--replay",
        action="store_true",
        help="train the first rounds of what is trained again and compare, as replay",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="NAME", help="also write NAME.md, NAME.csv, NAME.png, .pdf"
    )


def run(args: argparse.Namespace) -> None:
    from reproduce.play.specs import exits, words

    try:
        with exits():
            _run(args)
    except SystemExit as error:  # of code of a user's own, which must not look like the end of this command
        raise UserError(f"the program was ended before it was done: {words(error)}") from error


def _run(args: argparse.Namespace) -> None:
    from reproduce.cli import replay
    from reproduce.play.benchmarks import ALIASES, panels
    from reproduce.play.names import NAMES
    from reproduce.play.owndata import benchmarks as chosen
    from reproduce.play.specs import parse
    from reproduce.runs import plan

    scale = plan.check_scale(args.scale)
    specs = [parse(text) for text in args.algorithms]
    if args.all or (args.matrix and not specs):
        specs += [parse(name) for name in NAMES]
    aliases = [name for name, scales in ALIASES.items() if scale in scales]
    own = {"model": args.model, "partition": args.partition, "clients": args.clients, "data": args.data}
    places = args.on or ([] if any(own.values()) or args.panels else aliases)
    benchmarks = chosen(places, scale, **own, label=args.label)
    if args.panels:
        _print_panels(panels(args.panels, scale), args.json)
    elif args.list:
        _list(benchmarks, args.json)
    elif args.matrix:
        _matrix(specs, benchmarks, args.json)
    else:
        if not (specs or args.own) or not (args.on or args.all or args.data):
            raise UserError(
                "name an algorithm and a benchmark: play ALGORITHM --on BENCHMARK (`play --list` shows them), or bring "
                "your own, --data FOLDER"
            )
        if args.grid and not args.tune:
            raise UserError("--grid is of --tune: add it, or write a rate as an option, fedprox(lr=0.1)")
        if args.output and args.output.suffix in WRITTEN:
            raise UserError(f"-o {args.output}: give a name without an ending; {', '.join(WRITTEN)} are written")
        if args.output and os.path.isdir(args.output):
            raise UserError(f"-o {args.output} is a folder: name what is written into it, {args.output / 'mine'} say")
        match = _match(args, specs, benchmarks)
        if args.replay:
            if args.json or args.output:
                raise UserError("--replay writes results/SCALE/replay.csv, and goes neither with --json nor with -o")
            replay.again(match.trained(), scale)
            return
        if not args.finished:
            match.check()
        if args.output:  # whose endings come after a device's name, too
            files.check_output(args.output, lambda _: True, "play")
        for ending, ours in WRITTEN.items() if args.output else ():
            files.check_output(args.output.with_name(args.output.name + ending), ours, f"{ending} of a play")
        if not args.finished:
            out = sys.stdout if args.cost else sys.stderr
            for benchmark in benchmarks if any(own.values()) else ():
                print(benchmark.substitute, file=out)
            print(match.cost(), file=out)
        if not args.cost:
            (match.take if args.finished else match.train)()
            _shown(match, args)
            _check_failed(match)


def _match(args: argparse.Namespace, specs: list[Spec], benchmarks: list[Benchmark]) -> Match:
    from reproduce.play.match import FACTORS, Match
    from reproduce.play.specs import Spec, parse
    from reproduce.play.written import grid, seeds

    if args.own:
        if len(benchmarks) > 1:
            raise UserError("--own is for one benchmark: each has other algorithms")
        specs = [*(Spec(label) for label in benchmarks[0].own), *specs]
    against = parse(args.against) if args.against else None
    reported, tuning, factors = seeds(args.seeds), seeds(args.tuning_seeds), grid(args.grid) if args.grid else FACTORS
    return Match(specs, benchmarks, reported, args.tune, tuning, against, args.all, factors)


def _check_failed(match: Match) -> None:
    """Raises UserError for an algorithm whose own code failed wherever it was run."""
    for spec in match.specs:
        mine = [e for e in match.entries if e.spec == spec and not e.refused]
        if mine and all(e.failed and not e.failed.startswith("diverged") for e in mine):  # which is a result
            raise UserError(f"{spec.text} failed in all its runs: {mine[0].failed}")


def _list(benchmarks: list[Benchmark], json: bool) -> None:
    found = [describe(b) for b in benchmarks]
    if json:
        print_json(found)
        return
    shows: dict[str, Callable[[Any], str]] = {
        "benchmark": str, "clock": str.lower, "data": str, "model": str, "clients": str, "reference": str,
        "seconds": duration, "panel": str,
    }  # fmt: skip
    header = [name.upper() for name in shows]
    rows = [[show(f[name]) for name, show in shows.items()] for f in found]
    print_table(header, rows, right=("CLIENTS", "SECONDS"), whole=("BENCHMARK", "DATA"))
    note = (
        "Seconds are of one run of the reference on one core; `--json` also has parameters, learning rate, samples and "
        "FLOPs. Any declared panel is a benchmark too, as PAPER/PANEL; `play --panels PAPER` lists them."
    )
    print(f"\n{fill(note)}")


def _print_panels(found: Mapping[str, Mapping[str, Sequence[str]]], json: bool) -> None:
    if json:
        print_json([{"panel": name, "settings": values} for name, values in found.items()])
        return
    rows = [[n, "; ".join(f"{k} = {', '.join(v)}" for k, v in values.items())] for n, values in found.items()]
    print_table(["PANEL", "LABELS THAT CHOOSE A SETTING"], rows, whole=("PANEL",))
    print(f"\n{fill('A panel with several settings is named with labels: PAPER/PANEL:label=value,label=value.')}")


def describe(b: Benchmark) -> dict[str, Any]:
    """A benchmark as JSON-ready data; samples, FLOPs and seconds are of one run of its reference."""
    from reproduce.engine.cost import estimate
    from reproduce.play.specs import Spec
    from reproduce.runs.costs import rates

    template: Any = b.experiment(Spec(b.reference))
    cost, problem = estimate(template, (0,), rates()), template.problem
    data = getattr(problem, "data", problem)
    return {
        "benchmark": b.name,
        "panel": b.declared,
        "clock": type(template.clock).__name__,
        "data": data if isinstance(data, str) else type(data).__name__,
        "model": type(problem.model).__name__ if problem.model else "",
        "clients": problem.clients,
        "parameters": problem.model.parameters if problem.model else problem.dim,
        "rate": template.algorithm.lr,
        "reference": b.reference,
        "samples": cost.samples,
        "flops": cost.flops,
        "seconds": cost.seconds,
    }


def _matrix(specs: list[Spec], benchmarks: list[Benchmark], json: bool) -> None:
    from reproduce.play.across import impersonal
    from reproduce.play.benchmarks import reason

    found = [(s.text, b.name, impersonal(s.text, reason(s, b))) for s in specs for b in benchmarks]
    if json:
        print_json([{"algorithm": a, "benchmark": b, "runs": not why, "reason": why} for a, b, why in found])
        return
    numbers = {why: str(i) for i, why in enumerate(dict.fromkeys(why for *_, why in found if why), start=1)}
    cells = {(a, b): f"no ({numbers[why]})" if why else "yes" for a, b, why in found}
    rows = [[s.text, *(cells[s.text, b.name] for b in benchmarks)] for s in specs]
    print_table(["ALGORITHM", *(b.name for b in benchmarks)], rows)
    print("".join(f"\n({n}) {why}" for why, n in numbers.items()) or "\nall of them fit")


def _shown(match: Match, args: argparse.Namespace) -> None:
    from reproduce.play import shown, summary

    frame = match.frame()
    found = summary(frame)
    if args.json:
        print_json([{k: None if v != v else v for k, v in row.items()} for row in found.to_dict("records")])
    else:
        several = len(match.benchmarks) > 1
        print_table(shown.HEADER[not several :], [r[not several :] for r in shown.rows(found)], right=shown.RIGHT)
        print("\n" + "\n".join(shown.notes(match)))
    if args.output:
        from reproduce.report import figures

        named = args.output.with_name
        files.write_text(named(args.output.name + ".md"), shown.markdown(match, frame))
        files.write_text(named(args.output.name + ".csv"), frame.to_csv(index=False, lineterminator="\n"))
        if drawn := match.drawable:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
                figures.save(shown.figure(match, frame), args.output, shown.stamp_text(match))
        else:
            untrained = any(e.untrained for e in match.entries)
            why = "nothing of this is trained, leave --finished out" if untrained else "no run has numbers"
            print(f"not drawn: {why}", file=sys.stderr)
        if not args.json:
            print(f"written: {args.output}.md, .csv{', .png, .pdf' * drawn}")
