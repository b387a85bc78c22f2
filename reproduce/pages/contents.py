"""What is on the page of a scale: papers, their tables and figures, and the claims about each."""

from __future__ import annotations

import base64
import html
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reproduce import papers
from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError
from reproduce.files import read_text, regular
from reproduce.pages.forest import forest
from reproduce.pages.origin import CITED, Origin, origin
from reproduce.pages.short import About, about, short
from reproduce.pages.tables import to_html
from reproduce.papers.coverage import Coverage, coverage
from reproduce.runs import plan
from reproduce.store import reading
from reproduce.verdicts import words
from reproduce.verdicts.scoreboard import Verdict, claims
from reproduce.verdicts.verdict import VERDICTS

SHRUNK = 0.7
"""Of a figure's width on the page, which with all its figures is to stay under three megabytes."""


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
    def numbers(self) -> dict[str, str]:
        """Ours, what is required, the paper's number."""
        v, m = self.verdict, self.verdict.measured
        found = {"ours": words.deciding(m, self.names), "required": words.demanded(v)} if m else {}
        return {**found, "paper": words.deciding(v.printed, self.names)} if v.printed else found

    @property
    def why(self) -> list[str]:
        """The reason, what it is beside the print, a note."""
        v, reason = self.verdict, self.verdict.reason
        if self.plot and not re.match(r"depends on|under |\d+ parts", reason):  # the number is shown by itself
            reason = reason.rpartition("; ")[0]
        evidence = words.named("; ".join(filter(None, [words.basis(v), reason])), self.names)
        return [s for s in (evidence, "; ".join(words.beside_print(v)), words.named(v.note, self.names)) if s]


@dataclass(frozen=True)
class Item:
    """An artifact on the page. target: what to make, if it is not made; refused: why what was made is not shown.
    image, caption: of a figure; table: HTML."""

    artifact: Artifact
    claims: tuple[Judged, ...]
    origin: Origin
    target: str = ""
    refused: str = ""
    image: str = ""
    table: str = ""
    caption: str = ""

    @property
    def key(self) -> str:
        return f"{self.artifact.paper}-{self.artifact.name}"

    @property
    def label(self) -> str:
        return label(self.artifact)

    @property
    def short(self) -> str:
        return self.label.replace("Figure", "Fig.")

    @property
    def count(self) -> Counter[str]:
        return Counter(v.verdict for v in claims(c.verdict for c in self.claims))


@dataclass(frozen=True)
class Paper:
    """A paper on the page. word, answer, sentences: what came out of it at the scale (HTML), none at smoke scale; page:
    ours about it."""

    key: str
    about: About
    question: str
    word: str
    answer: str
    sentences: Mapping[str, str]
    page: str
    coverage: Coverage
    items: tuple[Item, ...]

    @property
    def count(self) -> Counter[str]:
        return sum((item.count for item in self.items), Counter[str]())

    @property
    def cited(self) -> dict[str, list[Item]]:
        """Word of `CITED` -> the artifacts whose numbers are to be cited so."""
        found = {word: [i for i in self.items if i.origin.cited == word and not i.target] for word in CITED}
        return {word: items for word, items in found.items() if items}


def inlined(artifact: Artifact | None, png: Path) -> str:
    """The address of a figure that lies inside the page."""
    return f"data:image/webp;base64,{base64.b64encode(small(png)).decode()}"


def contents(
    scale: str, verdicts: Sequence[Verdict], address: Callable[[Artifact, Path], str] = inlined
) -> list[Paper]:
    """The papers of a scale. address: of a figure, by its PNG. ValueError if a claim is about an artifact that is not
    there: none may be lost."""
    from tqdm import tqdm

    by_artifact: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_artifact.setdefault(v.artifact, []).append(v)
    made = []
    for covered in coverage():
        paper = covered.paper
        own = tqdm(papers.artifacts(paper), paper, leave=False, disable=None)
        items = tuple(item(a, scale, by_artifact.pop(a.id, []), address) for a in own)
        page = f"docs/papers/{paper}.md"
        said = in_short(paper, scale, verdicts)
        made.append(Paper(paper, about(paper), *said, page if Path(page).is_file() else "", covered, items))
    if by_artifact:
        raise ValueError(f"claims about artifacts that are not there: {', '.join(by_artifact)}")
    return made


def in_short(paper: str, scale: str, verdicts: Sequence[Verdict]) -> tuple[str, str, str, dict[str, str]]:
    """Question, answer in a word and in full and sentences (HTML); where they cannot be told, why."""
    if scale not in ("paper", "reduced"):
        return "", "", "", {}
    try:
        said = short(paper, scale, verdicts)
    except UserError as error:
        return "", "", f"What came out is not told: {html.escape(str(error))}", {}
    return (
        said.question,
        said.word,
        _inline(said.answer),
        {side: _inline(text) for side, text in said.sentences.items()},
    )


def _inline(text: str) -> str:
    return to_html(text).strip().removeprefix("<p>").removesuffix("</p>")


def across(scale: str) -> str:
    """The algorithms by benchmarks as a table (HTML), if they were played at the scale, else ""."""
    file = Path(f"play/{scale}/across.md")
    return to_html(read_text(file).partition("\n")[2], "Algorithms by benchmark") if file.is_file() else ""


def item(
    artifact: Artifact, scale: str, verdicts: Iterable[Verdict], address: Callable[[Artifact, Path], str] = inlined
) -> Item:
    """One artifact: its file if it is made, else how to make it."""
    ordered = sorted(verdicts, key=lambda v: VERDICTS.index(v.verdict))
    judged, behind = tuple(Judged(v, artifact.names) for v in ordered), origin(artifact, scale)
    first = Path(plan.outputs(scale, artifact.id)[0])
    if not os.path.lexists(first):
        return Item(artifact, judged, behind, target=str(first))
    shown = first.with_suffix(".png" if artifact.draw else ".md")
    try:
        if not artifact.draw:
            return Item(artifact, judged, behind, table=_table(shown, artifact))
        caption = shown.with_suffix(".txt")
        said = caption.read_text(encoding="utf-8").partition("\n")[0] if caption.is_file() else f"{artifact.title}."
        return Item(artifact, judged, behind, image=address(artifact, shown), caption=said)
    except (OSError, ValueError, SyntaxError, UserError) as error:  # Pillow's of odd PNGs
        why = f"not as it was rendered ({' '.join(str(error).split())}); render {artifact.id} again"
        reading.say(shown, why)
        return Item(artifact, judged, behind, target=str(first), refused=f"{shown}: {why}")


def small(file: Path) -> bytes:
    """A picture as WebP, small enough for a page with all of them."""
    from PIL import Image

    with Image.open(regular(file)) as picture:
        size = round(SHRUNK * picture.width), round(SHRUNK * picture.height)
        shrunk = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    packed = io.BytesIO()
    shrunk.save(packed, "WEBP", method=6, quality=83)  # at 80 faint bands turn grey
    return packed.getvalue()


def _table(file: Path, artifact: Artifact) -> str:
    """A rendered table without its title, which is the heading on the page already. OSError or ValueError if it is
    none."""
    _, _, below = read_text(file).partition("\n")
    made = to_html(below, label(artifact))
    if "<table" not in made:
        raise ValueError("there is no table in it")
    return made


def label(artifact: Artifact) -> str:
    """ "Figure 6", "Table 1"; those that no paper has by their name."""
    match = re.fullmatch(r"(fig|table)(\d+)", artifact.name)
    return f"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}" if match else artifact.name.capitalize()
