"""Show the data partition of a panel, and write it to a file for use elsewhere.

A panel is what `play --on` takes: an alias (`play --list`) or PAPER/PANEL, with labels where it has several settings.
`-o FILE.parquet` writes the partition: client, index in the data set's own order, label. The checksum is that of its
rows.

LARGEST and SHARE are the most frequent class of the client's samples, and its share. ENTROPY is that of its classes,
in bits. TEST counts its own test samples, if the test set is split too (else -).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import cli, files
from reproduce.declare.values import Seed, check
from reproduce.errors import UserError
from reproduce.settings import settings
from reproduce.text import fill, print_json, print_table

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.partitions.split import Split
    from reproduce.play.benchmarks import Benchmark

NAME = "partition"
ROWS = 50
"""Clients in the table."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("panel", metavar="BENCHMARK", help="an alias, PAPER/PANEL or PAPER/PANEL:label=value")
    cli.scale(parser, "reduced")
    parser.add_argument("--seed", type=int, default=0, help="of the run (default: 0)")
    cli.as_json(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the partition: FILE.parquet")


def run(args: argparse.Namespace) -> None:
    from reproduce.partitions import exported
    from reproduce.partitions.split import split
    from reproduce.play.benchmarks import find

    check("--seed", args.seed, Seed)
    if output := args.output:
        if output.suffix != ".parquet":
            raise UserError(f"-o {output}: partitions are Parquet; give a name that ends in .parquet")
        files.check_writable(output)
    benchmark = find(args.panel, args.scale)
    problem: Any = benchmark.template.problem
    if problem.model is None:
        raise UserError(f"{args.panel} is of quadratics: there are no data to split")
    partition = split(problem, args.seed, settings())
    rows = exported.rows(partition)
    about = exported.provenance(partition, rows, panel=benchmark.declared, scale=benchmark.scale)
    held = holdings(partition)
    if args.json:
        print_json({**about, "substitute": benchmark.substitute, "holdings": held.to_dict("records")})
    else:
        _print(benchmark, about, held)
    if output:
        exported.write(output, rows, about)
    if output and not args.json:
        print(f"written: {output}")


def holdings(split: Split) -> pd.DataFrame:
    """Returns a row for every client, with numbers on the samples that it holds.

    classes: how many; largest: the class of most of its samples, None without samples; share: of the samples that are
    of that class; entropy: of the classes of its samples, in bits; test: test samples of its own, None if the test set
    is not split.
    """
    import numpy as np
    import pandas as pd
    from scipy.special import entr

    table = np.array([np.bincount(split.labels[0][held], minlength=split.data.n_classes) for held in split.parts[0]])
    samples = table.sum(axis=1)  # of table [clients, classes]
    shares = table / np.maximum(1, samples)[:, None]  # p_c, the share of class c
    largest = [int(row.argmax()) if row.any() else None for row in table]
    tests = [len(held) for held in split.parts[1]] if len(split.parts) > 1 else [None] * len(table)
    columns = {
        "client": np.arange(len(table)),
        "samples": samples,
        "classes": (table > 0).sum(axis=1),
        "largest": pd.Series(largest, dtype=object),
        "share": shares.max(axis=1),
        "entropy": np.abs(entr(shares).sum(axis=1)) / np.log(2),  # - sum_c p_c log2 p_c, and no -0.0
        "test": pd.Series(tests, dtype=object),
    }
    return pd.DataFrame(columns)


def _print(benchmark: Benchmark, about: dict[str, Any], held: pd.DataFrame) -> None:
    header = [name.upper() for name in held.columns]
    kinds: dict[Any, str] = {"samples": "{:,}", "share": "{:.1%}", "entropy": "{:.2f}", "test": "{:,}"}
    rows = [
        ["-" if value is None else kinds.get(name, "{}").format(value) for name, value in row.items()]
        for row in held.head(ROWS).to_dict("records")
    ]
    print_table(header, rows, right=header)
    if len(held) > ROWS:
        print(f"... and {len(held) - ROWS:,} more clients (`--json` has all)")
    total, used = about["samples"]["train"].values()
    subset = f", of which {used:,} are in use, drawn with the seed {about['subset_seed']}" if used < total else ""
    seed = "" if about["seed"] is None else f"; seed {about['seed']}"
    enters = "" if about["depends_on_seed"] else "; the same for all seeds of runs"
    lines = [
        f"substitute at {benchmark.scale} scale: {benchmark.substitute}" if benchmark.substitute else "",
        f"partition: {about['partition']} among {about['clients']} clients{seed}{enters}",
        f"data: {about['data']}, {total:,} training samples{subset}; the clients hold {held['samples'].sum():,}",
        f"SHA-256 of the data: {about['data_sha256']}",
        f"checksum of the partition: {about['checksum']}",
    ]
    print("", *map(fill, filter(None, lines)), sep="\n")
