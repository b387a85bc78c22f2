"""The scoreboard: every claim of every paper with its verdict at one scale.

It reads `results/<scale>/cells/<paper>_<name>.csv` and the papers' printed numbers in `papers/<key>/reported/`, and
nothing else.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import unknown
from reproduce.experiment import PACKAGE, SCALES
from reproduce.report.claims import PRINTED, Claim, ClaimsFile, claims_files, listed
from reproduce.report.observations import read_cells
from reproduce.report.verdicts import VERDICTS, Outcome, evaluate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Verdict:
    """What the runs of one scale say about one claim.

    effect, interval, unit, n: see `verdicts.Outcome`. paper_numbers: whether the claim holds on the paper's own printed
    numbers: holds, fails, or na (nothing printed that the check could read).
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


def scoreboard(scale: str, results: Path = Path("results"), files: Iterable[ClaimsFile] | None = None) -> list[Verdict]:
    """The verdicts of all claims at `scale`, in the order of the claims files."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    verdicts = []
    for file in claims_files() if files is None else files:
        shelf = _Shelf(file, results / scale / "cells")
        verdicts += [_verdict(claim, scale, shelf) for claim in file.claims]
    return verdicts


def paper_numbers(claim: Claim, file: ClaimsFile) -> Outcome:
    """The claim on the numbers that the paper prints; they count as points."""
    return _Shelf(file, Path()).on_printed(claim)


def render_scoreboard(verdicts: Iterable[Verdict]) -> str:
    """The scoreboard as plain text: totals, then a table per paper; what did not run is gathered by its reason."""
    verdicts = list(verdicts)
    by_paper: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_paper.setdefault(v.id.split("/")[0], []).append(v)
    totals: list[tuple[str, ...]] = [("paper", "claims", *VERDICTS)]
    for paper, mine in [*by_paper.items(), ("all", verdicts)]:
        counts = Counter(v.verdict for v in mine)
        totals.append((paper, str(len(mine)), *(str(counts[name]) for name in VERDICTS)))
    lines = _columns(totals)
    for paper, mine in by_paper.items():
        lines += ["", paper, "-" * len(paper)]
        rows = [_row(v) for v in sorted(mine, key=lambda v: VERDICTS.index(v.verdict)) if v.verdict != "not run"]
        if rows:
            lines += _columns([("verdict", "claim", "effect", "95 % interval", "seeds", "printed", "why"), *rows])
        idle: dict[str, list[str]] = {}
        for v in mine:
            if v.verdict == "not run":
                idle.setdefault(v.reason, []).append(v.id.split("/", 1)[1])
        lines += [f"not run, {reason}: {', '.join(names)}" for reason, names in idle.items()]
    return "\n".join(lines) + "\n"


def _row(v: Verdict) -> tuple[str, ...]:
    effect = "" if v.effect is None else f"{v.effect:+.3g} {v.unit}"
    interval = "" if v.interval is None else f"{v.interval[0]:.3g} to {v.interval[1]:.3g}"
    printed = "" if v.paper_numbers == "na" else v.paper_numbers
    return (v.verdict, v.id.split("/", 1)[1], effect, interval, str(v.n) if v.n else "", printed, v.reason)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def to_json(verdicts: Iterable[Verdict]) -> str:
    """A JSON list of objects; null for what is unknown, and for an end of an interval that is not bounded."""

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    rows = []
    for v in verdicts:
        interval = None if v.interval is None else [finite(end) for end in v.interval]
        rows.append({**v.__dict__, "effect": finite(v.effect), "interval": interval})
    return json.dumps(rows, indent=2, allow_nan=False)


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
            if not path.is_file():
                if not printed:
                    return None, f"no cells of {self.file.paper}/{name} (render it first)"
                reason = reason or f"the paper prints no numbers for {name}"
                continue
            if path not in self.read:
                self.read[path] = read_cells(path, self.file.artifacts[name].labels, self.file.metrics)
            frames.append(self.read[path])
        if not frames:
            return None, reason
        return (frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True).fillna("")), ""

    def on_printed(self, claim: Claim) -> Outcome:
        return self.outcome(claim, PRINTED)

    def outcome(self, claim: Claim, scale: str) -> Outcome:
        if scale not in claim.checks:
            return Outcome("not run", reason=f"meant for scale {' and '.join(claim.scales)}")
        check = claim.checks[scale]
        cells, reason = self.cells(claim, check, printed=scale == PRINTED)
        if cells is None:
            return Outcome("not run", reason=reason)
        return evaluate(check, cells, self.file.metrics)


def _verdict(claim: Claim, scale: str, shelf: _Shelf) -> Verdict:
    outcome = shelf.outcome(claim, scale)
    printed = {"reproduced": "holds", "contradicted": "fails"}.get(shelf.on_printed(claim).verdict, "na")
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
        printed,
        claim.expected,
        claim.note,
    )
