"""The claims that are open at a scale, and the jobs that each waits for: where an hour of computing decides most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reproduce.runs import costs, plan, results
from reproduce.runs.plan import Job
from reproduce.verdicts.claims import Claim, claims_files
from reproduce.verdicts.forecast import forecasts
from reproduce.verdicts.scoreboard import reads, scoreboard
from reproduce.verdicts.verdict import Prospect

OPEN = ("not run", "undecided", "supported where run")


@dataclass(frozen=True)
class Need:
    """A claim that is not run, undecided, or supported where run.

    jobs: those that it reads, that have no results, or too few seeds, and that can be trained here. lacking: the data
    sets without which others cannot; the claim then stays incomplete: supported where run, or contradicted.
    done: those that have results, if of too few seeds. without: those that lack their data. prospect: what so many
    seeds would make of it; of a claim without cells if the paper is exactly right, and the declared ones are too few.
    """

    claim: str
    artifact: str
    verdict: str
    jobs: tuple[Job, ...]
    lacking: tuple[str, ...]
    done: tuple[Job, ...] = ()
    prospect: Prospect | None = None
    without: tuple[Job, ...] = ()

    @property
    def more_seeds(self) -> float:
        """Seconds of one core that it takes until all jobs have the seeds of the prospect: those that they lack, if
        others can stay, else all."""
        seeds = self.prospect.seeds if self.prospect else 0
        jobs = dict.fromkeys((*self.done, *self.jobs, *self.without))
        return sum(costs.cost(j).seconds * max(seeds - _stay(j), 0) / len(j.panel.seeds) for j in jobs)


def needs(scale: str, artifacts: Iterable[str]) -> list[Need]:
    """The open claims of `artifacts` (ids) that are asked at the scale; no checks, which wait for nothing.

    Those that need no further data come first, then the cheapest. Inconclusive ones without jobs have all their runs:
    more seeds would narrow their intervals.
    """
    wanted, verdicts = set(artifacts), {v.id: v for v in scoreboard(scale)}
    idle = {v.id for v in verdicts.values() if v.verdict == "not run" and v.artifact in wanted}
    power = {f.claim: f for f in forecasts(scale, idle)}
    found = []
    for claim in (c for file in claims_files() for c in file.claims if not c.construction):
        if claim.artifact not in wanted or scale not in claim.scales or verdicts[claim.id].verdict not in OPEN:
            continue
        read, said = _jobs(claim, scale), verdicts[claim.id]
        due = [j for j in read if not _there(j)]
        done = tuple(j for j in read if results.standing(j).usable)
        able = tuple(j for j in due if not plan.missing(j))
        lacking = dict.fromkeys(name for j in due for name in plan.lacking(j))
        without, prospect = tuple(j for j in due if plan.missing(j)), said.prospect
        if (f := power.get(claim.id)) and f.wanted and f.wanted > f.seeds:
            prospect = Prospect("reproduced", f.wanted, f.seeds)
        found.append(Need(claim.id, claim.artifact, said.verdict, able, tuple(lacking), done, prospect, without))
    return sorted(found, key=lambda n: (bool(n.lacking), seconds(n.jobs)))


def _jobs(claim: Claim, scale: str) -> list[Job]:
    """The jobs that make what the claim reads, as far as labels tell."""
    artifacts, experiments = reads(claim, scale)
    declared = {e.declaration for e in experiments}
    mine = [j for j in plan.jobs(scale) if artifacts.intersection(j.artifacts)]
    return [j for j in mine if any(e.declaration in declared for e in j.experiments)]


def seconds(jobs: Iterable[Job]) -> float:
    """What jobs take on one core, each counted once."""
    return sum(costs.due(j).seconds for j in dict.fromkeys(jobs))


def _stay(job: Job) -> int:
    """How many seeds of the job's results need not be trained again when others are added."""
    due = {run.seed for run in results.standing(job).due}
    return sum(seed not in due for seed in job.panel.seeds)


def _there(job: Job) -> bool:
    """Are there results of all seeds, of whatever code, and to the target at least?"""
    return len(results.standing(job).there) == job.runs
