"""The workflow's configuration: read strictly; what makes no sense ends Snakemake in one line, before any job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproduce import costs, files, plan
from reproduce.errors import UserError
from reproduce.settings import settings


@contextmanager
def one_line() -> Iterator[None]:
    """As on the command line: a UserError is a line, and the end with status 2."""
    try:
        yield
    except UserError as error:
        print(f"error: {' '.join(str(error).splitlines())}", file=sys.stderr)
        sys.exit(2)


@one_line()
def read(path: Path) -> None:
    """Look at the file before Snakemake, which takes the last of two equal keys."""
    files.read_yaml(path)


@one_line()
def apply(config: dict[str, Any], schema: Path) -> None:
    """Fill in the defaults, and set the variables that every job reads; a training ends with its workflow."""
    from snakemake.utils import validate

    if wrong := _wrong(config, files.read_yaml(schema)):
        raise UserError(f"{wrong}; config/README.md has the keys and their values")
    validate(config, str(schema.resolve()))
    os.environ.update(plan.environment(config), REPRODUCE_WORKFLOW=str(os.getpid()))
    settings()
    plan.seeds_override()
    costs.allowed_hours()


@one_line()
def check(target: str) -> list[str]:
    """Refuse what is called like a figure or a table and is none; no inputs for anything else."""
    _, scale, file = [*target.split("/", 2), ""][:3]
    paper, _, name = file.partition(".")[0].rpartition("_")
    made = plan.outputs(plan.check_scale(scale), plan.artifact(f"{paper}/{name}").id)
    if target not in made:
        there = ", ".join(f for f in made if not f.startswith("results/"))
        raise UserError(f"nothing makes {target}; {paper}/{name} is in {there}")
    return []


def _wrong(config: dict[str, Any], schema: dict[str, Any]) -> str:
    """What is wrong with a configuration, or ""."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    found = best_match(Draft202012Validator(schema).iter_errors(config))
    place = ".".join(map(str, found.absolute_path)) if found else ""
    return f"configuration{f', {place}' if place else ''}: {found.message}" if found else ""
