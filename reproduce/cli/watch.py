"""What a workflow says while it runs: one line with the jobs done, the time left and what is running.

It stands in the place of Snakemake's handler for the terminal, with the records that Snakemake gives to its logger
plugins. It is no plugin itself: Snakemake finds these among installed packages only, and not in one that is installed
in editable mode, as this one is. Errors and warnings appear as ever, and Snakemake's own log file has everything.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Collection
from typing import Any, TextIO

from reproduce.runs import costs
from reproduce.runs.plan import Job
from reproduce.text import duration

SILENT = {"workflow_started", "run_info", "job_info", "job_started", "job_finished", "progress", "resources_info"}
"""Events whose records are not printed."""
CHATTER = ("Select jobs to execute", "Building DAG", "Assuming unrestricted", "Using profile", "host:", "Using shell")
"""How those messages begin that are no events and not printed either."""

SOME = 60.0
"""Seconds of finished jobs from which on their pace counts more than the estimates."""


class Watch(logging.Handler):
    """Prints a line whenever a job has finished, on a terminal always the same one; passes on what is left.

    inner: Snakemake's handler. jobs: those to train, filled while Snakemake plans. parallel: how many can run at once.
    """

    def __init__(self, inner: Any, jobs: Collection[Job], parallel: int) -> None:
        super().__init__()
        self.inner, self.jobs, self.parallel = inner, jobs, parallel
        self.stream: TextIO = inner.stream
        self.names: dict[int, str] = {}
        self.running: dict[int, float] = {}
        """Job number -> when it began, seconds."""
        self.finished: set[str] = set()
        self.spent: dict[str, float] = {}
        """Finished job -> seconds that it took."""
        self.planned: dict[str, float] = {}
        """Job -> seconds that it was expected to take; what has finished would cost nothing, or all of its seeds."""
        self.done = self.total = 0
        self.name = "watch"

    def emit(self, record: logging.LogRecord) -> None:
        event = str(getattr(record, "event", None) or "")
        if event in SILENT:
            self._note(event, record.__dict__)
        elif event or record.levelno > logging.INFO or not str(record.msg).startswith(CHATTER):
            self._forget(record.__dict__) if event == "job_error" else None
            self._write("")
            self.inner.handle(record)

    def _note(self, event: str, said: dict[str, Any]) -> None:
        if event == "run_info":
            self.total = int(said.get("stats", {}).get("total", 0))
        elif event == "job_info":
            self.names[said["jobid"]] = _name(said)
            self.running[said["jobid"]] = time.monotonic()
            self._write(self.line())
        elif event == "job_finished":
            number = said.get("job_id", said.get("jobid", -1))
            began = self.running.get(number)
            name = self._forget(said)
            self.finished.add(name)
            if began is not None:
                self.spent[name] = time.monotonic() - began
        elif event == "progress":
            self.done, self.total = said["done"], said["total"]
            self._write(self.line(), stays=True)

    def _forget(self, said: dict[str, Any]) -> str:
        number = said.get("job_id", said.get("jobid", -1))
        self.running.pop(number, None)
        return self.names.get(number, "")

    def line(self) -> str:
        """ "12 of 190 done, about 3 h 20 min left (until 18:05): train fedacs/fig6-mnist, draw fedacs/fig7"."""
        seconds = self.left()
        until = time.strftime("%H:%M" if seconds < 12 * 3600 else "%a %H:%M", time.localtime(time.time() + seconds))
        left = f", about {duration(seconds)} left (until {until})" if seconds else ""
        names = [self.names[number] for number in self.running]
        return f"{self.done} of {self.total} done{left}" + (f": {', '.join(names)}" if names else "")

    def left(self) -> float:
        """Seconds that the jobs which are still to train take, if no core ever waits and all that are to come are as
        much slower or faster than estimated as those that have finished; until there are some, as estimated."""
        for job in self.jobs:
            if (name := _train(job.paper, job.name)) not in self.planned:
                self.planned[name] = costs.due(job).seconds
        planned = {name: self.planned[name] for name in (_train(job.paper, job.name) for job in self.jobs)}
        known = [name for name in self.spent if name in planned]
        took, meant = (sum(of[name] for name in known) + SOME for of in (self.spent, planned))
        due = [took / meant * seconds for name, seconds in planned.items() if name not in self.finished]
        return max(sum(due) / self.parallel, *due) if due else 0.0

    def _write(self, line: str, stays: bool = False) -> None:
        """On a terminal the line replaces the last one; elsewhere only lines that stay are written."""
        if self.stream.isatty():
            width = shutil.get_terminal_size().columns
            shown = line if len(line) < width else f"{line[: width - 2]}…"
            self.stream.write(f"\r\033[K{shown}\r")
        elif stays:
            self.stream.write(f"{line}\n")
        self.stream.flush()


def follow(workflow: Any, jobs: Collection[Job], threads: int) -> None:
    """Put a `Watch` in the place of the handler for the terminal, unless Snakemake was asked to say less or more."""
    from snakemake.logging import logger

    wanted = workflow.output_settings
    less = {str(getattr(q, "value", q)).lower() for q in wanted.quiet or ()} & {"all", "progress"}
    if not workflow.is_main_process or less or wanted.dryrun or wanted.verbose or wanted.printshellcmds:
        return
    limits = workflow.resource_settings
    parallel = limits.nodes or max(1, (limits.cores or 1) // threads)
    for handler in list(logger.handlers):
        if handler.name == "DefaultStreamHandler":
            logger.removeHandler(handler)
            logger.addHandler(Watch(handler, jobs, parallel))


def _name(said: dict[str, Any]) -> str:
    """What a job does, in words."""
    fields = dict(said["wildcards"] or {})
    if said["rule_name"] == "train":
        return _train(fields["paper"], fields["job"])
    if said["rule_name"] in ("figure", "table"):
        return f"make {fields['paper']}/{fields['name']}"
    return str(said["rule_name"])


def _train(paper: str, job: str) -> str:
    return f"train {paper}/{job}"
