"""What the rules of the Snakefile ask: which jobs an artifact waits for, what is there and must be made again; and the
workflow's configuration. What makes no sense ends Snakemake in one line, before any job."""

from __future__ import annotations

import atexit
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from reproduce import files, settings
from reproduce.declare.experiment import SCALES
from reproduce.errors import UserError
from reproduce.papers import PAPERS, artifacts
from reproduce.runs import costs, due, plan, results
from reproduce.runs.plan import Job
from reproduce.text import counted

PYTHON = sys.executable

# Cells are of figures and of tables, whatever these are called.
_TABLES = "|".join(f"{a.paper}_{a.name}" for a in artifacts() if a.kind == "table")
PAPER = {"figure": rf"(?!(?:{_TABLES})\.)[a-z_]+", "table": rf"(?=(?:{_TABLES})\.)[a-z_]+"}
"""Kind of an artifact -> what its paper is called in the names of its files."""


@contextmanager
def one_line() -> Iterator[None]:
    """As on the command line: a UserError is a line, and the end with status 2; so is a place that takes no file."""
    try:
        yield
    except (UserError, OSError) as error:
        said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(f"error: {' '.join(said.splitlines())}", file=sys.stderr)
        sys.exit(2)


# --- the configuration ------------------------------------------------------------------------------------------------


@one_line()
def file(workflow: Any) -> str:
    """The configuration file, in the working directory, else in the repository.

    UserError in a folder that is not the project's, unless it was named (`snakemake -d`): nothing is made there, and
    all would be trained again.
    """
    root, here, own = Path(workflow.basedir), Path.cwd(), Path("config/config.yaml")
    if not here.samefile(root) and workflow.is_main_process:
        if workflow.overwrite_workdir is None:
            raise UserError(f"{here} is not the folder of the project: cd {root}, or name a folder to work in, -d .")
        print(f"working in {here}: what {root} has made does not count here", file=sys.stderr)
    return str(own if own.exists() else root / own)


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
    settings.configure(variables)
    for check in (settings.settings, settings.seeds, settings.budget, settings.limits):
        check()
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables.items())


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a configuration sets; a key that is null leaves the variable as it is."""
    keys = ("data", "store", "device", "precision", "threads", "seeds", "budget", "checkpoint", "longest", "memory")
    flag = config["to_target"]  # Snakemake leaves `--config to_target=true` a string
    values = {key: config[key] for key in keys}
    values["to_target"] = None if flag is None else int(str(flag).lower() == "true")
    return {
        f"REPRODUCE_{key.upper()}": ",".join(map(str, v)) if isinstance(v, list) else str(v)
        for key, v in values.items()
        if v is not None
    }


# --- the rules --------------------------------------------------------------------------------------------------------


TOGETHER = ("smoke",)
"""Scales whose jobs are shorter than the start of a process: where such a scale is asked for, one process trains all
jobs of a paper, and one draws all its artifacts."""


@dataclass(frozen=True)
class Made:
    """What a rule without wildcards makes: files, of what a function says, by commands for a shell."""

    inputs: list[str] | Callable[[Any], list[str]]
    files: list[str]
    log: str
    commands: str | Callable[[Any], str]


class Asked:
    """The input functions of the rules of one workflow, with its configuration."""

    def __init__(self, workflow: Any, config: dict[str, Any]) -> None:
        self.workflow, self.config = workflow, config
        self.to_train: set[Job] = set()
        self.together: list[tuple[str, str]] = []  # scales and papers that this run makes in one process each

    def aliases(self) -> dict[str, list[str]]:
        """Targets that have no files of their own -> what they stand for."""
        whole = {scale: [*plan.artifact_files(scale), f"report/{scale}/index.html"] for scale in SCALES}
        return {"all": whole[self.config["scale"]], **whole}

    def made(self) -> dict[str, Made]:
        """Rules without wildcards: the reports, and all artifacts of a paper where they are made together."""
        found = {}
        for scale in SCALES:
            drawn, report = plan.artifact_files(scale), _command("report", "--scale", scale)
            found[f"report_{scale}"] = Made(drawn, [f"report/{scale}/index.html"], f"logs/{scale}/report.log", report)
        for scale, paper in product(TOGETHER, PAPERS):
            files = [f for a in plan.select(paper) for f in plan.outputs(scale, a.id)]
            whole, commands = partial(self._whole, scale, paper), partial(self._commands, scale, paper)
            if files:
                found[f"{scale}_{paper}"] = Made(whole, files, f"logs/{scale}/{paper}.log", commands)
        return found

    @one_line()
    def _whole(self, scale: str, paper: str, wildcards: Any) -> list[str]:
        """What all artifacts of a paper wait for. Where single files are asked for: nothing that there is, and
        Snakemake takes the rules of one job and of one artifact."""
        targets = self.workflow.dag_settings.targets
        if any("/" in target for target in targets):
            return ["(a whole scale)"]
        allowed = due.budget(targets)
        for artifact in plan.select(paper):
            due.announce(scale, artifact.id, allowed)
            self.to_train.update(due.training(scale, artifact.id, allowed)[0])
        return [file for a in plan.select(paper) for file in due.render_marker(scale, a.id, allowed)]

    def _commands(self, scale: str, paper: str, wildcards: Any) -> str:
        """Train what is due of a paper and draw what is not of today; what fails ends neither, and leaves a mark.

        The rule succeeds all the same, because Snakemake would delete what was drawn; `end` finds the mark.
        """
        allowed = due.budget(self.workflow.dag_settings.targets)
        every = [a.id for a in plan.select(paper)]
        names = [name for name in every if not due.fresh(scale, name, allowed)] or every  # none where it is forced
        jobs = dict.fromkeys(job.name for name in names for job in due.training(scale, name, allowed)[0])
        mark = shlex.quote(str(_failed(scale, paper)))
        train = f"{_command('train', '--scale', scale, paper, *jobs)} || touch {mark}; " if jobs else ""
        return f"rm -f {mark}; {train}{_command('render', '--scale', scale, *names)} || touch {mark}"

    def begin(self) -> None:
        """Before the first job: what is trained, and for how long?"""
        rules = {job.rule.name for job in self.workflow.dag.needrun_jobs()}
        self.together = [each for each in product(TOGETHER, PAPERS) if "_".join(each) in rules]
        if self.to_train:
            print("To train:", due.total(self.to_train), file=sys.stderr)
        if cut := [n for job in self.to_train if (n := costs.submissions(job)) > 1]:
            each = f"of at most {settings.limits()[0]:g} h, each from the checkpoint of the one before"
            print(f"{counted(len(cut), 'job')} in {sum(cut)} submissions {each}", file=sys.stderr)

    @one_line()
    def end(self) -> None:
        """After the last job, below Snakemake's own last line: what was asked for and lies there now. UserError if a
        command of a paper failed although files of before are in its place."""
        if failed := [paper for scale, paper in self.together if _failed(scale, paper).exists()]:
            raise UserError(f"not all was made of {', '.join(failed)}: see logs/{self.together[0][0]}/PAPER.log")
        files = [self.aliases().get(name, [name])[-1] for name in self.workflow.dag_settings.targets or ["all"]]
        more = f" and {len(files) - 4} more" if len(files) > 4 else ""
        atexit.register(print, f"Written: {', '.join(files[:4])}{more}", file=sys.stderr)

    def _question(self, wildcards: Any) -> tuple[str, str, due.Budget]:
        named = f"{wildcards.paper}/{wildcards.name}"
        return wildcards.scale, named, due.budget(self.workflow.dag_settings.targets)

    @one_line()
    def results(self, wildcards: Any) -> list[str]:
        due.announce(*self._question(wildcards))
        return [job.output for job in due.training(*self._question(wildcards))[0]]

    @one_line()
    def marker(self, wildcards: Any) -> list[str]:
        return due.render_marker(*self._question(wildcards))

    @one_line()
    def before(self, wildcards: Any) -> list[str]:
        """Where a training takes longer than a cluster lets a job run: the part before this one, or before the rest."""
        job = plan.job(wildcards.scale, wildcards.paper, wildcards.job)
        first = int(getattr(wildcards, "part", costs.submissions(job))) - 1
        return [str(_enough(job).with_name(f"part{first}"))] * (first > 0 and not results.standing(job).holds)

    def command(self, wildcards: Any) -> str:
        """Train a job, or a part of it that ends in time with a checkpoint; nothing if one before it was enough."""
        end = shlex.quote(str(_enough(plan.job(wildcards.scale, wildcards.paper, wildcards.job))))
        train = _command("train", "--scale", wildcards.scale, wildcards.paper, wildcards.job)
        if hasattr(wildcards, "part"):
            return f"test -e {end} || timeout -s TERM {costs.piece():.0f} {train} && touch {end} || test $? -eq 124"
        return f"rm {end} 2> /dev/null || {train}"

    @one_line()
    def again(self, wildcards: Any) -> list[str]:
        self.to_train.update(due.to_train(wildcards.scale, wildcards.paper, wildcards.job))
        return due.train_marker(wildcards.scale, wildcards.paper, wildcards.job)


def _enough(job: Job) -> Path:
    """What there is after a part of a training that has trained all that the job is today."""
    digest = plan.digest(job, settings.settings().precision)
    return Path(f"logs/{job.scale}/{job.paper}/{job.name}.due/{digest}")


def _failed(scale: str, paper: str) -> Path:
    return Path(f"logs/{scale}/{paper}.failed")


def _command(*words: str) -> str:
    return shlex.join([PYTHON, "-m", "reproduce", *words])
