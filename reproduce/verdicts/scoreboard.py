"""The scoreboard: every claim of every paper with its verdict at one scale.

It reads `results/<scale>/cells/<paper>_<name>.csv` and the papers' printed numbers in `papers/<key>/reported/`, and
nothing else.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, printed_settings
from reproduce.declare.experiment import SCALES
from reproduce.errors import unknown
from reproduce.papers import coverage as papers
from reproduce.report.names import canonical
from reproduce.store import reading
from reproduce.text import counted as number_of
from reproduce.verdicts import scope
from reproduce.verdicts.checks import Check, listed, parts, yes_or_no
from reproduce.verdicts.claims import PRINTED, Claim, ClaimsFile, claims_files
from reproduce.verdicts.judging import least_seeds
from reproduce.verdicts.observations import observed, read_cells
from reproduce.verdicts.scope import CHECK, EMPIRICAL, GROUNDS
from reproduce.verdicts.verdict import JUDGED, VERDICTS, Measured, Outcome, evaluate, under_readings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Verdict(Outcome):
    """What the runs of one scale say about one claim.

    rests_on: one of `scope.GROUNDS`, "" if not run, or `scope.CHECK` for what is no claim. ours: the numbers that it
    requires and that are not the statement's, in words. hopeless: see `too_few`. unasked: it is not asked at this
    scale, for the reason given. covers: of how many of the paper's settings it speaks. paper_numbers: whether the claim
    holds on the paper's own printed numbers: holds, fails, or na (nothing printed that the check could read). printed:
    the deciding one of these numbers, as `measured` is that of our runs. look: see `judging.level_at`.
    """

    id: str
    artifact: str
    statement: str = ""
    paper_numbers: str = "na"
    note: str = ""
    rests_on: str = ""
    ours: str = ""
    hopeless: str = ""
    unasked: bool = False
    covers: str = ""
    printed: Measured | None = None
    look: int = 1

    @property
    def paper(self) -> str:
        return self.id.split("/")[0]

    @property
    def name(self) -> str:
        """That of the claim in its paper."""
        return self.id.split("/", 1)[1]

    @property
    def names(self) -> Mapping[str, str]:
        """What settings and algorithms are called in the artifact."""
        found = _artifacts().get(self.artifact)
        return found.names if found else {}


@dataclass(frozen=True)
class Tally:
    """Tables and figures of a paper: how many it has, how many this package makes, how many have cells at a scale."""

    paper: str
    has: int
    made: int
    run: int


def scoreboard(scale: str, results: Path = Path("results"), files: Iterable[ClaimsFile] | None = None) -> list[Verdict]:
    """The verdicts of all claims at `scale`, in the order of the claims files."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    from tqdm import tqdm

    shelves = [Shelf(file, results / scale / "cells") for file in (claims_files() if files is None else files)]
    asked = [(claim, shelf) for shelf in shelves for claim in shelf.file.claims]
    shown = tqdm(asked, f"claims at {scale} scale", leave=False, disable=None)  # None: only on a terminal
    return [_verdict(claim, scale, shelf) for claim, shelf in shown]


def claims(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those on claims, which runs can support or refute."""
    return [v for v in verdicts if v.rests_on != CHECK]


def checks(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those on identities and configuration, which are so or not whatever is trained."""
    return [v for v in verdicts if v.rests_on == CHECK]


def coverage(scale: str, results: Path = Path("results")) -> list[Tally]:
    """What exists of the papers' tables and figures, paper by paper."""
    return [Tally(c.paper, len(c.printed), len(c.declared), len(c.made(scale, results))) for c in papers.coverage()]


def headline(found: Sequence[Tally], verdicts: Sequence[Verdict]) -> list[str]:
    """What the scoreboard says, coverage first; only what rests on training is counted, on stand-ins separately."""
    has, made, run = (sum(getattr(c, name) for c in found) for name in ("has", "made", "run"))
    lines = [
        f"{made} of the papers' {has} tables and figures are part of this package; {run} have numbers at this scale.",
        f"{counted(verdicts)} claims are judged.",
    ]
    for ground, _, *counts in by_ground(verdicts):
        said = ", ".join(f"{count} {name}" for count, name in zip(counts, JUDGED, strict=True))
        lines += [f"On {ground}: {said}."] if ground in EMPIRICAL else []
    return [*lines, *([f"{checked(verdicts)}."] if checks(verdicts) else [])]


def counted(verdicts: Iterable[Verdict]) -> str:
    """ "70 of 174": how many claims are judged."""
    mine = claims(verdicts)
    return f"{sum(v.verdict in JUDGED for v in mine)} of {len(mine)}"


def checked(verdicts: Iterable[Verdict]) -> str:
    """ "18 checks, true or false whatever is trained: 16 holds, 1 fails, 1 not run"."""
    found = Counter(v.verdict for v in checks(verdicts))
    said = ", ".join(f"{found[word]} {word}" for word in VERDICTS if found[word])
    return f"{found.total()} checks, true or false whatever is trained: {said or 'none'}"


def by_ground(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    """Rows of (ground, claims judged, then a count per verdict but `not run`)."""
    counts = {ground: Counter[str]() for ground in reversed(GROUNDS)}
    for v in (v for v in claims(verdicts) if v.rests_on):
        counts[v.rests_on][v.verdict] += 1
    return [(ground, str(c.total()), *(str(c[name]) for name in JUDGED)) for ground, c in counts.items()]


def too_few(file: ClaimsFile, claim: Claim, scale: str) -> str:
    """ "cannot be decided with 3 seeds: 6 are needed" of a claim of a file, if that holds for all its parts, whatever
    their runs say; else ""."""
    if claim.construction or scale not in claim.checks:
        return ""
    asked = [_seeds(file, claim, part, scale) for check in claim.under(scale) for part in parts(check)]
    if not all(seeds < needed for seeds, needed in asked):
        return ""
    seeds, needed = map(max, zip(*asked, strict=True))
    return f"cannot be decided with {number_of(seeds, 'seed')}: {needed} are needed"


def _seeds(file: ClaimsFile, claim: Claim, part: Check, scale: str) -> tuple[int, int]:
    """The most seeds that a panel declares which a part of a claim reads, and the fewest that can decide it."""
    points = {name for name, metric in file.metrics.items() if metric.point}
    read = scope.read(part, artifacts_read(claim, part), scale)
    if not read or part.get("exact") or part.get("is") == "absent" or {*listed(part["metric"])} <= points:
        return 0, 0  # it needs none
    return max(len(panel.seeds) for panel, _ in read), least_seeds(claim.looks.get(scale, 1), yes_or_no(part))


def to_json(verdicts: Iterable[Verdict]) -> str:
    """A JSON list of objects; null for what is unknown, and for an end of an interval that is not bounded."""
    return json.dumps([_finite({"id": v.id, **asdict(v)}) for v in verdicts], indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Shelf:
    """The cells of one paper at one scale, each file read once."""

    def __init__(self, file: ClaimsFile, folder: Path) -> None:
        self.file = file
        self.folder = folder
        self.read: dict[Path, pd.DataFrame] = {}

    def cells(self, claim: Claim, check: Check, printed: bool) -> tuple[pd.DataFrame | None, str]:
        """The observations of the artifact and of those it is compared `with`, or None and the reason."""
        import pandas as pd

        frames, reason = [], ""
        for name in [claim.artifact.split("/")[1], *listed(check.get("with", []))]:
            of_paper = self.file.path.parent / f"reported/{name}.csv"
            path = of_paper if printed else self.folder / f"{self.file.paper}_{name}.csv"
            if os.path.lexists(path):
                try:
                    frames.append(self._rows(name, path, printed))
                except reading.Unusable as error:
                    reading.say(path, error)
                    return None, f"{path.name} is not used ({error}); render {self.file.paper}/{name} again"
            elif printed:
                reason = reason or f"the paper prints no numbers for {name}"
            else:
                return None, f"no cells of {self.file.paper}/{name} (render it first)"
        if not frames:
            return None, reason
        return (frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True).fillna("")), ""

    def _rows(self, name: str, path: Path, printed: bool) -> pd.DataFrame:
        if path not in self.read:
            artifact = _artifacts().get(f"{self.file.paper}/{name}")
            known = artifact.labels if artifact else (), self.file.metrics
            self.read[path] = read_cells(path, *known) if printed else observed(reading.cells(path), *known)
        return self.read[path]

    def outcome(self, claim: Claim, scale: str) -> Outcome:
        """The outcome at a scale or on the printed numbers, under all readings that the claim has."""
        if scale not in claim.checks:
            return Outcome("not run", reason=claim.unasked.get(scale, f"not asked at {scale} scale"))
        if scale == PRINTED or claim.readings is None:
            return self._judge(claim, claim.checks[scale], scale)
        under = {name: self._judge(claim, check, scale) for name, check in claim.readings.checks[scale].items()}
        return under_readings(claim.readings.about, under)

    def _judge(self, claim: Claim, check: Check, scale: str) -> Outcome:
        cells, reason = self.cells(claim, check, printed=scale == PRINTED)
        if cells is None:
            return Outcome("not run", reason=reason)
        return evaluate(check, cells, self.file.metrics, self._wanted(claim, check, scale), claim.looks.get(scale, 1))

    def _wanted(self, claim: Claim, check: Check, scale: str) -> list[pd.DataFrame]:
        """The settings that the scale declares; at paper scale also those of the paper's own table."""
        wanted = [] if scale == PRINTED else [self._declared(a, scale) for a in artifacts_read(claim, check)]
        of_paper = self.cells(claim, check, printed=True)[0] if scale == "paper" else None
        return [frame for frame in (*wanted, of_paper) if frame is not None and len(frame)]

    def _declared(self, artifact: Artifact, scale: str) -> pd.DataFrame:
        """The settings of the artifact's experiments, without algorithms that the paper does not print."""
        frame = _declared(artifact.id, scale)
        shown = {
            canonical(row["algorithm"]) for row in printed_settings(artifact.paper, artifact.name) if "algorithm" in row
        }
        return frame[frame["algorithm"].isin(shown)] if shown and "algorithm" in frame else frame

    def covers(self, claim: Claim, scale: str) -> str:
        """Of how many settings of the paper's table, or of its runs if it prints no numbers, the claim speaks."""
        check, in_print = claim.checks[scale], claim.checks[PRINTED]
        cells, paper = self.cells(claim, check, printed=False)[0], self.cells(claim, in_print, printed=True)[0]
        if paper is None or not len(scope.asked(parts(in_print)[0], paper)):
            declared = [self._declared(a, "paper") for a in artifacts_read(claim, in_print)]
            paper = next((frame for frame in declared if len(frame)), None)
        return "" if cells is None or paper is None else scope.coverage(check, cells, in_print, paper)


@cache
def _artifacts() -> dict[str, Artifact]:
    from reproduce.papers import artifacts

    return {a.id: a for a in artifacts()}


@cache
def _declared(artifact: str, scale: str) -> pd.DataFrame:
    return scope.declared(_artifacts()[artifact].panels(scale))


def artifacts_read(claim: Claim, check: Check) -> list[Artifact]:
    """The artifacts whose cells a check reads: its own, and those it is made `with`."""
    paper, name = claim.artifact.split("/")
    ids = [f"{paper}/{n}" for n in (name, *listed(check.get("with", [])))]
    return [_artifacts()[i] for i in ids if i in _artifacts()]


def _verdict(claim: Claim, scale: str, shelf: Shelf) -> Verdict:
    outcome, printed, rests_on, covers = shelf.outcome(claim, scale), shelf.outcome(claim, PRINTED), "", ""
    if claim.construction:
        rests_on = CHECK
    elif outcome.verdict != "not run":
        check = claim.checks[scale]
        rests_on, covers = scope.rests_on(check, artifacts_read(claim, check), scale), shelf.covers(claim, scale)
    return Verdict(
        id=claim.id,
        artifact=claim.artifact,
        statement=claim.statement,
        paper_numbers=printed.verdict if printed.verdict in ("holds", "fails") else "na",
        note=claim.note,
        rests_on=rests_on,
        ours=claim.ours.get(scale, ""),
        hopeless=too_few(shelf.file, claim, scale),
        unasked=scale not in claim.checks,
        covers=covers,
        printed=printed.measured,
        look=claim.looks.get(scale, 1),
        **vars(outcome),
    )
