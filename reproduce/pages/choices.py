"""The unstated choices of the papers: a register per paper, `papers/<key>/open_choices.yaml`, with its numbers.

A register answers the questions that everybody asks first (`QUESTIONS`) and lists the open choices. An effect is
a lead (`reproduce.pages.page_numbers.lead`) between two selections of an artifact's cells, or a phrase ("not run"); a
selection with `read` is of the cells that another reading of the same curves makes (`report.metrics.Reading`). If what
is run has a lead as well, it is that of two algorithms, and an effect is clear if it differs from it. A register that
does not follow this ends in a UserError that names the file, the entry and the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from reproduce.declare.paper import papers
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.pages.page_numbers import Cells, cells, gap, lead, played, reread
from reproduce.report.metrics import Reading, t_interval
from reproduce.text import counted, markdown

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
    """The effect of a change. what: it is of; place: a link to the file of the values; clear: its interval excludes
    zero; leads: seed -> its number, None if there are none."""

    what: str
    number: str
    place: str
    clear: bool
    leads: pd.Series | None = None

    def beside(self, run: Effect | None) -> Effect:
        """The same, clear if it differs on the same seeds from what is run, where that has an effect of this kind."""
        if run is None or run.what != self.what or run.leads is None or self.leads is None:
            return self
        change = (self.leads - run.leads).dropna()
        low, high = t_interval(list(change)) if len(change) > 1 else (0.0, 0.0)
        return replace(self, clear=not low <= 0 <= high)


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
        """The options that do something, with their effects, a line for each kind of number; what is run comes first,
        if it has numbers."""
        entries = [(AS_RUN, self.options[self.run])]
        entries += [(name, e) for name, e in self.options.items() if name != self.run and e and e.clear]
        lines: dict[tuple[str, str], list[str]] = {}
        for name, e in entries:
            if e:
                lines.setdefault((e.what, e.place), []).append(f"*{name}* {e.number}")
        return [f"{what} ({place}): {'; '.join(each)}" for (what, place), each in lines.items()]


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
    if problem := mismatch(raw, REGISTER):
        raise UserError(f"{where}, {problem}")
    return Register(raw["code"], raw["answers"], [_choice(entry, where) for entry in raw["choices"]])


def _choice(raw: Mapping[str, Any], where: str) -> OpenChoice:
    where, effects = f"{where}, choice '{raw['open']}'", dict[str, Effect | None]()
    if raw["run"] not in raw["options"]:
        raise UserError(f"{where}: {unknown('option', raw['run'], map(str, raw['options']))}")
    for name, option in raw["options"].items():
        effects[name] = None if isinstance(option, str) else _effect(option, f"{where}, option '{name}'")
    options = {name: e and (e.beside(effects[raw["run"]]) if name != raw["run"] else e) for name, e in effects.items()}
    return OpenChoice(**{**raw, "options": options})


def _effect(raw: Mapping[str, Any], where: str) -> Effect:
    try:
        return Effect(raw["what"], *_number(raw))
    except UserError as error:
        raise UserError(f"{where}, effect '{raw['what']}': {' '.join(str(error).split())}") from error


def _number(raw: Mapping[str, Any]) -> tuple[str, str, bool, pd.Series | None]:
    """The lead of `a` over `b`, both narrowed by `where`, with its 95 % interval, its place, whether zero is outside,
    and the lead of each seed; words where runs diverged, missed a target or are equal. Without an interval (of a mean
    curve, or where both miss a target) none is outside.

    UserError if a selection is empty, or has more than one row per seed.
    """
    a, b = (_side(raw["cells"], **{**raw.get("where", {}), **raw[side]}) for side in "ab")
    unit, digits, place = raw.get("unit", "points"), raw.get("digits", 1), _place(raw["cells"])
    shared = a.seeds.index.intersection(b.seeds.index).size
    place += f", {counted(shared, 'seed')}" * bool(shared)
    if not shared:  # of a mean curve: one number for all seeds
        mean = f"{a.seeds.mean() - b.seeds.mean():.{digits}f}".replace("-", "−")
        return f"{mean} {unit} (one curve, no interval)", place, False, None
    if a.censored and b.censored:
        return f"{a.mean(digits)} against {b.mean(digits)} {unit}", place, False, None
    if a.seeds.sort_index().equals(b.seeds.sort_index()):
        return "no difference in any seed", place, False, None
    if a.seeds.isna().any():
        return a.mean(), place, True, None
    _, low, high = gap(a, b)
    bound = a.censored or b.censored
    return (
        f"{lead(a, b, digits)} {unit}".strip(), place, bound or not low <= 0 <= high,
        None if bound else a.seeds - b.seeds,
    )  # fmt: skip


def _side(artifact: str, read: Mapping[str, Any] | None = None, **selection: Any) -> Cells:
    """A selection of an artifact's cells, or of those that another reading makes."""
    if artifact.startswith("play/"):
        return played(artifact.removeprefix("play/"))(**selection)
    return (reread(artifact, Path.cwd(), **read) if read else cells(artifact))(**selection)


def _place(artifact: str) -> str:
    scale, _, name = artifact.partition("/")
    file = f"play/{name}" if scale == "play" else f"results/{scale}/cells/{name}"
    return f"[{scale}](../../{file}.csv)"


def section(content: Register, listed: str) -> str:
    """Markdown: a paper's answers to the first questions, a table of the open choices that matter, and a link to the
    register, `listed`, for the others. What the authors' code does stands beside the paper where it differs."""
    answers = [f"- *{question}*: {answer}" for question, answer in content.answers.items()]
    shown = [c for c in content.choices if c.matters]
    dagger = " † marks what the authors' code does." * any(c.code == c.run for c in shown)
    rows = []
    for c in shown:
        same = c.code == c.run
        theirs = f" Code: {c.code}." * (not same and c.code not in ("", "-"))
        colon = ":" * (not c.open.endswith("?"))
        why = "" if same and c.why == "The code." else f": {c.why}"
        rows.append([f"**{c.open}**{colon} {c.paper}{theirs}", f"**{c.run}**{'†' * same}{why}", "<br>".join(c.effects)])
    table = markdown(HEAD, [[" ".join(cell.split()) for cell in row] for row in rows])
    more = counted(len(content.choices) - len(shown), "more choice")
    rest = "" if content.choices == shown else f"The register has {more} without a measured effect ([list]({listed}))."
    return "\n".join([*answers, "", f"{content.code}{dagger} {EFFECTS}", "", table, "", rest])


HEAD = ("unstated choice, and what the paper says", "here, and why", "alternatives, and their effects")
EFFECTS = (
    'An effect is the result with the alternative minus that here. "A minus B" is a lead under the alternative, and '
    "*as run* the lead here."
)
