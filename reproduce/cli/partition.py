"""Show who holds what under the partition of a panel, draw it, and write it so that others can use exactly it.

A panel is what `play --on` takes: an alias (`play --list`) or PAPER/PANEL, with labels where it has several settings.
`-o FILE.parquet` writes the partition: client, index in the data set's own order, label. It is read back by
`reproduce.partitions.Exported("FILE.parquet")`. The checksum is that of its rows.

Columns. LARGEST, SHARE: the class of most of the client's samples, and their share. ENTROPY: of its classes, in bits.
TEST: test samples of its own, where the test set is split, too (else -).
"""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.errors import UserError
from reproduce.text import fill, print_json, print_table

if TYPE_CHECKING:
    from reproduce.partitions.split import Split
    from reproduce.play.benchmarks import Benchmark
    from reproduce.report.partition_numbers import Holding

NAME = "partition"
ROWS = 50
"""Clients in the table."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("panel", help="an alias, PAPER/PANEL or PAPER/PANEL:label=value")
    parser.add_argument("--scale", default="reduced", help="smoke, reduced (default) or paper")
    parser.add_argument("--seed", type=int, default=0, help="of the run (default: 0)")
    parser.add_argument("--json", action="store_true", help="print a JSON object, with all clients")
    parser.add_argument(
        "-o", "--output", type=Path, action="append", default=[], metavar="FILE",
        help="write FILE.parquet, the partition itself, or draw it as FILE.png or FILE.pdf; repeatable",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from reproduce.partitions import exported
    from reproduce.partitions.split import split
    from reproduce.play.benchmarks import find
    from reproduce.report.partition_numbers import holdings
    from reproduce.settings import settings

    if not 0 <= args.seed < 2**32:
        raise UserError(f"--seed {args.seed}: use a number from 0 to 2^32 - 1")
    for output in args.output:
        _check(output)
    benchmark = find(args.panel, args.scale)
    problem: Any = benchmark.template.problem
    if problem.model is None:
        raise UserError(f"{args.panel} is of quadratics: there are no data to split")
    found = split(problem, args.seed, settings())
    rows = exported.rows(found)
    about = exported.provenance(found, rows, panel=benchmark.declared, scale=benchmark.scale)
    held = holdings(found)
    if args.json:
        print_json({**about, "substitute": benchmark.substitute, "holdings": [dataclasses.asdict(h) for h in held]})
    else:
        _print(benchmark, about, held)
    for output in args.output:
        if output.suffix == ".parquet":
            exported.write(output, rows, about)
        else:
            _draw(output, found, about)
        if not args.json:
            print(f"written: {output}")


def _check(output: Path) -> None:
    """UserError for a file that cannot be written, or whose name does not say what to write."""
    from reproduce.partitions.exported import is_ours

    kinds = {".parquet": is_ours, ".png": files.PNG, ".pdf": files.PDF}
    if output.suffix not in kinds:
        raise UserError(f"-o {output}: end its name in .parquet for the partition, in .png or .pdf for a picture")
    files.check_output(output, kinds[output.suffix], f"{output.suffix} of a partition")


def _print(benchmark: Benchmark, about: dict[str, Any], held: list[Holding]) -> None:
    from reproduce.report.partition_numbers import ranked

    header = ["CLIENT", "SAMPLES", "CLASSES", "LARGEST", "SHARE", "ENTROPY", "TEST"]
    rows = [
        [str(h.client), f"{h.samples:,}", str(h.classes), _told(h.largest), f"{h.share:.1%}", f"{h.entropy:.2f}",
         _told(h.test)]
        for h in held[:ROWS]
    ]  # fmt: skip
    print_table(header, rows, right=header)
    if len(held) > ROWS:
        print(f"... and {len(held) - ROWS:,} more clients (`--json` has all)")
    sizes = ", ".join(f"{name} {h.samples:,} (client {h.client})" for name, h in ranked(held).items())
    print(f"\nsamples per client: {sizes}")
    for line in _said(benchmark, about, held):
        print(fill(line))


def _told(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _said(benchmark: Benchmark, about: dict[str, Any], held: list[Holding]) -> list[str]:
    """What the table is of."""
    whole, used = about["samples"]["train"].values()
    total = sum(h.samples for h in held)
    data = f"data: {about['data']}, {whole:,} training samples"
    if used < whole:
        data += f", of which {used:,} are in use, drawn with the seed {about['subset_seed']}"
    seed = "" if about["seed"] is None else f"; seed {about['seed']}"
    enters = "" if about["depends_on_seed"] else "; the same for all seeds of runs"
    said = [
        f"partition: {about['partition']} among {about['clients']} clients{seed}{enters}",
        f"{data}; the clients hold {total:,}",
        f"SHA-256 of the data: {about['data_sha256']}",
        f"checksum of the partition: {about['checksum']}",
    ]
    if benchmark.substitute:
        said.insert(0, f"stand-in at {benchmark.scale} scale: {benchmark.substitute}")
    return said


def _draw(output: Path, found: Split, about: dict[str, Any]) -> None:
    from reproduce.report import figures, partition_picture
    from reproduce.report.partition_numbers import counts

    with figures.style():
        picture = partition_picture.draw(counts(found), f"{about['data']}: {about['partition']}")
        figures.stamp(picture, _stamp(about))
        files.write(output, partial(picture.savefig, format=output.suffix[1:]))


def _stamp(about: dict[str, Any]) -> str:
    """Which partition a picture is of."""
    seed = f"seed {about['seed']}" if about["depends_on_seed"] else "any seed"
    data = f"data SHA-256 {about['data_sha256'][:12]}"
    return f"{about['panel']}, {about['scale']} scale, {seed}; {data}; checksum {about['checksum'][:12]}"
