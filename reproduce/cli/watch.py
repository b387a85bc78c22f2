"""How long a workflow still takes, in a line below Snakemake's own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection

from reproduce.runs import costs, results
from reproduce.runs.plan import Job
from reproduce.text import duration


class Watch(logging.Handler):
    """Prints a line whenever a job of the workflow has finished. jobs: those to train. parallel: how many at once."""

    def __init__(self, jobs: Collection[Job], parallel: int) -> None:
        super().__init__(logging.INFO)
        self.jobs, self.parallel = jobs, parallel

    def emit(self, record: logging.LogRecord) -> None:
        said = record.__dict__
        if str(said.get("event", "")).rpartition(".")[2].lower() == "progress" and (seconds := self.left()):
            print(f"{said['done']} of {said['total']} done, about {duration(seconds)} left", file=sys.stderr)

    def left(self) -> float:
        """Seconds that the trainings to come take, if no core ever waits."""
        due = [costs.due(job).seconds for job in self.jobs if not results.standing(job).holds]
        return max(sum(due) / self.parallel, *due) if due else 0.0
