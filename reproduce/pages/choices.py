"""The unstated choices of the papers: a register per paper, `papers/<key>/open_choices.yaml`, with its numbers.

A register answers the questions that everybody asks first (`QUESTIONS`) and lists the open choices. An effect is
a lead (`reproduce.pages.page_numbers.lead`) between two selections of an artifact's cells, or a phrase ("not run"); a
selection with `read` is of the cells that another reading of the same curves makes (`report.metrics.Reading`). A
register that does not follow this ends in a UserError that names the file, the entry and the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reproduce.declare.paper import papers
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.pages.page_numbers import Cells, cells, gap, lead, played, reread
from reproduce.report.metrics import Reading
from reproduce.text import markdown

QUESTIONS = (
    "hyper-parameters",
    "which accuracy",
    "which partition",
    "weights and participation",
    "batch normalisation",
    "steps or epochs",
)
"""What people who reproduce such papers ask first; every register answers each in a sentence."""
AS_RUN = "as run"


@dataclass(frozen=True)
class Effect:
    """The effect of a change. text: its number, and the file of the values that give it, in words; clear: its interval
    excludes zero."""

    text: str
    clear: bool


@dataclass(frozen=True)
class OpenChoice:
    """A choice that a paper leaves open or states in two ways.

    options: option -> its effect; None if it was not run (or is what is run). run: the option that the tables and
    figures have. code: what the authors' code does; "" where none was found.
    """

    open: str
    paper: str
    options: Mapping[str, Effect | None]
    run: str
    why: str
    code: str = ""

    @property
    def matters(self) -> bool:
        """Tells whether another option has a significant effect."""
        return any(e and e.clear for name, e in self.options.items() if name != self.run)

    @property
    def effects(self) -> list[str]:
        """The options that do something, with their effects; what is run comes first, if it has numbers."""
        found = [(AS_RUN, self.options[self.run])]
        found += [(name, e) for name, e in self.options.items() if name != self.run and e and e.clear]
        return [f"*{name}* {e.text}" for name, e in found if e]


@dataclass(frozen=True)
class Register:
    """The answers and open choices of a paper. code: what was found of the authors' code."""

    code: str
    answers: Mapping[str, str]
    choices: Sequence[OpenChoice]


TEXT = {"type": "string", "pattern": r"\S"}
SIDE = {"type": "object", "properties": {"read": record((), **{f.name: {} for f in fields(Reading)})}}
EFFECT = record(
    ("what", "cells", "a", "b"), what=TEXT, cells=TEXT,
    a=SIDE, b=SIDE, where=SIDE, unit={"type": "string"}, digits={"type": "integer"},
)  # fmt: skip
OPTION = {"anyOf": [TEXT, EFFECT]}
CHOICE = record(
    ("open", "paper", "options", "run", "why"), **{key: TEXT for key in ("open", "paper", "run", "why", "code")},
    options={"type": "object", "minProperties": 2, "additionalProperties": OPTION},
)  # fmt: skip
REGISTER = record(
    ("code", "answers", "choices"), code=TEXT, answers=record(QUESTIONS, **{question: TEXT for question in QUESTIONS}),
    choices={"type": "array", "items": CHOICE, "minItems": 1},
)  # fmt: skip


def register(paper: str) -> Register:
    """The register of a paper. UserError if it is not as this module says."""
    file = papers()[paper].file("open_choices.yaml")
    raw, where = read_yaml(file), f"{papers()[paper].place}/{file.name}"
    if said := mismatch(raw, REGISTER):
        raise UserError(f"{where}, {said}")
    return Register(raw["code"], raw["answers"], [_choice(entry, where) for entry in raw["choices"]])


def _choice(raw: Mapping[str, Any], where: str) -> OpenChoice:
    where, found = f"{where}, choice '{raw['open']}'", dict[str, Effect | None]()
    if raw["run"] not in raw["options"]:
        raise UserError(f"{where}: {unknown('option', raw['run'], map(str, raw['options']))}")
    for name, option in raw["options"].items():
        found[name] = None if isinstance(option, str) else _effect(option, f"{where}, option '{name}'")
    return OpenChoice(**{**raw, "options": found})


def _effect(raw: Mapping[str, Any], where: str) -> Effect:
    try:
        number, clear = _number(raw)
        return Effect(f"({raw['what']}): {number}, {_place(raw['cells'])}", clear)
    except UserError as error:
        raise UserError(f"{where}, effect '{raw['what']}': {' '.join(str(error).split())}") from error


def _number(raw: Mapping[str, Any]) -> tuple[str, bool]:
    """The lead of `a` over `b`, both narrowed by `where`, with its 95 % interval, and whether zero is outside; words
    where runs diverged, missed a target or are equal.

    UserError if a selection is empty, or has more than one row per seed.
    """
    a, b = (_side(raw["cells"], **{**raw.get("where", {}), **raw[side]}) for side in "ab")
    unit, digits = raw.get("unit", "points"), raw.get("digits", 1)
    if not a.seeds.index.intersection(b.seeds.index).size:  # of a mean curve: one number for all seeds
        mean = f"{a.seeds.mean() - b.seeds.mean():.{digits}f}".replace("-", "−")
        return f"{mean} {unit}, of one curve: no interval", True
    if a.censored and b.censored:
        return f"{a.mean(digits)} against {b.mean(digits)} {unit}, both with runs that do not reach the target", True
    if a.seeds.sort_index().equals(b.seeds.sort_index()):
        return "no difference in any seed", False
    if a.seeds.isna().any():
        return a.mean(), True
    _, low, high = gap(a, b)
    return f"{lead(a, b, digits)} {unit}".strip(), a.censored or b.censored or not low <= 0 <= high


def _side(artifact: str, read: Mapping[str, Any] | None = None, **wanted: Any) -> Cells:
    """A selection of an artifact's cells, or of those that another reading makes."""
    if artifact.startswith("play/"):
        return played(artifact.removeprefix("play/"))(**wanted)
    return (reread(artifact, Path.cwd(), **read) if read else cells(artifact))(**wanted)


def _place(artifact: str) -> str:
    scale, _, name = artifact.partition("/")
    file = f"play/{name}" if scale == "play" else f"results/{scale}/cells/{name}"
    return f"[{scale}](../../{file}.csv)"


def section(found: Register) -> str:
    """Markdown: a paper's answers to the first questions, a table of the open choices that matter, the names of the
    others. What the authors' code does stands beside the paper where it differs."""
    answers = [f"- *{question}*: {answer}" for question, answer in found.answers.items()]
    dagger = " † marks what the authors' code does." * any(c.code == c.run for c in found.choices)
    rows = []
    for c in filter(lambda c: c.matters, found.choices):
        same = c.code == c.run
        theirs = f" Code: {c.code}." * (not same and c.code not in ("", "-"))
        colon = ":" * (not c.open.endswith("?"))
        why = "" if same and c.why == "The code." else f": {c.why}"
        rows.append([f"**{c.open}**{colon} {c.paper}{theirs}", f"**{c.run}**{'†' * same}{why}", "<br>".join(c.effects)])
    table = markdown(HEAD, [[" ".join(cell.split()) for cell in row] for row in rows])
    rest = "; ".join(c.open.rstrip("?") for c in found.choices if not c.matters)
    rest = f"These have no measured effect: {rest}." if rest else ""
    return "\n".join([*answers, "", f"{found.code}{dagger}", "", table, "", rest])


HEAD = ("unstated choice, and what the paper says", "here, and why", "alternatives, and their effects")
