"""The summary of each paper at a scale: what is supported, refuted, inconclusive or not run, and the answer to its
question.

`summary.yaml` of its folder has the sentences and, for each, the claims that it is about. A sentence sees the numbers
of its own paper and scale and no others; one whose claims' verdicts have moved to another side is an error. The
first sentences of a side, up to an interval, stand in README's first table, with a link to what `look` names. README,
the paper's page and the report say nothing else of a paper as a whole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reproduce.declare.paper import papers
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.pages import page_numbers
from reproduce.runs import plan
from reproduce.text import counted, markdown
from reproduce.verdicts.scope import CHECK, SUBSTITUTE
from reproduce.verdicts.scoreboard import Verdict, breakdown
from reproduce.verdicts.verdict import (
    DEPENDS,
    INCONCLUSIVE,
    JUDGED,
    NOT_RUN,
    ON_SUBSTITUTE,
    REFUTED,
    SUPPORTED,
    VERDICTS,
)

SIDES = {
    SUPPORTED: JUDGED[:4], REFUTED: JUDGED[4:6], INCONCLUSIVE: (DEPENDS, INCONCLUSIVE), NOT_RUN: (NOT_RUN,)
}  # fmt: skip
"""The sides of a paper, in their order -> the verdicts of the claims that a sentence about it names."""
NOTHING, ON = "Nothing that was run.", f" on {SUBSTITUTE}"
MEASURED = 2
"""The sides in README's table that have a number, the first ones."""
REDUCED = {**ON_SUBSTITUTE, "in part": f"in part{ON}"}
"""The words of an answer at reduced scale."""


@dataclass(frozen=True)
class Summary:
    """A paper at a scale. word: the answer to the question, from the verdicts on the claims that answer it, which
    `counts` counts; sentences: for each of `SIDES` that has one, its label and a text."""

    question: str
    word: str
    sentences: Mapping[str, tuple[str, str]]
    counts: str = ""


TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
SIDE = record(("claims", "says"), claims=TEXTS, says=TEXT)
SAID = dict.fromkeys(SIDES, SIDE)
ENTRY = {"question": TEXT, "answered_by": TEXTS, "look": TEXT, "substitute": TEXT,
         "paper": record((), **SAID), "reduced": record((), **SAID)}  # fmt: skip
"""substitute: what stands in for the paper's setting at reduced scale, in a phrase. A side without claims is left out,
and so may be those that were not run."""


def register(paper: str) -> dict[str, Any]:
    """The paper's `summary.yaml`, checked."""
    file = papers()[paper].file("summary.yaml")
    if problem := mismatch(raw := read_yaml(file), record(ENTRY, **ENTRY)):
        raise UserError(f"{file}: {problem}")
    return dict(raw)


def summary(paper: str, scale: str, board: Iterable[Verdict]) -> Summary:
    """The paper at a scale whose scoreboard this is. UserError if a sentence asks for cells that are not there, or if
    one of its claims is on another side."""
    entry, where = register(paper), f"{papers()[paper].place}/summary.yaml: {scale}"
    by_id = {v.id.removeprefix(f"{paper}/"): v for v in board if v.id.startswith(f"{paper}/")}
    spec = entry[scale]
    for claim in (*entry["answered_by"], *(c for side in spec.values() for c in side["claims"])):
        if claim not in by_id:
            raise UserError(f"{where}: {unknown('claim', claim, by_id)}")
    for side, verdicts in SIDES.items():
        members = [c for c, v in by_id.items() if v.verdict in verdicts]
        silent = [] if side == NOT_RUN else [c for c in members if by_id[c].rests_on != CHECK][:1]
        wrong = [c for c in spec[side]["claims"] if c not in members] if side in spec else silent
        if moved := [f"{c} is {by_id[c].verdict}" for c in wrong]:
            raise UserError(f"{where}, {side}: {'; '.join(moved)}: say it anew, and name its claims")
    functions = {f.__name__: f for f in (page_numbers.lead, page_numbers.share)} | {
        "cells": lambda name: page_numbers.cells(f"{scale}/{paper}_{name}"),
        "played": lambda: page_numbers.played(f"{scale}/across"),
        "printed": lambda name: page_numbers.printed(f"{paper}/{name}"),
    }
    words, texts = REDUCED if scale == "reduced" else {}, dict[str, tuple[str, str]]()
    answering = [by_id[claim] for claim in entry["answered_by"]]
    answer = word(answering)
    for side in SIDES:
        if side not in spec and NOT_RUN in (side, answer):
            continue
        try:
            says = spec[side]["says"] if side in spec else NOTHING
            named = label(spec[side]["claims"], by_id, entry["answered_by"]) if side in spec else words.get(side, side)
            texts[side] = named, " ".join(page_numbers.filled(says, functions).split())
        except UserError as error:
            raise UserError(f"{where}, {side}: {error}") from error
    counts = breakdown(Counter(v.verdict for v in answering), SUBSTITUTE)
    return Summary(entry["question"], words.get(answer, answer), texts, f"{counted(len(answering), 'claim')}: {counts}")


def label(claims: Sequence[str], board: Mapping[str, Verdict], answering: Sequence[str]) -> str:
    """The weakest verdict on the claims of a side; "also" before it where none of them answers the question."""
    weakest = max((board[claim].verdict for claim in claims), key=VERDICTS.index)
    return weakest if {*claims} & {*answering} else f"also {weakest}"


def word(claims: Sequence[Verdict]) -> str:
    """The answer in a word: supported if all claims are, "in part" if only some are; else refuted if one is, or
    inconclusive; not run if none was evaluated."""
    if not any(v.verdict in JUDGED for v in claims):
        return NOT_RUN
    sides = {side for side, verdicts in SIDES.items() for v in claims if v.verdict in verdicts}
    return "in part" if SUPPORTED in sides and len(sides) > 1 else min(sides, key=[*SIDES].index, default=INCONCLUSIVE)


def first_table(boards: Mapping[str, Sequence[Verdict]]) -> str:
    """Markdown: README's first table, a line for each paper: the question, the answer in a word at paper scale and the
    first sentences of each side, with a link to the main figure or table; nothing of these where they cannot be told.
    A side without any at paper scale has those of reduced scale that answer the question."""
    rows = []
    for key, paper in papers().items():
        name = (
            f"[{paper.name}](docs/papers/{key}.md)<br>{paper.authors}, [*{paper.title}*]({paper.link}), {paper.where}"
        )
        try:
            rows.append([name, _result(key, boards)])
        except UserError:  # which its own page says
            rows.append([name, "–"])
    return markdown(["paper", "result"], rows)


def _result(paper: str, boards: Mapping[str, Sequence[Verdict]]) -> str:
    entry, summaries = register(paper), {scale: summary(paper, scale, board) for scale, board in boards.items()}
    sentences = {side: summaries["paper"].sentences[side] for side in entry["paper"]}
    for side, (named, text) in summaries["reduced"].sentences.items():
        if side not in sentences and side in entry["reduced"] and not named.startswith("also"):
            sentences[side] = named.removesuffix(ON) + ON, text
    listed = [(named, opening(text)) for named, text in (sentences[side] for side in SIDES if side in sentences)]
    lines = [f"{summaries['paper'].question} **{summaries['paper'].word.capitalize()}.**"]
    for k, (named, (first, longer)) in enumerate(listed):
        lines.append(f"*{named.capitalize()}:* {longer if k < MEASURED else first}")
    scale, _, artifact = entry["look"].partition("/")
    shown = next(f for f in plan.outputs(scale, f"{paper}/{artifact}") if f.endswith((".png", ".md")))
    where = "" if scale == "paper" else f" ({scale} scale)"
    return "<br>".join([*lines, f"Main result: [{artifact}]({shown}){where}."])


def opening(text: str) -> tuple[str, str]:
    """The first sentence; and with it the second one, if that has an interval."""
    first, *more = re.split(r'(?<=\.) (?=["A-Z])', text)
    return first, " ".join([first, *(s for s in more[:1] if re.search(r"\(\S+ to \S+\)", s))])
