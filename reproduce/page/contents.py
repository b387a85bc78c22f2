"""What is on the page of a scale: papers, their tables and figures, and the claims about each."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from reproduce import papers
from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError
from reproduce.files import read_text
from reproduce.findings import pages as findings
from reproduce.page import pictures
from reproduce.page.forest import forest
from reproduce.page.markdown import to_html
from reproduce.page.origin import Origin, origin
from reproduce.page.seen import seen
from reproduce.runs import plan
from reproduce.store import reading
from reproduce.verdicts import words
from reproduce.verdicts.scoreboard import Tally, Verdict
from reproduce.verdicts.verdict import VERDICTS


@dataclass(frozen=True)
class Judged:
    """A claim as it stands on the page."""

    verdict: Verdict
    names: Mapping[str, str]

    @property
    def key(self) -> str:
        return "claim-" + re.sub(r"[^a-zA-Z0-9]+", "-", self.verdict.id)

    @cached_property
    def plot(self) -> str:
        return forest(self.verdict.measured, self.verdict.printed) if self.verdict.measured else ""

    @cached_property
    def numbers(self) -> list[tuple[str, str]]:
        """(name, text): ours, what is required, the slack, the paper's number."""
        v, found = self.verdict, []
        if v.measured:
            found = [("ours", self._of(words.measured(v.measured), v.measured.setting))]
            found += [("required", words.required(v.measured) or "no bound")]
            found += [("slack", self._slack())] if v.effect is not None else []
        if v.printed:
            found.append(("paper", self._of(words.measured(v.printed), v.printed.setting)))
        return found

    @property
    def why(self) -> list[str]:
        """The reason, of how many settings the claim speaks, whether the paper's own numbers support it, a note."""
        v = self.verdict
        own = {"holds": "Holds on the numbers that the paper prints.", "fails": "Fails on the paper's own numbers."}
        evidence = "; ".join(filter(None, [words.basis(v), v.covers, self._reason()]))
        said = (words.named(evidence, self.names), own.get(v.paper_numbers, ""), words.named(v.note, self.names))
        return [text for text in said if text]

    def _reason(self) -> str:
        """The reason without the deciding number, where that is shown by itself and the reason is of one check."""
        several = re.match(r"depends on|under |\d+ parts", self.verdict.reason)
        return self.verdict.reason if several or not self.plot else self.verdict.reason.rpartition("; ")[0]

    def _of(self, text: str, setting: str) -> str:
        return f"{words.named(setting, self.names)}: {text}" if setting else text

    def _slack(self) -> str:
        v = self.verdict
        exact = v.measured is not None and v.measured.exact
        ends = words.slack_interval(v)
        return words.slack(v) + (" (exact)" if exact else f" ({ends})" if ends else " (no interval)")


@dataclass(frozen=True)
class Item:
    """An artifact on the page. target: what to make, if it is not made; refused: why what was made is not shown.
    image, alt: a figure; table: HTML."""

    artifact: Artifact
    claims: tuple[Judged, ...]
    origin: Origin
    target: str = ""
    refused: str = ""
    image: str = ""
    alt: str = ""
    table: str = ""
    caption: str = ""

    @property
    def key(self) -> str:
        return f"{self.artifact.paper}-{self.artifact.name}"

    @property
    def label(self) -> str:
        return label(self.artifact)

    @property
    def count(self) -> dict[str, int]:
        return dict(Counter(c.verdict.verdict for c in self.claims))


@dataclass(frozen=True)
class Paper:
    """A paper on the page. link: where it can be read; sentences: what we found (HTML); page: our page about it."""

    key: str
    name: str
    title: str
    link: str
    sentences: tuple[str, ...]
    page: str
    tally: Tally | None
    items: tuple[Item, ...]

    @property
    def count(self) -> dict[str, int]:
        return dict(Counter(c.verdict.verdict for item in self.items for c in item.claims))


def contents(scale: str, verdicts: Sequence[Verdict], found: Sequence[Tally]) -> list[Paper]:
    """The papers of a scale. ValueError if a claim is about an artifact that is not there: none may be lost."""
    by_artifact: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_artifact.setdefault(v.artifact, []).append(v)
    said = findings.sentences()
    made = []
    for paper in papers.PAPERS:
        own = [a for a in papers.artifacts() if a.paper == paper]
        items = tuple(item(a, scale, by_artifact.pop(a.id, [])) for a in own)
        name, title, link = described(paper)
        page = next((p for p in (f"docs/findings/{paper}.md", f"docs/papers/{paper}.md") if Path(p).is_file()), "")
        tally = next((c for c in found if c.paper == paper), None)
        sentences = tuple(
            to_html(text).strip().removeprefix("<p>").removesuffix("</p>") for text in said.get(paper, [])
        )
        made.append(Paper(paper, name, title, link, sentences, page, tally, items))
    if by_artifact:
        raise ValueError(f"claims about artifacts that are not there: {', '.join(by_artifact)}")
    return made


def item(artifact: Artifact, scale: str, verdicts: Iterable[Verdict]) -> Item:
    """One artifact: its file if it is made, else how to make it."""
    ordered = sorted(verdicts, key=lambda v: VERDICTS.index(v.verdict))
    claims = tuple(Judged(v, artifact.names) for v in ordered)
    behind = origin(artifact, scale)
    first = Path(plan.outputs(scale, artifact.id)[0])
    if not os.path.lexists(first):
        return Item(artifact, claims, behind, target=str(first))
    shown = first if first.suffix == ".md" else first.with_suffix(".png")
    try:
        if shown is first:
            return Item(artifact, claims, behind, table=_table(first, artifact))
        return Item(artifact, claims, behind, **_figure(shown, artifact), alt=seen(artifact, scale))
    except (OSError, ValueError, SyntaxError, UserError) as error:  # Pillow's of odd PNGs
        why = f"not as it was rendered ({' '.join(str(error).split())}); render {artifact.id} again"
        reading.say(shown, why)
        return Item(artifact, claims, behind, target=str(first), refused=f"{shown}: {why}")


def _figure(picture: Path, artifact: Artifact) -> dict[str, str]:
    """Image and caption; what `pictures.embedded` raises."""
    caption = picture.with_suffix(".txt")
    said = caption.read_text(encoding="utf-8").strip() if caption.is_file() else f"{artifact.title}."
    return {"image": pictures.embedded(picture), "caption": said}


def label(artifact: Artifact) -> str:
    """ "Figure 6", "Table 1"; those that no paper has by their name."""
    match = re.fullmatch(r"(fig|table)(\d+)", artifact.name)
    return f"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}" if match else artifact.name.capitalize()


def _table(file: Path, artifact: Artifact) -> str:
    """A rendered table without its title, which is the heading on the page already. OSError or ValueError if it is
    none."""
    _, _, below = read_text(file).partition("\n")
    html = to_html(below, top=2, name=label(artifact))
    if "<table" not in html:
        raise ValueError("there is no table in it")
    return html


def described(paper: str) -> tuple[str, str, str]:
    """(short name, title, link) of a paper, from the docstring of its package."""
    text = " ".join((import_module(f"reproduce.papers.{paper}").__doc__ or paper).split())
    name, _, rest = text.partition(":")
    title = re.search(r'"(.+?),?"', rest)
    number = re.search(r"arXiv (\d+\.\d+)", rest)
    return name, title[1] if title else rest.strip(), f"https://arxiv.org/abs/{number[1]}" if number else ""
