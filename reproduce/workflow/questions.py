"""What the rules of the Snakefile ask: which jobs an artifact waits for, what is there and must be made again.
What makes no sense ends Snakemake in one line."""

from __future__ import annotations

import atexit
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path, PurePath
from typing import Any, TypeVar

from reproduce.declare.experiment import SCALES
from reproduce.errors import UserError
from reproduce.papers import PAPERS, artifacts
from reproduce.runs import due, expected, plan
from reproduce.runs.plan import Job
from reproduce.workflow.configuration import check_writable, one_line

PYTHON = sys.executable
T = TypeVar("T")

# A table has no picture, whatever it is called; one that does not exist is named as one.
_TABLES = "|".join(f"{a.paper}_{a.name}" for a in artifacts() if a.kind == "table")
_TABLE = rf"(?:{_TABLES}|[a-z_]+_table[a-z0-9]*)\."
PAPER = {"figure": f"(?!{_TABLE})[a-z_]+", "table": f"(?={_TABLE})[a-z_]+"}
"""Kind of an artifact -> what its paper is called in the names of its files."""


_MADE = "|".join(f.replace(".", r"\.") for scale in SCALES for f in plan.artifact_files(scale))
MISNAMED = rf"(?!(?:{_MADE})$)(?:figures|tables)/.+|/.+"
"""What is called like a figure or a table and is none."""


def shown(file: str) -> Any:
    """A file of a table or figure, whose name may have wildcards. `snakemake --report` embeds those that people look
    at, with the paper as category."""
    from snakemake.io import report

    path = PurePath(file)
    if path.suffix not in (".png", ".md") or path.parts[0] == "results":
        return file
    paper, _, name = path.stem.rpartition("_")

    def labels(wildcards: Any) -> dict[str, str]:
        named, scale = (text.format(**dict(wildcards.items())) for text in (f"{paper}/{name}", path.parts[1]))
        return {"artifact": named, "title": plan.artifact(named).title, "scale": scale}

    return report(file, caption="config/caption.rst", category=paper, labels=labels)


TOGETHER = ("smoke",)
"""Scales whose jobs are shorter than the start of a process: where such a scale is asked for, one process trains all
jobs of a paper, and one draws all its artifacts."""


@dataclass(frozen=True)
class Made:
    """What a rule without wildcards makes: files, of what a function says, by commands for a shell. numbers: how many
    the results have, a measure of the time: the longest rule begins first, so that the cores end together."""

    inputs: Callable[[Any], list[str]]
    files: list[str]
    log: str
    commands: Callable[[Any], str]
    numbers: int = 0


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
            drawn, report = _always(plan.artifact_files(scale)), _always(_command("report", "--scale", scale))
            found[f"report_{scale}"] = Made(drawn, [f"report/{scale}/index.html"], f"logs/{scale}/report.log", report)
        for scale, paper in product(TOGETHER, PAPERS):
            files = [f for a in plan.select(paper) for f in plan.outputs(scale, a.id)]
            whole, commands = partial(self._whole, scale, paper), partial(self._commands, scale, paper)
            if files:
                numbers = expected.count(expected.read(scale) if expected.file(scale).exists() else {}, paper)
                found[f"{scale}_{paper}"] = Made(whole, files, f"logs/{scale}/{paper}.log", commands, numbers)
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
        """Before the first job: could all be written in the end, what is trained, and for how long?"""
        jobs = list(self.workflow.dag.needrun_jobs())
        rules = {job.rule.name for job in jobs}
        self.together = [each for each in product(TOGETHER, PAPERS) if "_".join(each) in rules]
        check_writable(f for job in jobs for f in [*job.output, *job.log])
        if self.to_train:
            print("To train:", due.total(self.to_train), file=sys.stderr)

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
    def again(self, wildcards: Any) -> list[str]:
        self.to_train.update(due.to_train(wildcards.scale, wildcards.paper, wildcards.job))
        return due.train_marker(wildcards.scale, wildcards.paper, wildcards.job)


def _always(answer: T) -> Callable[[Any], T]:
    return lambda wildcards: answer


def _failed(scale: str, paper: str) -> Path:
    return Path(f"logs/{scale}/{paper}.failed")


def _command(*words: str) -> str:
    return shlex.join([PYTHON, "-m", "reproduce", *words])
