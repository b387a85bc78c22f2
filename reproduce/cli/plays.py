"""The plays of a workflow: what the key `play` of its configuration asks, checked before any job; when one is stale.

Before anything is trained, it is said what each play costs.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.runs import plan
from reproduce.settings import settings

if TYPE_CHECKING:
    from reproduce.play.match import Match

ANNOUNCED: set[str] = set()
"""What was said; Snakemake asks for a marker more than once."""


def words(config: Mapping[str, Any]) -> str:
    """The arguments of `python -m reproduce play` that the key stands for, but for the benchmark and the scale."""
    asked = config["play"]
    algorithms = ["--all"] if asked["algorithms"] is None else list(asked["algorithms"])
    tuned = ["--tune", "--grid", ",".join(map(str, asked["grid"]))] if asked["tune"] else []
    return shlex.join([*algorithms, "--seeds", str(asked["seeds"]), *tuned])


def tables(config: Mapping[str, Any]) -> list[str]:
    """The tables of all benchmarks of the configuration. Raises UserError if one of them cannot be made."""
    asked = config["play"]
    for benchmark in asked["benchmarks"]:
        _trained(_match(asked["scale"], benchmark, config))
    return [f"play/{asked['scale']}/{benchmark}.md" for benchmark in asked["benchmarks"]]


def marker(scale: str, benchmark: str, config: Mapping[str, Any]) -> str:
    """A file that is rewritten when the question has changed, or anything that a number of the play depends on:
    declarations, code of this package and of the user's own files, precision. What has to be trained again then is for
    the command to find out. Raises UserError for what cannot be played."""
    asked = _match(scale, benchmark, config)
    line = f"play/{scale}/{benchmark}: {asked.cost()}"
    if line not in ANNOUNCED:
        ANNOUNCED.add(line)
        print(line, file=sys.stderr)
    text = "\n".join([words(config), *_trained(asked)]) + "\n"
    path = Path(f"logs/play/{scale}/{benchmark}.asked/question")
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        files.write_text(path, text)
    return str(path)


def _match(scale: str, benchmark: str, config: Mapping[str, Any]) -> Match:
    """What the configuration asks of a benchmark."""
    from reproduce.play.benchmarks import find
    from reproduce.play.match import Match
    from reproduce.play.names import NAMES
    from reproduce.play.specs import parse
    from reproduce.play.written import seeds

    asked = config["play"]
    every = asked["algorithms"] is None
    specs = [parse(name) for name in (NAMES if every else asked["algorithms"])]
    reported, grid = seeds(str(asked["seeds"])), tuple(map(float, asked["grid"]))
    return Match(specs, [find(benchmark, scale)], reported, asked["tune"], lenient=every, factors=grid)


def _trained(match: Match) -> list[str]:
    """A line for each result that the play reads before its rates are chosen."""
    jobs = [j for e in match.entries for j in [*match.grid(e), match.reported(e)] if j is not None]
    return [plan.digest_of(j, settings().precision) for j in jobs]
