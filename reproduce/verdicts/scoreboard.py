"""The scoreboard: every claim of every paper with its verdict at one scale.

It reads `results/<scale>/cells/<paper>_<name>.csv` and the papers' printed numbers in `papers/<key>/reported/`, and
nothing else.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from reproduce import store
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import artifacts, papers, printed_settings, total
from reproduce.errors import unknown
from reproduce.report.histories import one_split
from reproduce.report.names import canonical
from reproduce.verdicts import readings, scope, verdict
from reproduce.verdicts.claims import PRINTED, Check, Claim, ClaimsFile, claims_files
from reproduce.verdicts.judging import Unit
from reproduce.verdicts.observations import observed, read_cells
from reproduce.verdicts.readings import Held, Rows
from reproduce.verdicts.scope import CHECK, EMPIRICAL, GROUNDS, SUBSTITUTE


@dataclass(frozen=True, kw_only=True)
class Verdict(verdict.Outcome):
    """The verdict of one scale's runs on one claim.

    rests_on: one of `scope.GROUNDS`, "" if not run, or `scope.CHECK` for what is no claim. ours: it requires a
    number that is not the statement's. unasked: it is not asked at this scale, for the reason given.
    source: what of the paper it was read off, see `Claim`.
    paper_numbers: what the paper's own printed numbers say
    of the claim: supported, refuted, or na (nothing printed that the check could read). printed: the deciding one of
    these numbers, as `measured` is that of our runs. look: see `judging.level_at`. one_split: some of the runs behind
    it have one split of the data for all seeds.
    """

    id: str
    artifact: str
    statement: str = ""
    paper_numbers: str = "na"
    note: str = ""
    rests_on: str = ""
    ours: bool = False
    unasked: bool = False
    printed: verdict.Measured | None = None
    look: int = 1
    source: str = "sentence"
    one_split: bool = False

    @property
    def paper(self) -> str:
        return self.id.split("/")[0]

    @property
    def name(self) -> str:
        """The name of the claim in its paper."""
        return self.id.split("/", 1)[1]

    @property
    def names(self) -> Mapping[str, str]:
        """The names of settings and algorithms in the artifact."""
        declared = _artifacts().get(self.artifact)
        return declared.names if declared else {}


def scoreboard(scale: str, results: Path = Path("results"), files: Iterable[ClaimsFile] | None = None) -> list[Verdict]:
    """The verdicts of all claims at `scale`, in the order of the claims files."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    shelves = [Shelf(file, results / scale / "cells") for file in (claims_files() if files is None else files)]
    pairs = [(claim, shelf) for shelf in shelves for claim in shelf.file.claims]
    shown = tqdm(pairs, f"claims at {scale} scale", leave=False, disable=None)  # None: only on a terminal
    return [_verdict(claim, scale, shelf) for claim, shelf in shown]


def claims(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts on claims, which runs can support or refute."""
    return [v for v in verdicts if v.rests_on != CHECK]


def checks(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts on identities and configuration, which hold or fail whatever is trained."""
    return [v for v in verdicts if v.rests_on == CHECK]


def counts(verdicts: Iterable[Verdict]) -> Counter[str]:
    """The number of claims by verdict, in every place that shows it; claims out of scope count as not run."""
    return Counter(v.verdict for v in claims(verdicts))


def headline(scale: str, verdicts: Sequence[Verdict], results: Path = Path("results")) -> list[str]:
    """The sentences of the scoreboard, coverage first; only claims that rest on training are counted."""
    tally, run = counts(verdicts), sum(paper.with_numbers(scale, results) for paper in papers().values())
    lines = [
        f"{total()} of the papers' tables and figures are part of this package; {run} have numbers at this scale.",
        f"{sum(tally[word] for word in verdict.JUDGED)} of {tally.total()} claims are evaluated.",
    ]
    lines += [f"On {ground}: {breakdown(c, ground)}." for ground, c in by_ground(verdicts) if ground in EMPIRICAL and c]
    return [*lines, f"{checked(verdicts)}."] if checks(verdicts) else lines


def checked(verdicts: Iterable[Verdict]) -> str:
    """ "18 checks, true or false whatever is trained: 16 supported, 1 refuted, 1 not run"."""
    tally = Counter(v.verdict for v in checks(verdicts))
    return f"{tally.total()} checks, true or false whatever is trained: {breakdown(tally) or 'none'}"


def breakdown(tally: Counter[str], ground: str = "") -> str:
    """ "5 supported, 2 refuted", all on one ground if it is given."""
    return ", ".join(f"{tally[w]} {w.removesuffix(f' on {ground}')}" for w in verdict.VERDICTS if tally[w])


def by_ground(verdicts: Iterable[Verdict]) -> list[tuple[str, Counter[str]]]:
    """Pairs (ground, counts by verdict of the claims that rest on it), the strongest ground first."""
    board = list(verdicts)
    return [(ground, counts(v for v in board if v.rests_on == ground)) for ground in reversed(GROUNDS)]


@cache
def judged(artifact: str, scale: str, results: Path) -> list[Unit]:
    """The settings of all claims that read the artifact, with the intervals that their verdicts rest on. results: an
    absolute path."""

    def reads(claim: Claim) -> bool:
        return any(artifact in claim.read_by(check) for check in claim.checks.values())

    files = [replace(f, claims=tuple(filter(reads, f.claims))) for f in claims_files()]
    return [u for v in scoreboard(scale, results, files) for u in v.each if u.random]


def to_json(verdicts: Iterable[Verdict]) -> str:
    """A JSON list of objects; null for what is unknown, and for an end of an interval that is not bounded."""
    data = [store.finite({"id": v.id, **asdict(replace(v, each=()))}) for v in verdicts]
    return json.dumps(data, indent=2, allow_nan=False)


@dataclass(eq=False)
class Shelf:
    """The cells of one paper at one scale, each file read once."""

    file: ClaimsFile
    folder: Path
    read: dict[Path, pd.DataFrame] = field(default_factory=dict)

    def cells(self, claim: Claim, check: Check, printed: bool, under: Sequence[Held] = ()) -> tuple[Rows | None, str]:
        """The observations of the artifact and of those it is compared `with`, or None and the reason. under: readings
        whose cells stand in the place of those of the artifact."""
        frames, reason = [], ""
        for artifact in claim.read_by(check):
            paper, name = artifact.split("/")
            of_paper = self.file.path.parent / f"reported/{name}.csv"
            path = of_paper if printed else self.folder / f"{paper}_{name}.csv"
            if os.path.lexists(path):
                try:
                    frames.append(self._rows(artifact, path, printed, under if artifact == claim.artifact else ()))
                except store.Unusable as error:
                    store.say(path, error)
                    return None, f"{path.name} is not used ({error}); render {artifact} again"
            elif printed:
                reason = reason or f"the paper prints no numbers for {name}"
            else:
                return None, f"no values of {artifact} (render it first)"
        if not frames:
            return None, reason
        return (frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True).fillna("")), ""

    def _rows(self, artifact: str, path: Path, printed: bool, under: Sequence[Held]) -> pd.DataFrame:
        declared = _artifacts().get(artifact)
        known = declared.labels if declared else (), self.file.metrics
        if under:
            return observed(readings.under(artifact, store.cells(path), under), *known)
        if path not in self.read:
            self.read[path] = read_cells(path, *known) if printed else observed(store.cells(path), *known)
        return self.read[path]

    @cached_property
    def readings(self) -> list[Held]:
        """The readings that name claims, of those that have cells."""
        of_paper = readings.register(self.file.path.parent)["readings"]
        named = [of for of in of_paper if "claims" in of and "tried" not in of]
        return readings.held(self.file.paper, named, self.folder)

    def outcome(self, claim: Claim, scale: str) -> verdict.Outcome:
        """The outcome at a scale or on the printed numbers, under all readings that the claim has, and at paper scale
        under those that the printed numbers need, too."""
        if scale not in claim.checks:
            return verdict.Outcome(verdict.NOT_RUN, reason=claim.unasked.get(scale, f"out of scope at {scale} scale"))
        outcomes = {name: self._judge(claim, check, scale) for name, check in claim.under(scale).items()}
        declared = verdict.under_readings(claim.about, outcomes)
        readings = [h for h in self.readings if claim.id.split("/")[1] in h.of["claims"]] if scale == "paper" else []
        if not readings:
            return declared
        return verdict.beside_reading(declared, self._judge(claim, claim.checks[scale], scale, readings))

    def _judge(self, claim: Claim, check: Check, scale: str, under: Sequence[Held] = ()) -> verdict.Outcome:
        cells, reason = self.cells(claim, check, scale == PRINTED, under)
        if cells is None:
            return verdict.Outcome(verdict.NOT_RUN, reason=reason)
        needed, look = self._needed(claim, check, scale), claim.looks.get(scale, 1)
        return verdict.evaluate(check, cells, self.file.metrics, needed, look)

    def _needed(self, claim: Claim, check: Check, scale: str) -> list[pd.DataFrame]:
        """The settings that the scale declares; at paper scale also those of the paper's own table."""
        needed = [] if scale == PRINTED else [_declared(a.id, scale) for a in artifacts_read(claim, check)]
        of_paper = self.cells(claim, check, printed=True)[0] if scale == "paper" else None
        return [frame for frame in (*needed, of_paper) if frame is not None and len(frame)]


@cache
def _artifacts() -> dict[str, Artifact]:
    return {a.id: a for a in artifacts()}


@cache
def _declared(artifact: str, scale: str) -> pd.DataFrame:
    """The settings of the artifact's experiments, without algorithms that the paper does not print."""
    frame, printed = scope.declared(_artifacts()[artifact].panels(scale)), printed_settings(*artifact.split("/"))
    shown = {canonical(row["algorithm"]) for row in printed if "algorithm" in row}
    return frame[frame["algorithm"].isin(shown)] if shown and "algorithm" in frame else frame


def artifacts_read(claim: Claim, check: Check) -> list[Artifact]:
    """The artifacts whose cells a check reads: its own, and those it is made `with`."""
    return [_artifacts()[i] for i in claim.read_by(check) if i in _artifacts()]


def _verdict(claim: Claim, scale: str, shelf: Shelf) -> Verdict:
    outcome, printed, rests_on, once = shelf.outcome(claim, scale), shelf.outcome(claim, PRINTED), "", False
    if claim.construction:
        rests_on = CHECK
    elif outcome.verdict != verdict.NOT_RUN:
        check = claim.checks[scale]
        read = artifacts_read(claim, check)
        rests_on = scope.rests_on(check, read, scale)
        once = any(one_split(e) for _, e in scope.read(check, read, scale))
        if rests_on == SUBSTITUTE:
            outcome = replace(outcome, verdict=verdict.ON_SUBSTITUTE.get(outcome.verdict, outcome.verdict))
    return Verdict(
        id=claim.id,
        artifact=claim.artifact,
        statement=claim.statement,
        paper_numbers=printed.verdict if printed.verdict in (verdict.SUPPORTED, verdict.REFUTED) else "na",
        note=claim.note,
        rests_on=rests_on,
        ours=claim.ours.get(scale, False),
        unasked=scale not in claim.checks,
        printed=printed.measured,
        look=claim.looks.get(scale, 1),
        source=claim.source,
        one_split=once,
        **vars(outcome),
    )
