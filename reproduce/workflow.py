"""The rules of the Snakefile as functions: the jobs that an artifact waits for, existing files that must be made again,
and the configuration. A configuration that makes no sense ends Snakemake in one line, before any job."""

import atexit
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from reproduce import files, settings
from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import artifacts, papers
from reproduce.errors import UserError
from reproduce.runs import costs, outdated, plan
from reproduce.runs.catalogue import Known, known
from reproduce.text import counted

PYTHON = sys.executable

# Cells are of figures and of tables, whatever these are called.
_TABLES = "|".join(f"{a.paper}_{a.name}" for a in artifacts() if a.kind == "table")
PAPER = {"figure": rf"(?!(?:{_TABLES})\.)[a-z_]+", "table": rf"(?=(?:{_TABLES})\.)[a-z_]+"}
"""Kind of an artifact -> what its paper is called in the names of its files."""


@contextmanager
def one_line() -> Iterator[None]:
    """Context that ends as the command line does: a UserError, or a place that takes no file, becomes one line and
    status 2."""
    try:
        yield
    except (UserError, OSError) as error:
        message = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(f"error: {' '.join(message.splitlines())}", file=sys.stderr)
        sys.exit(2)


def _root(workflow: Any) -> Path:
    """The folder of the Snakefile that is read, which may be a module of another one."""
    return Path(workflow.current_basedir.get_path_or_uri(secret_free=True))


# --- the configuration ------------------------------------------------------------------------------------------------


@one_line()
def file(workflow: Any) -> str:
    """The configuration file, in the working directory, else in the repository.

    UserError in a folder that is not the project's, unless it was named (`snakemake -d`) or is that of a workflow of
    which this one is a module: nothing is made there, and all would be trained again.
    """
    root, folder, local = _root(workflow), Path.cwd(), Path("config/config.yaml")
    if not folder.samefile(root) and workflow.is_main_process:
        if workflow.overwrite_workdir is None and workflow.modifier.is_main_snakefile():
            raise UserError(f"{folder} is not the folder of the project: cd {root}, or name a folder to work in, -d .")
        print(f"working in {folder}: what {root} has made does not count here", file=sys.stderr)
    return str(local if local.exists() else root / local)


@one_line()
def apply(workflow: Any, config: dict[str, Any]) -> list[str]:
    """Fill in the defaults, and make them the settings of this process; returns the words that call `reproduce` with
    them in a job."""
    from snakemake.utils import validate

    schema = _root(workflow) / "config/config.schema.yaml"
    if wrong := files.mismatch(config, files.read_yaml(schema)):
        raise UserError(f"configuration, {wrong}; config/README.md has the keys and their values")
    validate(config, str(schema.resolve()))
    variables = environment(config)
    settings.configure(variables)
    for check in (settings.settings, settings.seeds, settings.budget, settings.limits):
        check()
    return ["env", *(f"{name}={value}" for name, value in variables.items()), PYTHON, "-m", "reproduce"]


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
SHOWN = (".png", ".md")
"""What `snakemake --report` shows of an artifact."""


@dataclass(frozen=True)
class Rule:
    """A rule without wildcards: input files from a function, the files it makes, its log, and shell commands."""

    inputs: Callable[[Any], list[str]]
    files: list[Any]
    log: str
    commands: str | Callable[[Any], str]


def updated(files: Iterable[str]) -> list[Any]:
    """Output files as a rule declares them. What was there before stays until a new one is whole, and if none comes;
    Snakemake's report shows some, by paper, name and scale."""
    from snakemake.io import report
    from snakemake.ioflags import update

    def shown(file: str) -> Any:
        paper, _, name = Path(file).stem.rpartition("_")
        return report(update(file), category=paper, labels={"item": name, "scale": Path(file).parent.name})

    return [shown(file) if file.endswith(SHOWN) else update(file) for file in files]


class RuleInputs:
    """The input functions of the rules of one workflow, with its configuration."""

    def __init__(self, workflow: Any, config: dict[str, Any]) -> None:
        self.workflow, self.config = workflow, config
        self.command = shlex.join(apply(workflow, config))
        """`reproduce` with this configuration, for a shell."""
        self.to_train: set[Known] = set()
        self.default = "all" if workflow.modifier.is_main_snakefile() else ""
        self.together = [*product(TOGETHER, papers())] if self.default else []  # a module's `end` is never called
        self.announced: set[str] = set()  # scales of which all was said at once

    def aliases(self) -> dict[str, list[str]]:
        """Targets that have no files of their own -> what they stand for, the report first."""
        targets = {scale: [f"report/{scale}/index.html", *plan.artifact_files(scale)] for scale in SCALES}
        return {"all": targets[self.config["scale"]], **targets}

    def fixed_rules(self) -> dict[str, Rule]:
        """Rules without wildcards: the reports, and all artifacts of a paper where they are made together."""
        rules = {}
        for scale in SCALES:
            inputs, report = partial(self._rendered, scale), f"{self.command} report --scale {scale}"
            rules[f"report_{scale}"] = Rule(inputs, [f"report/{scale}/index.html"], f"logs/{scale}/report.log", report)
        for scale, paper in self.together:
            files = [f for a in plan.select(paper) for f in plan.outputs(scale, a.id)]
            whole, commands = partial(self._whole, scale, paper), partial(self._commands, scale, paper)
            if files:
                rules[f"{scale}_{paper}"] = Rule(whole, updated(files), f"logs/{scale}/{paper}.log", commands)
        return rules

    @one_line()
    def _rendered(self, scale: str, wildcards: Any) -> list[str]:
        """The files of all artifacts of a scale; says first what it lacks, in place of a line for each."""
        self.announced.add(scale)
        outdated.announce(scale, "", self._budget())
        return plan.artifact_files(scale)

    @one_line()
    def _whole(self, scale: str, paper: str, wildcards: Any) -> list[str]:
        """The files that all artifacts of a paper wait for. If single files are asked for, it names one that never
        exists, so that Snakemake takes the rules of one job and of one artifact."""
        if any("/" in target for target in self.workflow.dag_settings.targets):
            return ["(a whole scale)"]
        markers = []
        for artifact in plan.select(paper):
            self._train(scale, artifact.id)
            markers += outdated.render_marker(scale, artifact.id, self._budget())
        return markers

    def _commands(self, scale: str, paper: str, wildcards: Any) -> str:
        """Returns shell commands that train a paper's due jobs and render its outdated artifacts; a failure ends
        neither, and leaves a mark.

        The rule succeeds all the same, because Snakemake would undo what was drawn; `end` finds the mark.
        """
        allowed = self._budget()
        every = [a.id for a in plan.select(paper)]
        names = [name for name in every if not outdated.fresh(scale, name, allowed)] or every  # none where it is forced
        jobs = dict.fromkeys(job.name for name in names for job in outdated.training(scale, name, allowed)[0])
        mark = f"logs/{scale}/{paper}.failed"
        train = f"{self.command} train --scale {scale} {paper} {shlex.join(jobs)} || touch {mark}; " if jobs else ""
        return f"rm -f {mark}; {train}{self.command} render --scale {scale} {shlex.join(names)} || touch {mark}"

    def begin(self) -> None:
        """Runs before the first job: says what is trained, for how long, and in how many cluster submissions."""
        rules = {job.rule.name for job in self.workflow.dag.needrun_jobs()}
        self.together = [each for each in self.together if "_".join(each) in rules]
        if self.to_train:
            print("To train:", outdated.total(self.to_train), file=sys.stderr)
        if cut := [n for job in self.to_train if (n := costs.submissions(job)) > 1]:
            each = f"of at most {settings.limits()[0]:g} h, each from the checkpoint of the one before"
            print(f"{counted(len(cut), 'job')} in {sum(cut)} submissions {each}", file=sys.stderr)

    @one_line()
    def end(self) -> None:
        """Runs after the last job, below Snakemake's own last line: lists the files that were asked for. UserError if a
        command of a paper failed although files of before are in its place."""
        if failed := [paper for scale, paper in self.together if Path(f"logs/{scale}/{paper}.failed").exists()]:
            raise UserError(f"not all was made of {', '.join(failed)}: see logs/{self.together[0][0]}/PAPER.log")
        files = [self.aliases().get(name, [name])[0] for name in self.workflow.dag_settings.targets or ["all"]]
        more = f" and {len(files) - 4} more" if len(files) > 4 else ""
        atexit.register(print, f"Written: {', '.join(files[:4])}{more}", file=sys.stderr)

    def _budget(self) -> outdated.Budget:
        return outdated.budget(self.workflow.dag_settings.targets)

    def _train(self, scale: str, name: str) -> tuple[Known, ...]:
        """The jobs to train for an artifact; said, unless all was."""
        if scale not in self.announced:
            outdated.announce(scale, name, self._budget())
        return self._trains(outdated.training(scale, name, self._budget())[0])

    def _trains(self, jobs: tuple[Known, ...]) -> tuple[Known, ...]:
        if jobs and not self.workflow.local_exec and " " in PYTHON:
            raise UserError(f"'{PYTHON}' has a space, which batch systems take for its end: install it elsewhere")
        self.to_train.update(jobs)
        return jobs

    @one_line()
    def results(self, wildcards: Any) -> list[str]:
        """The files that the trainings of an artifact leave, which its rendering waits for."""
        jobs = self._train(wildcards.scale, f"{wildcards.paper}/{wildcards.name}")
        return [outdated.train_marker(job)[-1] for job in jobs]

    @one_line()
    def marker(self, wildcards: Any) -> list[str]:
        return outdated.render_marker(wildcards.scale, f"{wildcards.paper}/{wildcards.name}", self._budget())

    @one_line()
    def before(self, wildcards: Any) -> list[str]:
        """The file of the part of a training before this one, or before the rest, where a cluster's limit cuts it; else
        none."""
        job = job_of(wildcards)
        first = int(getattr(wildcards, "part", costs.submissions(job))) - 1
        return [] if first < 1 or job.holds else [str(_trained_mark(job).with_name(f"part{first}"))]

    def training(self, wildcards: Any) -> str:
        """Train a job, or a part of it that ends in time with a checkpoint; nothing if one before it was enough."""
        end = shlex.quote(str(_trained_mark(job_of(wildcards))))
        train = f"{self.command} train --scale {wildcards.scale} {wildcards.paper} {wildcards.job}"
        if hasattr(wildcards, "part"):
            return f"test -e {end} || timeout -s TERM {costs.piece():.0f} {train} && touch {end} || test $? -eq 124"
        return f"rm {end} 2> /dev/null || {train}"

    @one_line()
    def again(self, wildcards: Any) -> list[str]:
        job = job_of(wildcards)
        self._trains(() if job.holds else (job,))
        return outdated.train_marker(job)


def job_of(wildcards: Any) -> Known:
    """The job of a rule; UserError for an unknown one."""
    key = wildcards.scale, wildcards.paper, wildcards.job
    matches = (job for job in outdated.jobs(wildcards.scale).jobs if (job.scale, job.paper, job.name) == key)
    return next(matches, None) or known(plan.job(*key))


def _trained_mark(job: Known) -> Path:
    """The file that a part of a training leaves when all that the job is today is trained."""
    return Path(f"logs/{job.scale}/{job.paper}/{job.name}.due/{job.digest}")
