"""Simulate who trains when under a policy, and print and draw it: no model, no data, no training.

The schedule is that of the declared runs of an artifact (`schedule defedavg/fig2`), or of a policy with a system of
your own (`schedule defedavg_iid --clients 1000 --n 50 --step 0.01`). A policy's further options are given by name:
`defedavg_niid --option variant=hold`. Times are virtual seconds.

Columns. AGGREGATIONS, UPDATES, SECONDS: how many, by when. STALENESS, MAX: mean and largest number of aggregations
between the model that an update was trained from and the one it goes into. IDLE: share of the time in which a client
does not train (it may wait, download or upload), mean of all clients. AT WORK: clients that train at a time, in the
mean. SILENT: clients of which no update was used. All are of the whole time, start-up included.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.errors import UserError, unknown
from reproduce.text import fill, print_json, print_table, short

if TYPE_CHECKING:
    from reproduce.report.schedule_numbers import Summary
    from reproduce.systems.schedule import Schedule

NAME = "schedule"
COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "aggregations": ("AGGREGATIONS", short), "updates": ("UPDATES", short), "seconds": ("SECONDS", "{:.6g}".format),
    "staleness_mean": ("STALENESS", "{:.3g}".format), "staleness_max": ("MAX", "{:.0f}".format),
    "idle_mean": ("IDLE", "{:.1%}".format), "concurrency_mean": ("AT WORK", "{:.4g}".format),
    "clients_never_heard": ("SILENT", "{:.0f}".format),
}  # fmt: skip

KNOWN = (
    "defedavg_niid: variant=hold, receive=keep, empty=skip; defedavg_iid: block_uplink=false, download_on_path=true, "
    "receive=keep; asysg: concurrency=N; fedbuff: concurrency=n; favano: contact=parallel, wait=1"
)
SYSTEM: Mapping[str, tuple[Any, Any, Any, str]] = {
    "clients": (100, int, "N", "(default: 100)"),
    "n": (10, int, "n", "clients drawn, or updates per aggregation (default: 10)"),
    "steps": (None, int, "K", "local steps per job (default: 50; AsySG 1)"),
    "step": (0.0017, float, "SECONDS", "of a step of the fastest client (default: 0.0017)"),
    "upload": (0.044, float, "SECONDS", "of a model (default: 0.044)"),
    "download": (0.044, float, "SECONDS", "of a model (default: 0.044)"),
    "slowdown": ((1.0, 5.0), float, ("LOW", "HIGH"), "uniform on (default: 1 5)"),
    "speeds": ("slowdown", str, "MODEL", "what is uniform: slowdown (default), or rate, HIGH the fastest"),
}
"""Options that make a system of one's own: default (that of `steps` depends on the policy), type, unit, help."""

Length = tuple[int | None, float | None]
"""Aggregations and virtual seconds after which a schedule ends, whichever comes first."""
Wanted = tuple[list[str], "Schedule", Length]
"""A schedule, and the names of all runs that have it."""

MOST = 10**8
"""Aggregations, or jobs of the fastest client until the horizon, beyond which a number is a slip."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", help="an artifact (defedavg/fig2) or a policy (fedavg, defedavg_iid, fedbuff, ...)")
    parser.add_argument("--scale", help="scale of the artifact: smoke, reduced or paper (default)")
    parser.add_argument("--seed", type=int, default=0, help="of speeds and draws (default: 0)")
    length = parser.add_argument_group("length (default: 1000 aggregations, or what the artifact declares)")
    length.add_argument("--aggregations", type=int, metavar="T", help="stop after so many")
    length.add_argument("--horizon", type=float, metavar="SECONDS", help="stop at this virtual second")
    own = parser.add_argument_group("system and policy, where no artifact gives them")
    for name, (default, kind, unit, text) in SYSTEM.items():
        own.add_argument(
            f"--{name}", type=kind, metavar=unit, help=text, nargs=2 if isinstance(default, tuple) else None
        )
    own.add_argument("--option", action="append", metavar="NAME=VALUE", help=f"of the policy; repeatable. {KNOWN}")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="draw it: FILE.png or FILE.pdf")


def run(args: argparse.Namespace) -> None:
    from reproduce.report.schedule_numbers import summarise

    if not 0 <= args.seed < 2**32:
        raise UserError(f"--seed {args.seed}: use a number from 0 to 2^32 - 1")
    if args.output:
        if args.output.suffix not in (".png", ".pdf"):
            raise UserError(f"{args.output}: pictures are .png or .pdf")
        picture = files.PNG if args.output.suffix == ".png" else files.PDF
        files.check_output(args.output, picture, f"{args.output.suffix[1:].upper()} picture")
    try:
        length = None if args.aggregations is None and args.horizon is None else (args.aggregations, args.horizon)
        wanted = list(_declared(args, length) if "/" in args.target else _own(args, length))
        for _, timed, until in wanted:
            _check_length(timed, *until)
        found = [(names, timed, summarise(timed, args.seed, *until)) for names, timed, until in wanted]
    except ValueError as error:
        raise UserError(str(error)) from error
    if args.json:
        print_json([{"schedule": first, "same": same, **numbers.document()} for (first, *same), _, numbers in found])
    else:
        _print([(names, numbers) for names, _, numbers in found])
    if args.output:
        _draw(args, found)


def _print(found: list[tuple[list[str], Summary]]) -> None:
    """A row for each schedule, under its first name; below, what the columns mean and which names have the same."""
    rows = [[names[0], *(show(s.scalars()[key]) for key, (_, show) in COLUMNS.items())] for names, s in found]
    titles = [title for title, _ in COLUMNS.values()]
    print_table(["SCHEDULE", *titles], rows, right=titles)
    print()
    print(fill("STALENESS, MAX: in aggregations; IDLE: not training, transfers included; AT WORK: training at a time"))
    print("Everything is of the time from 0 to the last aggregation, at SECONDS")
    for clients, watched in sorted({(s.clients, len(s.idle)) for _, s in found if len(s.idle) < s.clients}):
        said = (
            f"IDLE and AT WORK: of {watched:,} of the {clients:,} clients, evenly chosen in the order of their speeds"
        )
        print(fill(said))
    for names, _ in found:
        if len(names) > 1:
            print(f"The same schedule: {' = '.join(names)}")


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """What of a system of one's own was given."""
    return {name: getattr(args, name) for name in (*SYSTEM, "option") if getattr(args, name) is not None}


def _declared(args: argparse.Namespace, length: Length | None) -> Iterator[Wanted]:
    """The distinct schedules of an artifact's runs, with the names of those runs and the lengths that they declare."""
    from reproduce.clocks.events import Events
    from reproduce.report.names import pretty
    from reproduce.runs import plan

    (artifact,) = plan.select(args.target)
    scale = plan.check_scale("paper" if args.scale is None else args.scale)
    if given := _given(args):
        raise UserError(f"--{next(iter(given))} is for a policy; {args.target} declares its own system")
    seen: dict[tuple[Schedule, Length], list[str]] = {}
    experiments: list[Any] = [e for p in artifact.panels(scale) for e in p.experiments]
    for e in experiments:
        if isinstance(e.clock, Events):
            timed = e.clock.schedule(e.system, e.problem.clients)
            told = {k: v for k, v in e.labels.items() if k != "target_accuracy_pct"}
            words = (pretty(v, artifact.names) if isinstance(v, str) else f"{pretty(k)} = {v}" for k, v in told.items())
            names = seen.setdefault((timed, length or (e.clock.aggregations, e.clock.horizon)), [])
            names.append(", ".join(words))
    if not seen:
        raise UserError(f"{args.target}: none of its runs at scale {scale} has a schedule")
    return ((list(dict.fromkeys(names)), timed, until) for (timed, until), names in seen.items())


def _own(args: argparse.Namespace, length: Length | None) -> Iterator[Wanted]:
    from reproduce.play.names import POLICIES
    from reproduce.report.names import pretty
    from reproduce.systems.policies_arrivals import AsySGPolicy
    from reproduce.systems.schedule import Schedule
    from reproduce.systems.speeds import Pace, UniformSlowdown

    if args.target not in POLICIES:
        raise unknown("policy", args.target, POLICIES)
    if args.scale is not None:
        raise UserError(f"--scale is for an artifact; {args.target} is a policy")
    make: Any = POLICIES[args.target]
    given = _given(args)
    own: dict[str, Any] = {name: given.get(name, default) for name, (default, *_) in SYSTEM.items()}
    own["steps"] = given.get("steps", 1 if make is AsySGPolicy else 50)
    own["option"] = given.get("option", [])
    options = dict(_option(args.target, make, text) for text in own["option"])
    low, high = own["slowdown"]
    pace = Pace(own["step"], own["upload"], own["download"], UniformSlowdown(low, high, own["speeds"]))
    timed = Schedule(make(own["n"], **options), own["clients"], own["steps"], pace)
    told = [f"n = {own['n']} of {own['clients']}", f"K = {own['steps']}", *own["option"]]
    yield [", ".join([pretty(args.target), *told])], timed, length or (1000, None)


def _option(target: str, policy: Any, text: str) -> tuple[str, Any]:
    """NAME=VALUE as a keyword argument of the policy, its value as of the kind of the default."""
    name, equals, value = text.partition("=")
    known: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(policy) if f.name not in ("n", "selections")}
    if not known:
        raise UserError(f"--option {text}: {target} has no options")
    if not equals or name not in known:
        wrong = f"{target} has no option '{name}'" if equals else "give NAME=VALUE"
        raise UserError(f"--option {text}: {wrong}; {target} knows {', '.join(known)}")
    yes_or_no = isinstance(known[name], bool)
    try:
        return name, {"true": True, "false": False}[value] if yes_or_no else type(known[name])(value)
    except (KeyError, ValueError) as error:
        raise UserError(f"--option {text}: {'true or false' if yes_or_no else 'a number is needed'}") from error


def _check_length(timed: Schedule, aggregations: int | None, horizon: float | None) -> None:
    job = timed.pace.download + timed.steps * timed.pace.step + timed.pace.upload
    if aggregations is not None and not 1 <= aggregations <= MOST:
        raise UserError(f"--aggregations {aggregations}: use a number from 1 to {MOST:,}")
    if horizon is not None and not 0 < horizon < math.inf:
        raise UserError(f"--horizon {horizon:g}: use a positive number of seconds")
    if MOST * job < (horizon or 0):
        raise UserError(f"--horizon {horizon:g}: use {MOST * job:g} at most, {MOST:,} jobs of the fastest client")


def _draw(args: argparse.Namespace, found: list[tuple[list[str], Schedule, Summary]]) -> None:
    """One picture per schedule; the names of several have numbers."""
    from reproduce.report import figures, schedule_picture

    digits = math.ceil(math.log10(len(found) + 1))
    for number, (names, timed, numbers) in enumerate(found, start=1):
        if not numbers.aggregations:
            raise UserError(f"{names[0]}: nothing to draw, the first aggregation comes after the horizon")
        output = args.output if len(found) == 1 else args.output.with_stem(f"{args.output.stem}-{number:0{digits}d}")
        with figures.style():
            picture = schedule_picture.draw(timed, args.seed, numbers, "\n".join(names))
            files.write(output, partial(picture.savefig, format=output.suffix[1:]))
        if not args.json:
            print(f"written: {output}")
