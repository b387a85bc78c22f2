"""What to train first where time is short: the jobs with the most claims and printed numbers per minute."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from reproduce.declare.experiment import PACKAGE
from reproduce.runs import costs, plan, rates, results
from reproduce.runs.plan import Job
from reproduce.verdicts.claims import claims_files


@dataclass(frozen=True)
class Worth:
    """A job, its seconds, and its share of the claims and of the printed numbers that rest on it and on others."""

    job: Job
    seconds: float
    claims: float
    numbers: float

    @property
    def rate(self) -> float:
        """Claims and numbers per minute."""
        return 60 * (self.claims + self.numbers) / self.seconds


def first(jobs: Iterable[Job], budget: float, flops: float | None = None) -> Iterator[Worth]:
    """The jobs without results that can be trained here, best first, as long as they fit into `budget` seconds.

    On one core, or at so many FLOPs per second: then what a core trains within the budget is left to it, because no
    small network comes near the rate of a large one.
    """
    without = [j for j in jobs if not plan.missing(j) and not results.standing(j).usable]
    able = [j for j in without if flops is None or costs.due(j).seconds > budget]
    sharing = Counter(a for j in able for a in j.artifacts)
    asked = Counter((s, c.artifact) for file in claims_files() for c in file.claims for s in c.scales)

    def worth(job: Job) -> Worth:
        seconds = rates.START + costs.due(job).flops / flops if flops else costs.due(job).seconds
        shares = [(asked[job.scale, a] / sharing[a], printed(a) / sharing[a]) for a in job.artifacts]
        return Worth(job, seconds, *map(sum, zip(*shares, strict=True)))

    for one in sorted(map(worth, able), key=lambda one: -one.rate):
        if one.rate and one.seconds <= budget:
            budget -= one.seconds
            yield one


@cache
def printed(artifact: str) -> int:
    """How many numbers the paper prints in a table or figure, or says of it."""
    paper, name = artifact.split("/")
    found = 0
    for file in (PACKAGE / "papers" / paper / "reported" / f"{each}.csv" for each in (name, "prose")):
        if file.is_file():
            with file.open(encoding="utf-8", newline="") as lines:
                found += sum(row["artifact"] in (artifact, name) for row in csv.DictReader(lines))
    return found
