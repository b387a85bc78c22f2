"""What a results file is worth today: made from the declaration and the code that are here, or from others.

    current      same declaration, same code
    confirmed    same declaration, older code, but a replay with today's code gave the same numbers (`replay`)
    older        same declaration, older code, not replayed
    differs      same declaration, older code, and a replay with today's code gave other numbers
    incomplete   same declaration, but seeds are missing, or runs ended at their target and not where figures end
    other        another declaration, another precision, or not a whole file: never read
    missing      no file

Seeds that are missing are added if the code of the others is the same, or confirmed; those that nobody asks for stay in
the file and are not read. Likewise, if only some of a job's experiments are declared otherwise now, the others stay.

A result is compared by what its provenance holds: the declared records with all their numbers, the seeds, the digest of
the code. Results from before that digest was recorded are of older code.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare import inputs
from reproduce.declare.experiment import Experiment, code, recorded, trainings
from reproduce.errors import UserError
from reproduce.settings import settings
from reproduce.store import reading

if TYPE_CHECKING:
    from reproduce.runs.plan import Job

OTHER_DECLARATION = "of another declaration"
WORDS = {
    "current": "current",
    "confirmed": "of older code, confirmed by a replay",
    "older": "of older code",
    "differs": "of older code, a replay with today's differs",
}


@dataclass(frozen=True)
class Standing:
    """The worth of one results file for one job.

    other: why it is not of this job, "" if it is. code: a key of `WORDS`. seeds, wanted: those it has and should have.
    dirty: made from code that differed from its commit. date: when it was made. early: runs ended at their target and
    not where figures end; enough: no more is asked for (`to_target`). alike: its precision is today's, and its
    provenance has today's entries. lacking: of a job of which some experiments are declared as they were, the others.
    """

    exists: bool = False
    other: str = ""
    code: str = "older"
    seeds: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    dirty: bool = False
    date: str = ""
    early: bool = False
    enough: bool = False
    alike: bool = False
    lacking: tuple[int, ...] = ()

    @property
    def state(self) -> str:
        """One of the words above."""
        if not self.exists:
            return "missing"
        return "other" if self.other else "incomplete" if self.short else self.code

    @property
    def usable(self) -> bool:
        """May a table or figure be made from it?"""
        return self.exists and not self.other and any(s in self.seeds for s in self.wanted)

    @property
    def holds(self) -> bool:
        """Is there nothing to train?"""
        return self.state in ("current", "confirmed")

    @property
    def short(self) -> bool:
        """Are seeds missing, or the ends of runs?"""
        return self.few or (self.early and not self.enough)

    @property
    def few(self) -> bool:
        """Are seeds missing?"""
        return not set(self.wanted) <= set(self.seeds)

    @property
    def have(self) -> int:
        """How many of the seeds that it should have it has."""
        return sum(s in self.seeds for s in self.wanted)

    @property
    def extends(self) -> bool:
        """Can seeds be added to those it has, as if all had been trained with today's code?"""
        return self.exists and not self.other and self._as_today

    @property
    def _as_today(self) -> bool:
        return self.code in ("current", "confirmed") and self.alike and not self.early

    @property
    def changed(self) -> tuple[int, ...]:
        """The experiments that a training puts in the places of others; () if it trains all anew, or adds seeds."""
        return self.lacking if self._as_today and not self.few else ()

    @property
    def more(self) -> tuple[int, ...]:
        """The seeds that a training adds to those it has; () if it trains all anew, or if none are missing."""
        return tuple(s for s in self.wanted if s not in self.seeds) if self.extends else ()

    @property
    def lost(self) -> tuple[int, ...]:
        """Seeds that nobody asks for and that training all anew would throw away."""
        kept = self.exists and not self.other and not self.more
        return tuple(s for s in self.seeds if s not in self.wanted) if kept else ()

    @property
    def words(self) -> str:
        """The state in words, for people; "" for a missing file."""
        if not self.usable:
            return self.other or (f"of other seeds ({', '.join(map(str, self.seeds))})" if self.exists else "")
        gaps = [f"{self.have} of {len(self.wanted)} seeds"] if self.few else []
        gaps += ["followed only to the target"] if self.early else []
        code = [] if gaps and self.code == "current" else [WORDS[self.code]]
        return "; ".join([*gaps, *code, *(["of uncommitted code"] if self.dirty else [])])


def standing(job: Job) -> Standing:
    """What the results file of `job` is worth; the answer changes with the file, the code and the replays."""
    path = Path(job.output)
    if not os.path.lexists(path):
        return Standing(wanted=job.panel.seeds)
    note, why = _found(path)
    if why:
        return Standing(True, why, wanted=job.panel.seeds)
    rest: dict[str, Any] = {
        "seeds": tuple(note["seeds"]),
        "wanted": job.panel.seeds,
        "dirty": any(n["git"].endswith("+") for n in trainings(note)),
        "date": note["date"],
        "alike": precision(note) == settings().precision and "cpu_seconds_of" in note,
    }
    if other := _other(job, note):
        lacking = _lacking(job, note) if other == OTHER_DECLARATION else ()
        words = f"{other} in {len(lacking)} of {len(job.experiments)} settings" if lacking else other
        return Standing(True, words, _code(job, note) if lacking else "current", lacking=lacking, **rest)
    rest["early"] = not all(map(declared, note["experiments"], job.experiments))
    return Standing(True, "", _code(job, note), enough=settings().to_target, **rest)


def part(job: Job) -> Job | None:
    """What a training adds to the results of `job`, as a job: some experiments, or all with the seeds that are missing;
    None if it trains all anew, or nothing."""
    found = standing(job)
    if found.changed:
        return _part(job, found.changed, found.seeds)
    return _part(job, tuple(range(len(job.experiments))), found.more) if found.more else None


@cache
def _part(job: Job, places: tuple[int, ...], seeds: tuple[int, ...]) -> Job:
    return replace(job, experiments=tuple(job.experiments[i] for i in places), panel=replace(job.panel, seeds=seeds))


def _code(job: Job, note: Mapping[str, Any]) -> str:
    if inputs.changed(note.get("read", {})):
        return "older"  # what a user's own code reads is code, too
    return worth(note, code(job.experiments), replays(job.scale).get(f"{job.paper}/{job.name}", {}))


def worth(note: Mapping[str, Any], source: str, replay: Mapping[str, str]) -> str:
    """A key of `WORDS` for a result by its provenance, the digest of the code, and the record of a replay ({}: none).

    Of the trainings that made the result, the one that holds least decides. A replay counts for the training that it
    was made of, and for all if it was made of the result as it is.
    """
    states = [*WORDS]
    replayed = {"yes": "confirmed", "no": "differs"}.get(replay.get("agrees", ""), "older")
    made = trainings(note)
    dates = [training["date"] for training in made]
    # What was replayed was the result as this training left it: all that had been added before was part of it.
    valid = replay.get("code") == source and replay.get("result") in dates
    first = dates.index(replay["result"]) if valid else len(made)
    found = ["current" if t.get("code") == source else replayed if i >= first else "older" for i, t in enumerate(made)]
    return max(found, key=states.index)


def _other(job: Job, note: Mapping[str, Any]) -> str:
    """Why the result is not of this job's declaration, or ""."""
    found = note["experiments"]
    named = tuple(note.get(name) for name in ("scale", "paper", "job"))
    if named != (job.scale, job.paper, job.name):
        return "of another job ({}/{}/{})".format(*named)
    if len(found) != len(job.experiments) or not all(map(_whole_or_early, found, job.experiments)):
        return OTHER_DECLARATION
    # Without a wish the result says under every table how it was computed.
    if os.environ.get("REPRODUCE_PRECISION", precision(note)) != precision(note):
        return f"of another precision ({precision(note)})"
    return ""


def _lacking(job: Job, note: Mapping[str, Any]) -> tuple[int, ...]:
    """The experiments of the job that this provenance of its does not have, if it has others of it; else ()."""
    found = tuple(i for i, e in enumerate(job.experiments) if not any(declared(old, e) for old in note["experiments"]))
    return found if len(found) < len(job.experiments) else ()


def declared(stored: Mapping[str, Any], experiment: Experiment) -> bool:
    """Is this entry of a provenance's `experiments` the declaration of `experiment`?"""
    return stored["labels"] == dict(experiment.labels) and recorded(stored, experiment)


def _whole_or_early(stored: Mapping[str, Any], experiment: Experiment) -> bool:
    return declared(stored, experiment) or declared(stored, experiment.to_target)


def precision(note: Mapping[str, Any]) -> str:
    """The arithmetic that a result was configured with; results from before it was recorded are of float32."""
    return str(note.get("configured_precision", note.get("precision", "float32")))


def provenance(path: str | Path) -> dict[str, Any]:
    """The provenance of a results file; empty if there is no file, or none that can be used, which is then said."""
    return dict(_found(Path(path))[0])


def _found(path: Path) -> tuple[Mapping[str, Any], str]:
    """The provenance of a results file and "", or {} and why it cannot be used."""
    try:
        status = path.stat()
    except OSError:  # none, or a link that leads nowhere
        return _provenance(path, 0, 0) if os.path.lexists(path) else ({}, "no file")
    return _provenance(path, status.st_mtime_ns, status.st_size)


@cache
def _provenance(path: Path, modified: int, size: int) -> tuple[Mapping[str, Any], str]:
    try:
        return reading.result(path)[1], ""
    except reading.Unusable as error:
        reading.say(path, error)
        return {}, str(error)


# --- replays ----------------------------------------------------------------------------------------------------------

REPLAY = (
    *("job", "result", "code", "seeds", "asked", "rounds", "rows", "deviation", "where", "tolerance"),
    *("agrees", "seconds", "processor", "instructions", "date"),
)
"""Columns of the record of replays (docs/architecture.md)."""


def replay_file(scale: str) -> Path:
    """The committed record of the replays of a scale, one line a job."""
    return Path(f"results/{scale}/replay.csv")


def replays(scale: str) -> dict[str, dict[str, str]]:
    """Job ("fedacs/toy2d") -> its line in the record. Of a damaged record, and for damaged lines, none, which is said:
    their results count as not replayed."""
    path = replay_file(scale)
    try:
        return _replays(path, files.read_bytes(path)) if os.path.lexists(path) else {}
    except (OSError, UserError) as error:
        reading.say(path, getattr(error, "strerror", None) or error)
        return {}


@cache
def _replays(path: Path, content: bytes) -> dict[str, dict[str, str]]:
    try:
        lines = _lines(content)
    except reading.Unusable as error:
        reading.say(path, error)
        return {}
    jobs = Counter(line.get("job") for line in lines)
    found = {}
    for i, line in enumerate(lines):
        if jobs[line.get("job")] > 1 or not _is_line(line):
            reading.say(path, f"line {i + 2} is not the record of a replay")
        else:
            found[line["job"]] = line
    return found


def _lines(content: bytes) -> list[dict[str, str]]:
    """The lines of a record of replays, which may be damaged each; Unusable for what is no such record."""
    try:
        rows = csv.DictReader(content.decode().splitlines())
        if tuple(rows.fieldnames or ()) == REPLAY:
            return list(rows)
    except (UnicodeDecodeError, csv.Error):
        pass
    raise reading.Unusable("not a record of replays; restore it, or delete it and replay again")


def _is_line(line: Mapping[str, Any]) -> bool:
    texts = all(isinstance(text, str) and text.isprintable() for text in line.values())
    known = texts and line["agrees"] in ("yes", "no") and re.fullmatch(r"\w+/[\w.-]+", line["job"])
    return bool(known and re.fullmatch("[0-9]{1,9}", line["asked"]) and tuple(line) == REPLAY)


def check_record(scale: str) -> None:
    """UserError if the record of replays of a scale is none: lines that are added would replace what is in it."""
    path = replay_file(scale)
    if path.is_file():
        try:
            _lines(path.read_bytes())
        except (reading.Unusable, OSError) as error:
            raise UserError(f"{path}: {error}") from error


def record_replays(scale: str, new: Iterable[Mapping[str, str]]) -> None:
    """Put the lines of jobs into the record, in the places of their older ones; what `check_record` raises."""
    check_record(scale)
    lines, text = {**replays(scale), **{line["job"]: dict(line) for line in new}}, io.StringIO()
    writer = csv.DictWriter(text, REPLAY, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines[job] for job in sorted(lines))
    files.write_text(replay_file(scale), text.getvalue())


# --- for people -------------------------------------------------------------------------------------------------------


def stamp(standings: Iterable[tuple[str, Standing]]) -> str:
    """What a table or figure must say about the results that it was made from: (panel, standing) each; "" if current.

    Counts per state, of runs that ended at their target, and the panels whose seeds are not all there.
    """
    used = [(panel, s) for panel, s in standings if s.usable]
    phrases = [_count(sum(s.code == state for _, s in used), len(used), WORDS[state]) for state in [*WORDS][1:]]
    phrases.append(_count(sum(s.dirty for _, s in used), len(used), "of uncommitted code"))
    phrases.append(_count(sum(s.early for _, s in used), len(used), "followed only to the target"))
    short = Counter((panel, s.have, len(s.wanted)) for panel, s in used if s.few)
    phrases += [
        f"{panel} has {have} of {want} seeds in {n} result{'s' * (n > 1)}" for (panel, have, want), n in short.items()
    ]
    return "; ".join(filter(None, phrases))


def _count(some: int, all_: int, words: str) -> str:
    if not some:
        return ""
    which = "all" if some == all_ > 1 else "the" if all_ == 1 else f"{some} of {all_}"
    return f"{which} result{'s' * (which != 'the')} {words}"


def tally(jobs: Iterable[Job]) -> str:
    """The results of `jobs`, counted by state: "190 results: 148 current, 42 confirmed; 142 of uncommitted code"."""
    found = [s for s in map(standing, jobs) if s.exists]
    counts = Counter(s.state for s in found)
    states = [f"{counts[state]} {state}" for state in (*WORDS, "incomplete", "other") if counts[state]]
    dirty = sum(s.dirty for s in found)
    text = f"{len(found)} result{'s' * (len(found) != 1)}"
    return f"{text}: {', '.join(states)}" + (f"; {dirty} of uncommitted code" if dirty else "") if found else text
