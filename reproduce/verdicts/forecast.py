"""Before a claim is asked: the chance to decide it if the paper were exactly right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import TypeAlias

from reproduce.verdicts import power
from reproduce.verdicts.checks import listed, parts
from reproduce.verdicts.claims import PRINTED, Claim, ClaimsFile, claims_files
from reproduce.verdicts.judging import Unit
from reproduce.verdicts.power import Design, Setting
from reproduce.verdicts.scoreboard import Shelf, declared_seeds

Usual: TypeAlias = Callable[[str], float | None]
"""The spread that is usual for numbers of a unit."""


@dataclass(frozen=True)
class Forecast:
    """What the declared runs of a claim can decide.

    seeds: the fewest of a setting, 0 if none is random. chance: that the claim is decided if the paper is exactly
    right; None where there are no numbers to go by. wanted: where it is less than one half, the seeds in every setting
    with which it is; None beyond `power.MOST`. truth: the numbers that are taken to be right. spread: `measured`, or
    `guess`. judged: has it numbers of ours? look: how often was it judged? able: could these, whatever they had said,
    have decided for it, and against it?
    """

    claim: str
    artifact: str
    seeds: int
    chance: float | None
    wanted: int | None
    truth: str
    spread: str
    judged: bool
    look: int
    able: tuple[bool, bool]


def forecasts(
    scale: str, claims: Collection[str], results: Path = Path("results"), files: Iterable[ClaimsFile] | None = None
) -> list[Forecast]:
    """Those of `claims` (ids) that are meant for the scale, in the order of the claims files."""
    found, second = [], "reduced" if scale == "paper" else "paper"
    for file in claims_files() if files is None else files:
        if not any(c.id in claims for c in file.claims):
            continue
        shelf, other = (Shelf(file, results / s / "cells") for s in (scale, second))
        usual = _usual(
            (shelf.designs(c, scale) for c in file.claims if scale in c.scales),
            (other.designs(c, second) for c in file.claims if second in c.scales),
        )
        mine = [c for c in file.claims if c.id in claims and scale in c.scales]
        found += [_forecast(c, scale, shelf, shelf.designs(c, scale), usual) for c in mine]
    return found


def _usual(here: Iterable[Sequence[Design | None]], elsewhere: Iterable[Sequence[Design | None]]) -> Usual:
    """The median spread of a paper's numbers by their unit: at this scale, else at another, both read when needed."""
    mine, others = cache(lambda: _medians(here)), cache(lambda: _medians(elsewhere))
    return lambda unit: mine()[unit] if unit in mine() else others().get(unit)


def _medians(designs: Iterable[Sequence[Design | None]]) -> dict[str, float]:
    """The median spread of a paper's numbers, by their unit."""
    seen: dict[str, list[float]] = {}
    for design in (part for each in designs for part in each if part):
        seen.setdefault(design.unit, []).extend(s.spread for s in design.settings if s.spread is not None)
    return {unit: median(spreads) for unit, spreads in seen.items() if spreads}


def _forecast(claim: Claim, scale: str, shelf: Shelf, ours: Sequence[Design | None], usual: Usual) -> Forecast:
    seeds, printed = declared_seeds(claim, scale), shelf.designs(claim, PRINTED)
    judged = [design for design in ours if design]
    points = shelf.file.artifacts[claim.artifact.split("/")[1]].points
    assumed, truths, guessed = [], set[str](), False
    for check, mine, theirs in zip(parts(claim.checks[scale]), ours, printed, strict=False):
        design = mine or (theirs and _planned(theirs, seeds, set(listed(check["metric"])) <= set(points)))
        if design is None:
            continue
        units = [s.unit for s in theirs.settings] if theirs else []
        settings, truth = _if_right(design.settings, units)
        unknown = [s.kind == "normal" and s.spread is None for s in settings]
        settings = [replace(s, spread=usual(design.unit)) if u else s for s, u in zip(settings, unknown, strict=True)]
        settings = [replace(s, seeds=max(s.seeds, seeds)) if s.unit.random else s for s in settings]
        assumed.append(replace(design, settings=tuple(settings)))
        guessed, truths = guessed or any(unknown), truths | {truth}
    random = [s for design in assumed for s in design.settings if s.kind != "sure"]
    known = assumed and all(s.kind != "normal" or s.spread is not None for s in random)
    chance = sum(power.chance(assumed)) if known else None
    more = power.enough(assumed) if chance is not None and chance < power.HALF else None
    return Forecast(
        claim.id,
        claim.artifact,
        min((s.seeds for s in random), default=0),
        chance,
        more[0] if more else None,
        ", ".join(sorted(truths)),
        "guess" if guessed else "measured" if any(s.kind == "normal" for s in random) else "",
        bool(judged),
        claim.looks.get(scale, 1),
        power.possible(judged),
    )


def _planned(printed: Design, seeds: int, point: bool) -> Design:
    """The printed settings as runs of ours, of which nothing is known."""
    units = [replace(s.unit, point=point, seeds=s.unit.seeds * max(seeds, 1)) for s in printed.settings]
    return replace(printed, settings=tuple(Setting(u, u.judged.value, None, u.judged.n) for u in units), look=0)


def _if_right(settings: Sequence[Setting], printed: Sequence[Unit]) -> tuple[list[Setting], str]:
    """The settings with the paper's numbers: of the same name, else as far inside as the paper's median one, else
    (nothing is printed) as far as ours are in or out."""
    sizes = [abs(u.region.slack(u.judged.value)) for u in printed or [s.unit for s in settings]]
    usual = median(sizes) if sizes else 0.0
    found, same = [], True
    for s in settings:
        mine = set(s.unit.name.split(", "))
        alike = [u.judged.value for u in printed if mine <= set(u.name.split(", "))]
        same = same and bool(alike)
        found.append(replace(s, mean=median(alike) if alike else power.inside(s.unit.region, usual)))
    return found, "printed" if same else "printed lead" if printed else "lead of our size"
