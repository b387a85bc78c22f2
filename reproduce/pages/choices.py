"""What the papers leave open: one register per paper, `papers/<key>/open_choices.yaml`, with numbers from the cells.

A register answers the questions that everybody asks first (`QUESTIONS`) and lists the open choices. An effect is
"not run", or leads (`reproduce.pages.quotes.lead`) between two selections of an artifact's cells; a selection with
`read` is of the cells that another reading of the same curves makes (`report.metrics.Reading`). Where an option changes
no run, and so no lead, `{known: ...}` says what follows. A register that does not follow this ends in a UserError that
names the file, the entry and the field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from reproduce.declare.experiment import PACKAGE
from reproduce.errors import UserError, unknown
from reproduce.files import read_yaml
from reproduce.pages.quotes import Cells, cells, lead, played
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
NOT_RUN, AS_RUN = "not run", "as run"
MOST = 1
"""Of how many effects an option has the page shows the first."""


@dataclass(frozen=True)
class Effect:
    """What a change does: `a` minus `b` over common seeds, in every artifact of `cells`: "scale/name", or
    "play/scale/name" of the rows that `play` wrote.

    where: narrows both sides. numbers: artifact -> the difference in words, as `_number` reads it from the cells.
    Without cells it is known, and `what` says it.
    """

    what: str
    cells: Sequence[str] = ()
    a: Mapping[str, Any] = field(default_factory=dict)
    b: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "points"
    digits: int = 1
    numbers: Mapping[str, str] = field(default_factory=dict)


def _number(effect: Effect, artifact: str) -> str:
    """The lead of a over b with its 95 % interval; words where runs diverged, missed a target or are equal.

    UserError if a selection is empty, or has more than one row per seed.
    """
    a, b = (_side(artifact, {**effect.where, **side}) for side in (effect.a, effect.b))
    if not a.seeds.index.intersection(b.seeds.index).size:  # of a mean curve: one number for all seeds
        gap = f"{a.seeds.mean() - b.seeds.mean():.{effect.digits}f}".replace("-", "−")
        return f"{gap} {effect.unit}, of one curve: no interval"
    if a.censored and b.censored:
        means = f"{a.mean(effect.digits)} against {b.mean(effect.digits)}"
        return f"{means} {effect.unit}, both with runs that miss the target"
    if a.seeds.sort_index().equals(b.seeds.sort_index()):
        return "no difference in any seed"
    if a.seeds.isna().any():
        return a.mean()
    return f"{lead(a, b, effect.digits)} {effect.unit}".strip()


def _side(artifact: str, where: Mapping[str, Any]) -> Cells:
    """A selection of an artifact's cells, or of those that another reading makes."""
    wanted = {column: value for column, value in where.items() if column != "read"}
    if artifact.startswith("play/"):
        if where.get("read"):
            raise UserError(f"{artifact} has no curves to read in another way")
        return played(artifact.removeprefix("play/"))(**wanted)
    if not where.get("read"):
        return cells(artifact)(**wanted)
    from reproduce.pages.reread import reread

    return reread(artifact, Path.cwd(), **where["read"])(**wanted)


@dataclass(frozen=True)
class OpenChoice:
    """One thing that a paper leaves open or says twice.

    options: option -> its effects; none if it was not run (or is what is run). run: the option that the tables and
    figures have. code: what the authors' code does; "" where none was found.
    """

    open: str
    paper: str
    options: Mapping[str, Sequence[Effect]]
    run: str
    why: str
    code: str = ""

    @property
    def others(self) -> list[Effect]:
        """The effects of what is not run."""
        return [e for name, effects in self.options.items() if name != self.run for e in effects]

    def effects(self, usual: str = "") -> list[tuple[str, str]]:
        """Option -> what it does, in words; what is run comes first, and only if it has numbers of its own."""
        own = self.options[self.run]
        found = [(AS_RUN, effect_text(own, usual))] if own else []
        return found + [(name, effect_text(e, usual)) for name, e in self.options.items() if name != self.run]


@dataclass(frozen=True)
class Register:
    """The answers and open choices of a paper. code: what was found of the authors' code."""

    paper: str
    code: str
    answers: Mapping[str, str]
    choices: Sequence[OpenChoice]

    @property
    def measured(self) -> int:
        """How many choices have another option whose effect was run."""
        return sum(any(e.cells for e in c.others) for c in self.choices)

    @property
    def usual(self) -> str:
        """The artifact whose cells most numbers of the page are of; "" if there are none."""
        effects = [effect for c in self.choices for of_one in c.options.values() for effect in of_one]
        counts = Counter(a for e in effects for a in e.numbers)
        return max(counts, key=counts.__getitem__, default="")

    @property
    def known(self) -> int:
        """How many have none, but another option of which is known what it does."""
        return sum(bool(c.others) for c in self.choices) - self.measured


def register(paper: str, papers: Path = PACKAGE / "papers") -> Register:
    """The register of a paper. UserError if it is not as this module says."""
    file = papers / paper / "open_choices.yaml"
    where = f"reproduce/papers/{paper}/{file.name}"
    raw = _mapping(read_yaml(file), where, needed=("code", "answers", "choices"))
    answers = _mapping(raw["answers"], f"{where}, answers", needed=QUESTIONS)
    code = _text(raw["code"], f"{where}, code")
    for question, answer in answers.items():
        _text(answer, f"{where}, answers, {question}")
    if not isinstance(raw["choices"], list) or not raw["choices"]:
        raise UserError(f"{where}: choices must be a list")
    choices = [_choice(entry, f"{where}, choice {i}") for i, entry in enumerate(raw["choices"], 1)]
    return Register(paper, code, answers, choices)


def _choice(raw: Any, where: str) -> OpenChoice:
    if isinstance(raw, dict) and isinstance(raw.get("open"), str):
        where = f"{where} ({raw['open']})"
    raw = _mapping(raw, where, needed=("open", "paper", "options", "run", "why"), more=("code",))
    for name in ("open", "paper", "run", "why", "code"):
        if name in raw:
            _text(raw[name], f"{where}, {name}")
    options = raw["options"]
    if not isinstance(options, dict) or len(options) < 2:
        raise UserError(f"{where}: options must be a mapping with two options at least")
    if raw["run"] not in options:
        raise UserError(f"{where}: {unknown('option', raw['run'], map(str, options))}")
    found: dict[str, tuple[Effect, ...]] = {}
    for name, effects in options.items():
        here = f"{where}, option '{_text(name, where)}'"
        if effects == (AS_RUN if name == raw["run"] else NOT_RUN):
            found[name] = ()
        elif isinstance(effects, dict):
            known = _mapping(effects, here, needed=("known",))["known"]
            found[name] = (Effect(_text(known, f"{here}, known")),)
        elif isinstance(effects, list) and effects:
            found[name] = tuple(_effect(effect, here) for effect in effects)
        else:
            word = AS_RUN if name == raw["run"] else NOT_RUN
            raise UserError(f"{here} must be '{word}', a list of effects or what is known of it")
    return OpenChoice(**{**raw, "options": found})


def _effect(raw: Any, where: str) -> Effect:
    raw = _mapping(raw, where, needed=("what", "cells", "a", "b"), more=("where", "unit", "digits"))
    artifacts = raw["cells"] if isinstance(raw["cells"], list) else [raw["cells"]]
    for name, text in (("what", raw["what"]), *(("cells", artifact) for artifact in artifacts)):
        _text(text, f"{where}, {name}")
    if not isinstance(raw.get("unit", ""), str):
        raise UserError(f"{where}: unit must be a text")
    for side in ("where", "a", "b"):
        if not isinstance(raw.get(side, {}), dict):
            raise UserError(f"{where}: {side} must be a mapping from columns to values")
        if "read" in raw.get(side, {}):
            _mapping(raw[side]["read"], f"{where}, {side}, read", needed=(), more=[f.name for f in fields(Reading)])
    if type(raw.get("digits", 1)) is not int:
        raise UserError(f"{where}: digits must be a whole number")
    made = Effect(**{**raw, "cells": tuple(artifacts)})
    try:
        return replace(made, numbers={artifact: _number(made, artifact) for artifact in made.cells})
    except UserError as error:
        raise UserError(f"{where}, effect '{made.what}': {' '.join(str(error).split())}") from error


def _mapping(raw: Any, where: str, needed: Iterable[str], more: Iterable[str] = ()) -> dict[str, Any]:
    """`raw`, a mapping with all fields that are needed, and no others but `more`."""
    if not isinstance(raw, dict):
        raise UserError(f"{where} must be a mapping")
    for key in raw:
        if key not in (*needed, *more):
            raise UserError(f"{where}: {unknown('field', str(key), [*needed, *more])}")
    for key in needed:
        if key not in raw:
            raise UserError(f"{where}: the field '{key}' is missing")
    return raw


def _text(raw: Any, where: str) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise UserError(f"{where} must be a text (in quotes, if it looks like a number)")
    return raw


def effect_text(effects: Sequence[Effect], usual: str = "") -> str:
    """What an option does, its first effects alone, or that it was not run. The paper's scale is kept where there are
    two; cells other than the `usual` ones are linked, and points have no unit."""
    said = []
    for effect in effects[:MOST]:
        papers = {a: n for a, n in effect.numbers.items() if a.startswith("paper/")}
        numbers = [
            n.removesuffix(" points") + ("" if a == usual else f" ({_place(a)})")
            for a, n in (papers or effect.numbers).items()
        ]
        said.append(f"{effect.what}: {'; '.join(numbers)}" if numbers else effect.what)
    return ". ".join(said) or NOT_RUN


def _place(artifact: str) -> str:
    scale, _, name = artifact.partition("/")
    file = f"play/{name}" if scale == "play" else f"results/{scale}/cells/{name}"
    return f"[{scale}](../../{file}.csv)"


def section(found: Register) -> str:
    """Markdown: a paper's answers to the first questions, and its open choices. What the authors' code does stands
    beside the paper where it differs."""
    answers = [f"- *{question}*: {answer}" for question, answer in found.answers.items()]
    counted = f"Of {len(found.choices)} choices {found.measured} have a measured effect"
    counted += f", and of {found.known} more it is known without a run." if found.known else "."
    dagger = " †: as their code does." * any(c.code == c.run for c in found.choices)
    cells = f" Numbers without a link: {_place(found.usual)}." * bool(found.usual)
    rows = []
    for c in found.choices:
        same = c.code == c.run
        theirs = f" Code: {c.code}." * (not same and c.code not in ("", "-"))
        colon = ":" * (not c.open.endswith("?"))
        why = "" if same and c.why == "The code." else f": {c.why}"
        others = "<br>".join(f"*{name}*: {text}" for name, text in c.effects(found.usual))
        rows.append([f"**{c.open}**{colon} {c.paper}{theirs}", f"**{c.run}**{'†' * same}{why}", others])
    table = markdown(HEAD, [[" ".join(cell.split()) for cell in row] for row in rows])
    return "\n".join([*answers, "", f"{counted} {found.code}{dagger}{cells}", "", table])


HEAD = ("what is open, and what the paper says", "here, and why", "other options: what they change")
