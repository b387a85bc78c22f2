"""The state of a job: its declared runs, each joined with the stored run in its results file.

    current      same declaration, same code
    re-checked   same declaration, older code, but a replay with today's code gave the same numbers (`replay_lines`)
    stale        same declaration, older code, not replayed
    not reproduced: same declaration, older code, and a replay with today's code gave other numbers
    own          of a user's own code, of which nobody knows what it reads; `--reuse` asks for its files alone
    other        of another declaration, or of another precision than the one asked for: never read
    missing      nothing

A run is compared by what is stored of it: the declared records with all their numbers, the seed, the digest of the
code. One that ended at its target, where figures go on, is of that declaration (`to_target`), and `early`. Seeds that
nobody asks for stay in their file and are not read; what is no longer declared goes when the file is written (`stays`).
A file that is damaged has none.
"""

import csv
import io
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import files, store
from reproduce.declare.experiment import Experiment, code, declares, recorded
from reproduce.declare.isolation import unchanged
from reproduce.errors import UserError, say_once
from reproduce.runs import plan
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.store import Stored
from reproduce.text import counted

WORDS = {
    "current": "",
    "re-checked": "stale, re-checked",
    "stale": "stale",
    "not reproduced": "stale, not reproduced by today's code",
    "own": "of own code (--reuse takes it for the same)",
    "other": "of another declaration or precision",
    "missing": "missing",
}
"""State -> how it is said; the last is the worst."""
REPLAYED = (
    *("job", "result", "code", "seeds", "asked", "rounds", "rows", "deviation", "where", "tolerance"),
    *("noise", "agrees", "seconds", "processor", "instructions", "date"),
)
"""The columns of the record of replays, results/SCALE/replay.csv: one line a job, what was compared, did it agree?"""


class RunStatus(NamedTuple):
    """The state of a run, and whether it is there, ended at its target, is of uncommitted code, and is due for
    training."""

    state: str
    stored: bool
    early: bool
    uncommitted: bool
    due: bool


@dataclass(frozen=True)
class Joined:
    """A declared run, and what is stored of it, if that can be used."""

    experiment: Experiment
    seed: int
    state: str
    stored: Stored | None = None
    early: bool = False

    @property
    def due(self) -> bool:
        """Tells whether the run is to be trained."""
        return self.state not in ("current", "re-checked") or (self.early and not settings().to_target)

    @property
    def status(self) -> RunStatus:
        uncommitted = bool(self.stored and self.stored.training["git"].endswith("+"))
        return RunStatus(self.state, bool(self.stored), self.early, uncommitted, self.due)


@dataclass(frozen=True)
class Standing:
    """The declared runs of a job; refused: the reason why its results file cannot be used, "" if it can; exists: the
    file is there."""

    runs: tuple[Joined, ...]
    refused: str = ""
    exists: bool = False

    @property
    def stored(self) -> list[Stored]:
        """The stored runs that can be used."""
        return [run.stored for run in self.runs if run.stored]

    @property
    def usable(self) -> bool:
        """Tells whether tables and figures can be made of the job: each setting has at least one run."""
        return {r.experiment for r in self.runs} == {r.experiment for r in self.runs if r.stored}

    @property
    def due(self) -> list[Joined]:
        """The runs to train."""
        return [run for run in self.runs if run.due]

    @property
    def holds(self) -> bool:
        """Tells whether nothing is to be trained."""
        return not self.due

    @property
    def state(self) -> str:
        """The state of the worst run."""
        return max((run.state for run in self.runs), key=[*WORDS].index)

    @property
    def words(self) -> str:
        """The state in words, for people; "" for a missing file."""
        if self.refused or not self.exists:
            return self.refused
        return deviations([run.status for run in self.runs]) or "current"


def deviations(runs: Sequence[RunStatus]) -> str:
    """The deviations of runs from today's code and from what is declared, in words: "3 of 9 runs missing; ..."; "" if
    none."""
    counts = Counter(WORDS[run.state] for run in runs if run.state != "current")
    counts["followed only to the target"] = sum(run.early for run in runs)
    counts["of uncommitted code"] = sum(run.uncommitted for run in runs)
    phrases = [(counts[words], words) for words in dict.fromkeys([*WORDS.values(), *counts]) if counts[words]]
    subject = {len(runs): f"all {len(runs)} runs", 1: "1 run"} if len(runs) > 1 else {1: "the run"}
    return "; ".join(
        f"{subject.get(n) if n == len(runs) else f'{n} of {len(runs)} runs'} {words}" for n, words in phrases
    )


def standing(job: Job) -> Standing:
    """The standing of `job`, kept until the file, the code or the replays change."""
    key = stamp(Path(job.output)), stamp(replay_file(job.scale)), settings().precision_asked
    return (_standing.__wrapped__ if job.has_own_code else _standing)(job, *key)


def stamp(path: Path | str) -> tuple[int, int] | bool:
    """A value that changes with a file; False if nothing is there."""
    try:
        status = os.stat(path)
    except OSError:  # none, or a link that leads nowhere
        return os.path.lexists(path)
    return status.st_mtime_ns, status.st_size


@lru_cache(10_000)
def _standing(job: Job, stamp: tuple[int, int] | bool, replays: Any, precision: str | None) -> Standing:
    runs, reason = _stored_runs(Path(job.output), stamp) if stamp else ((), "")
    by_name: Mapping[Any, Stored] = {run.name: run for run in runs}
    declared = [(e, seed) for e in job.experiments for seed in job.panel.seeds]
    joined = [_join(e, seed, by_name.get((*sorted(e.labels.items()), seed)), precision) for e, seed in declared]
    line = replay_lines(job.scale).get(f"{job.paper}/{job.name}", {})
    return Standing(tuple(_compared(joined, line)), reason, bool(stamp))


def stays(job: Job, run: Stored) -> bool:
    """Tells whether a stored run's experiment is still declared, with whatever seed. Runs in a file that several jobs
    share always stay."""
    candidates = (e for e in job.experiments if dict(e.labels) == run.labels)
    return bool(job.file) or any(declares(run.experiment, e) for e in candidates)


def _join(e: Experiment, seed: int, stored: Stored | None, precision: str | None) -> Joined:
    """A declared run with the stored one of its labels and its seed."""
    if stored is None:
        return Joined(e, seed, "missing")
    if precision not in (None, stored.precision) or not declares(stored.experiment, e):
        return Joined(e, seed, "other")
    return Joined(e, seed, "stale", stored, early=not recorded(stored.experiment, e))


def _compared(joined: Sequence[Joined], line: Mapping[str, str]) -> Iterable[Joined]:
    """The runs with their states by today's code and by the record of a replay ({}: none).

    A replay counts for what was there when it was made: the runs that were trained by the date of its result. Its code
    is compared with today's for their settings; others that came later do not matter.
    """
    dates = {run.stored.training["date"] for run in joined if run.stored}
    end = line.get("result", "")
    covered = [run.experiment for run in joined if run.stored and run.stored.training["date"] <= end]
    valid = end in dates and line["code"] == code(dict.fromkeys(covered))
    by_replay = {"yes": "re-checked", "no": "not reproduced"}[line["agrees"]] if valid else "stale"
    today = {e: code([e]) for e in dict.fromkeys(run.experiment for run in joined if run.stored)}
    for run in joined:
        if run.stored is None:
            yield run
        elif (files := run.stored.training.get("own")) is not None and not settings().reuse:
            yield replace(run, state="own")
        elif files is not None and not _unchanged(files):
            yield replace(run, state="stale")
        elif run.stored.code == today[run.experiment]:
            yield replace(run, state="current")
        else:
            yield replace(run, state=by_replay if run.stored.training["date"] <= end else "stale")


def _unchanged(files: Mapping[str, str]) -> bool:
    """Tells whether the files of a user's own still have these digests; then says once, by name, that they are
    reused."""
    if not unchanged(files):
        return False
    say_once(
        f"--reuse: taken for the same, as {', '.join(files) or 'no file'} has not changed; what it reads is not known"
    )
    return True


def parts(job: Job) -> tuple[Job, ...]:
    """The due runs of `job` as jobs: settings that lack the same seeds are in one; () if it holds."""
    lacking: dict[Experiment, list[int]] = defaultdict(list)
    for run in standing(job).due:
        lacking[run.experiment].append(run.seed)
    groups: dict[tuple[int, ...], list[Experiment]] = defaultdict(list)
    for e, seeds in lacking.items():
        groups[tuple(seeds)].append(e)
    return tuple(_part(job, tuple(experiments), seeds) for seeds, experiments in groups.items())


@cache
def _part(job: Job, experiments: tuple[Experiment, ...], seeds: tuple[int, ...]) -> Job:
    if (experiments, seeds) == (job.experiments, job.panel.seeds):
        return job
    return replace(job, experiments=experiments, panel=replace(job.panel, seeds=seeds))


@lru_cache(2_000)
def _stored_runs(path: Path, stamp: tuple[int, int] | bool) -> tuple[tuple[Stored, ...], str]:
    """The runs of a results file and "", or none and why it cannot be used."""
    try:
        return store.result(path)[1], ""
    except store.Unusable as error:
        if stamp:
            store.say(path, error)
        return (), str(error)


def read_by(scale: str, name: str) -> list[Joined]:
    """The declared runs that an artifact ("fedacs/fig6") reads; its jobs may have more, for others."""
    declarations = {p.name: {e.declaration for e in p.experiments} for p in plan.artifact(name).panels(scale)}
    seeds, jobs = plan.seeds_read(scale, name), plan.artifact_jobs(scale, name)
    pairs = [(job.panel.name, run) for job in jobs for run in standing(job).runs]
    return [r for panel, r in pairs if r.seed in seeds[panel] and r.experiment.declaration in declarations[panel]]


def tally(declared: Iterable[RunStatus]) -> str:
    """The number of runs that are there, by state: "190 runs: 148 current, 42 re-checked; 142 of uncommitted code"."""
    runs = [run for run in declared if run.stored]
    counts = Counter(run.state for run in runs)
    states = ", ".join(f"{counts[state]:,} {state}" for state in WORDS if counts[state])
    dirty = sum(run.uncommitted for run in runs)
    text = counted(len(runs), "run")
    return f"{text}: {states}" + (f"; {dirty:,} of uncommitted code" if dirty else "") if runs else text


# --- the record of replays --------------------------------------------------------------------------------------------


def replay_file(scale: str) -> Path:
    """The committed record of a scale."""
    return Path(f"results/{scale}/replay.csv")


def replay_lines(scale: str) -> dict[str, dict[str, str]]:
    """Job ("fedacs/toy2d") -> its line; UserError for a file that is no record."""
    path = replay_file(scale)
    return _replay_lines(path, path.read_bytes()) if os.path.lexists(path) else {}


@cache
def _replay_lines(path: Path, content: bytes) -> dict[str, dict[str, str]]:
    reader = csv.DictReader(content.decode(errors="replace").splitlines())
    rows, known = [*reader], tuple(reader.fieldnames or ()) == REPLAYED
    if known and all(len(row) == len(REPLAYED) and row["agrees"] in ("yes", "no") for row in rows):
        return {row["job"]: row for row in rows}
    raise UserError(f"{path}: not a record of replays; restore it, or delete it and replay again")


def add_replay(scale: str, line: Mapping[str, str]) -> None:
    """Put the line of a job into the record, in the place of its older one; what `replay_lines` raises."""
    _write_replays(scale, {**replay_lines(scale), line["job"]: line})


def drop_replays(scale: str, jobs: Iterable[Job]) -> None:
    """Take the lines out of the record whose results are not there any more. jobs: all of the scale."""
    dates = {
        f"{job.paper}/{job.name}": {run.training["date"] for run in _stored_runs(path, stamp(path))[0]}
        for job in jobs
        if (path := Path(job.output)).is_file()
    }
    lines = replay_lines(scale)
    current = {job: line for job, line in lines.items() if line["result"] in dates.get(job, ())}
    if current != lines:
        _write_replays(scale, current)


def _write_replays(scale: str, lines: Mapping[str, Mapping[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, REPLAYED, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines[job] for job in sorted(lines))
    files.write_text(replay_file(scale), text.getvalue())
