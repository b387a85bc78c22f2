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

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import PACKAGE, SCALES, Experiment
from reproduce.errors import unknown
from reproduce.papers import coverage as papers
from reproduce.store import reading
from reproduce.verdicts import scope
from reproduce.verdicts.checks import listed, parts
from reproduce.verdicts.claims import PRINTED, Claim, ClaimsFile, claims_files
from reproduce.verdicts.observations import observed, read_cells
from reproduce.verdicts.scope import EMPIRICAL, GROUNDS
from reproduce.verdicts.verdict import VERDICTS, Measured, Outcome, Prospect, evaluate, under_readings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Verdict:
    """What the runs of one scale say about one claim.

    effect, interval, unit, n: see `verdicts.Outcome`. rests_on: one of `scope.GROUNDS`, "" if not run. covers: of how
    many of the paper's settings it speaks. paper_numbers: whether the claim holds on the paper's own printed numbers:
    holds, fails, or na (nothing printed that the check could read). measured, printed: the deciding number of our runs,
    and that of the numbers that the paper prints. prospect, open_because: see `verdicts.Outcome`.
    """

    id: str
    artifact: str
    statement: str
    verdict: str
    effect: float | None
    unit: str
    interval: tuple[float, float] | None
    n: int
    reason: str
    paper_numbers: str
    expected: str = ""
    note: str = ""
    rests_on: str = ""
    covers: str = ""
    measured: Measured | None = None
    printed: Measured | None = None
    prospect: Prospect | None = None
    open_because: str = ""


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
    verdicts = []
    for file in claims_files() if files is None else files:
        shelf = _Shelf(file, results / scale / "cells")
        verdicts += [_verdict(claim, scale, shelf) for claim in file.claims]
    return verdicts


def coverage(scale: str, results: Path = Path("results")) -> list[Tally]:
    """What exists of the papers' tables and figures, paper by paper."""
    return [Tally(c.paper, len(c.printed), len(c.declared), len(c.made(scale, results))) for c in papers.coverage()]


def headline(found: Sequence[Tally], verdicts: Sequence[Verdict]) -> list[str]:
    """What the scoreboard says, coverage first; only what rests on training is counted, on stand-ins separately."""
    has, made, run = (sum(getattr(c, name) for c in found) for name in ("has", "made", "run"))
    lines = [
        f"{made} of the papers' {has} tables and figures are part of this package; {run} have numbers at this scale.",
        f"{sum(v.verdict != 'not run' for v in verdicts)} of {len(verdicts)} claims are judged.",
    ]
    for ground in reversed(EMPIRICAL):
        counts = Counter(v.verdict for v in verdicts if v.rests_on == ground)
        said = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name != "not run")
        lines.append(f"On {ground}: {said}.")
    return lines


def by_ground(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    """Rows of (ground, claims judged, then a count per verdict but `not run`)."""
    judged = [v for v in verdicts if v.verdict != "not run"]
    rows = []
    for ground in reversed(GROUNDS):
        counts = Counter(v.verdict for v in judged if v.rests_on == ground)
        rows.append((ground, str(counts.total()), *(str(counts[name]) for name in VERDICTS if name != "not run")))
    return rows


def paper_numbers(claim: Claim, file: ClaimsFile) -> Outcome:
    """The claim on the numbers that the paper prints; they count as points."""
    return _Shelf(file, Path()).on_printed(claim)


def reads(claim: Claim, scale: str) -> tuple[set[str], list[Experiment]]:
    """The artifacts (ids) and experiments that the claim reads at a scale that it is meant for, under any reading."""
    checks = [claim.checks[scale]] if claim.readings is None else [*claim.readings.checks[scale].values()]
    experiments = [e for check in checks for e in scope.experiments(check, _read(claim, check), scale)]
    return {a.id for check in checks for a in _read(claim, check)}, experiments


def to_json(verdicts: Iterable[Verdict]) -> str:
    """A JSON list of objects; null for what is unknown, and for an end of an interval that is not bounded."""
    return json.dumps([_finite(asdict(v)) for v in verdicts], indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Shelf:
    """The cells of one paper at one scale, each file read once."""

    def __init__(self, file: ClaimsFile, folder: Path, package: Path = PACKAGE) -> None:
        self.file = file
        self.folder = folder
        self.reported = file.path.parent / "reported"
        self.read: dict[Path, pd.DataFrame] = {}

    def cells(self, claim: Claim, check: Mapping[str, Any], printed: bool) -> tuple[pd.DataFrame | None, str]:
        """The observations of the artifact and of those it is compared `with`, or None and the reason."""
        import pandas as pd

        frames, reason = [], ""
        for name in [claim.artifact.split("/")[1], *listed(check.get("with", []))]:
            path = self.reported / f"{name}.csv" if printed else self.folder / f"{self.file.paper}_{name}.csv"
            if not os.path.lexists(path):
                if not printed and f"{self.file.paper}/{name}" not in _artifacts():
                    return None, f"{name} is not part of this package yet"
                if not printed:
                    return None, f"no cells of {self.file.paper}/{name} (render it first)"
                reason = reason or f"the paper prints no numbers for {name}"
                continue
            known = self.file.artifacts[name].labels, self.file.metrics
            try:
                if path not in self.read:
                    self.read[path] = read_cells(path, *known) if printed else observed(reading.cells(path), *known)
            except reading.Unusable as error:
                reading.say(path, error)
                return None, f"{path.name} is not used ({error}); render {self.file.paper}/{name} again"
            frames.append(self.read[path])
        if not frames:
            return None, reason
        return (frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True).fillna("")), ""

    def on_printed(self, claim: Claim) -> Outcome:
        return self.outcome(claim, PRINTED)

    def outcome(self, claim: Claim, scale: str) -> Outcome:
        """The outcome at a scale or on the printed numbers, under all readings that the claim has."""
        if scale not in claim.checks:
            return Outcome("not run", reason=f"meant for scale {' and '.join(claim.scales)}")
        if scale == PRINTED or claim.readings is None:
            return self._judge(claim, claim.checks[scale], scale)
        under = {name: self._judge(claim, check, scale) for name, check in claim.readings.checks[scale].items()}
        return under_readings(claim.readings.about, under)

    def _judge(self, claim: Claim, check: Mapping[str, Any], scale: str) -> Outcome:
        cells, reason = self.cells(claim, check, printed=scale == PRINTED)
        if cells is None:
            return Outcome("not run", reason=reason)
        wanted = () if scale == PRINTED else self.wanted(claim, check, scale)
        return evaluate(check, cells, self.file.metrics, wanted)

    def wanted(self, claim: Claim, check: Mapping[str, Any], scale: str) -> list[pd.DataFrame]:
        """The settings that the scale declares; at paper scale also those of the paper's own table."""
        declared = [self.declared(a, scale) for a in _read(claim, check)]
        printed = self.cells(claim, check, printed=True)[0] if scale == "paper" else None
        return [frame for frame in (*declared, printed) if frame is not None and len(frame)]

    def declared(self, artifact: Artifact, scale: str) -> pd.DataFrame:
        """The settings of the artifact's experiments, without algorithms that it does not show."""
        frame = _declared(artifact.id, scale)
        shown = self.file.artifacts[artifact.name].algorithms
        return frame[frame["algorithm"].isin(shown)] if "algorithm" in frame else frame

    def covers(self, claim: Claim, scale: str) -> str:
        """Of how many settings of the paper's table, or of its runs if it prints no numbers, the claim speaks."""
        cells, _ = self.cells(claim, claim.checks[scale], printed=False)
        paper, _ = self.cells(claim, claim.checks[PRINTED], printed=True)
        if paper is None or not len(scope.asked(parts(claim.checks[PRINTED])[0], paper)):
            declared = [self.declared(a, "paper") for a in _read(claim, claim.checks[PRINTED])]
            paper = next((frame for frame in declared if len(frame)), None)
        if cells is None or paper is None:
            return ""
        return scope.coverage(claim.checks[scale], cells, claim.checks[PRINTED], paper)


@cache
def _artifacts() -> dict[str, Artifact]:
    from reproduce.papers import artifacts

    return {a.id: a for a in artifacts()}


@cache
def _declared(artifact: str, scale: str) -> pd.DataFrame:
    return scope.declared(_artifacts()[artifact].panels(scale))


def _read(claim: Claim, check: Mapping[str, Any]) -> list[Artifact]:
    """The artifacts whose cells a check reads."""
    paper, name = claim.artifact.split("/")
    ids = [f"{paper}/{n}" for n in (name, *listed(check.get("with", [])))]
    return [_artifacts()[i] for i in ids if i in _artifacts()]


def _rests_on(claim: Claim, scale: str) -> str:
    if claim.construction:
        return GROUNDS[0]
    return scope.rests_on(claim.checks[scale], _read(claim, claim.checks[scale]), scale)


def _verdict(claim: Claim, scale: str, shelf: _Shelf) -> Verdict:
    outcome, printed = shelf.outcome(claim, scale), shelf.on_printed(claim)
    judged = outcome.verdict != "not run"
    return Verdict(
        claim.id,
        claim.artifact,
        claim.statement,
        outcome.verdict,
        outcome.effect,
        outcome.unit,
        outcome.interval,
        outcome.n,
        outcome.reason,
        {"reproduced": "holds", "contradicted": "fails"}.get(printed.verdict, "na"),
        claim.expected,
        claim.note,
        _rests_on(claim, scale) if judged else "",
        shelf.covers(claim, scale) if judged and not claim.construction else "",
        outcome.measured,
        printed.measured,
        outcome.prospect,
        outcome.open_because,
    )
