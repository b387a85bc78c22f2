"""The workflow's configuration: read strictly; what makes no sense ends Snakemake in one line, before any job."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproduce import files
from reproduce.declare.experiment import SCALES
from reproduce.errors import UserError
from reproduce.papers import PAPERS
from reproduce.runs import plan
from reproduce.settings import budget, configure, seeds, settings


@contextmanager
def one_line() -> Iterator[None]:
    """As on the command line: a UserError is a line, and the end with status 2; so is a place that takes no file."""
    try:
        yield
    except (UserError, OSError) as error:
        said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(f"error: {' '.join(said.splitlines())}", file=sys.stderr)
        sys.exit(2)


@one_line()
def file(workflow: Any) -> str:
    """The configuration file, in the working directory, else in the repository; it and others that were named are read
    before Snakemake does it, which takes the last of two equal keys.

    UserError in a folder that is not the project's, unless it was named (`snakemake -d`): nothing is made there, and
    all would be trained again. Also for a file that is none.
    """
    from snakemake.utils import min_version

    min_version("9.20")
    root, here, own = Path(workflow.basedir), Path.cwd(), Path("config/config.yaml")
    _check_writable(".snakemake/lock")  # whose error would be a traceback
    if not here.samefile(root) and workflow.is_main_process:
        if workflow.overwrite_workdir is None:
            raise UserError(f"{here} is not the folder of the project: cd {root}, or name a folder to work in, -d .")
        print(f"working in {here}: what {root} has made does not count here", file=sys.stderr)
    found = own if own.exists() or here.samefile(root) else root / own
    for path in (found, *workflow.overwrite_configfiles):
        if not isinstance(files.read_yaml(path) or {}, dict):
            raise UserError(f"{path}: not the keys of a configuration and their values; config/README.md has them")
    return str(found)


@one_line()
def check_writable(made: Iterable[str]) -> None:
    """Refuse to begin what could not be written in the end."""
    for file in made:
        _check_writable(file)


def _check_writable(file: str) -> None:
    """Raises UserError if no file lies there, or if its folder, or the nearest above it that is there, takes none."""
    if os.path.lexists(file) and not os.path.isfile(file):
        raise UserError(f"cannot write {file}: what lies there is no file; delete it")
    above = next(p for p in Path(os.path.abspath(file)).parents if os.path.lexists(p))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"cannot write {file}: {above} is {'not writable' if above.is_dir() else 'no folder'}")


@one_line()
def apply(workflow: Any, config: dict[str, Any]) -> str:
    """Fill in the defaults, and make them the settings of this process; returns the commands that make them those of
    every job."""
    from snakemake.utils import validate

    schema = Path(workflow.basedir, "config/config.schema.yaml")
    if wrong := files.mismatch(config, files.read_yaml(schema)):
        raise UserError(f"configuration, {wrong}; config/README.md has the keys and their values")
    validate(config, str(schema.resolve()))
    variables = environment(config)
    configure(variables)
    for check in (settings, seeds, budget, _check_folders):
        check()
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables.items())


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a configuration sets; a key that is null leaves the variable as it is."""
    keys = ("data", "store", "device", "precision", "threads", "seeds", "budget", "checkpoint")
    flag = config["to_target"]  # Snakemake leaves `--config to_target=true` a string
    values = {key: config[key] for key in keys}
    values["to_target"] = None if flag is None else int(str(flag).lower() == "true")
    return {
        f"REPRODUCE_{key.upper()}": ",".join(map(str, v)) if isinstance(v, list) else str(v)
        for key, v in values.items()
        if v is not None
    }


def _check_folders() -> None:
    """Raises UserError for a file in the place of a folder, which Snakemake would list."""
    made = [Path(f) for scale in SCALES for f in plan.artifact_files(scale)]
    trained = [Path("results", scale, paper, "any") for scale in SCALES for paper in PAPERS]
    for folder in sorted({parent for file in [*made, *trained] for parent in file.parents}):
        if os.path.lexists(folder) and not folder.is_dir():
            raise UserError(f"{folder} is no folder: files are written there, put one in its place")


@one_line()
def check(target: str) -> list[str]:
    """Refuse what is called like a figure or a table and is none, and whole paths; no inputs for anything else."""
    if os.path.isabs(target):
        raise UserError(f"nothing makes {target}: name targets from {Path.cwd()}, such as {os.path.relpath(target)}")
    _, scale, file = [*target.split("/", 2), ""][:3]
    paper, _, name = file.partition(".")[0].rpartition("_")
    made = plan.outputs(plan.check_scale(scale), plan.artifact(f"{paper}/{name}").id)
    if target not in made:
        there = ", ".join(f for f in made if not f.startswith("results/"))
        raise UserError(f"nothing makes {target}; {paper}/{name} is in {there}")
    return []
