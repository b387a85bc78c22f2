"""The report's page: everything that is known is on it, in one well-formed file that asks no other host."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from reproduce import store
from reproduce.declare.artifact import Artifact, no_panels
from reproduce.declare.paper import papers
from reproduce.pages.page import page, small, to_html
from reproduce.runs import plan
from reproduce.verdicts import scoreboard
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured

TABLE = r"""## Accuracy \* of all

smoke scale: digits for <CIFAR>.

| Algorithm | α 0.1 | α 0.5 |
| --- | ---: | ---: |
| FedAvg \| x | 71.2 ± 0.3<br>(70.1) +1.1 | **80.0** |
| FedACS | &lt; 1 | `not run` |

- a note
- another

"""


class Outline(HTMLParser):
    """Checks that tags nest, and collects texts by tag and all attributes."""

    VOID = ("br", "img", "meta", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())

    def values(self, tag: str, name: str) -> list[str]:
        return [str(value) for t, n, value in self.attributes if (t, n) == (tag, name)]


def test_markdown_becomes_html() -> None:
    found = Outline(to_html(TABLE))
    assert found.texts["h3"] == ["Accuracy * of all"]
    assert found.texts["p"] == ["smoke scale: digits for <CIFAR>."]
    assert found.texts["th"] == ["Algorithm", "α 0.1", "α 0.5", "FedAvg | x", "FedACS"]
    assert found.values("th", "scope") == ["col"] * 3 + ["row"] * 2
    assert found.texts["td"] == ["71.2 ± 0.3", "(70.1) +1.1", "< 1"]
    assert (found.texts["strong"], found.texts["code"]) == (["80.0"], ["not run"])
    assert found.texts["li"] == ["a note", "another"]
    assert found.values("td", "class") == ["n"] * 4


LEVELS = """## Accuracy

| Overlap | Algorithm |  | First |  |
| :--- | --- | --- | ---: | ---: |
|  |  |  | **ours** | **old** |
| 0.2 | FedAvg | ours | **3** |  |
|  |  | paper | 1 | 2 |

text

| | notes | more |
| --- | --- | --- |
| a | **b** | c |
"""


def test_headings_and_labels_of_tables_are_headers() -> None:
    found = Outline(to_html(LEVELS, name="Table 1"))
    named = ("Overlap", "Algorithm", "First", "0.2", "FedAvg", "ours", "paper", "notes", "more", "a")
    assert found.texts["th"] == [*named]
    assert found.values("th", "scope") == [*["col"] * 3, *["row"] * 4, "col", "col", "row"]
    assert found.texts["td"] == ["1", "2", "c"]
    assert found.texts["strong"] == ["ours", "old", "3", "b"]


@pytest.fixture
def _few_artifacts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = tuple(
        Artifact("fedacs", name, f"Title of <{name}>", no_panels, cells=lambda histories: None, draw=draw)
        for name, draw in (("fig1", print), ("fig2", print), ("table1", None))
    )
    monkeypatch.setattr(plan, "artifacts", lambda paper="": tuple(a for a in found if paper in ("", a.paper)))
    monkeypatch.setattr(plan, "_jobs", plan._jobs.__wrapped__)  # whatever other tests have planned
    for key, paper in papers().items():
        monkeypatch.setitem(paper.__dict__, "artifacts", found if key == "fedacs" else ())
    monkeypatch.setattr(scoreboard, "_artifacts", scoreboard._artifacts.__wrapped__)
    monkeypatch.chdir(tmp_path)


def verdict(name: str, verdict: str, **more: Any) -> Verdict:
    given = {"id": f"fedacs/{name}_{verdict}", "artifact": f"fedacs/{name}", "statement": f"A < B in {name}"}
    return Verdict(verdict, **(given | more))


def lead(value: float, **change: Any) -> Measured:
    given = {"what": "lead", "unit": "percent", "setting": "fedacs ahead of fedavg", "value": value, "low": 1.5}
    given |= {"high": 3.0, "region": (1.0, np.inf), "strict": False, "exact": False, "n": 5}
    return Measured(**(given | change))


def picture(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file)


@pytest.mark.usefixtures("_few_artifacts")
def test_page_shows_what_was_made_and_names_what_was_not() -> None:
    picture(Path("figures/smoke/fedacs_fig1.png"))
    Path("figures/smoke/fedacs_fig1.pdf").touch()
    Path("figures/smoke/fedacs_fig1.txt").write_text("Title. Made of <digits>.\n")
    Path("tables/smoke").mkdir(parents=True)
    Path("tables/smoke/fedacs_table1.md").write_text(TABLE)
    cells = Path("results/smoke/cells/fedacs_fig1.csv")
    cells.parent.mkdir(parents=True)
    rows = ["fedacs,0,final_accuracy,70", "fedacs,1,final_accuracy,72", "fedavg,0,final_accuracy,60"]
    cells.write_text("\n".join(["algorithm,seed,metric,value", *rows]) + "\n")
    cells.with_suffix(".json").write_text(json.dumps({"cells": store.of_file(cells)}))
    measured = {"measured": lead(2.25), "printed": lead(4.0, low=4.0, high=4.0, exact=True, n=0)}
    verdicts = [
        verdict("fig1", "supported", rests_on="substitute data", **measured),
        verdict("table1", "refuted"),
        verdict("table1", "not run"),
    ]
    text = page("smoke", verdicts, others=("paper",), home="../../index.html")
    found = Outline(text)
    assert [t.split(": ", 1)[1] for t in found.texts["h3"]] == [f"Title of <{n}>" for n in ("fig1", "fig2", "table1")]
    assert found.texts["figcaption"] == ["Title. Made of <digits>."]
    assert found.values("img", "alt") == ["Title of <fig1>"]
    assert "snakemake figures/smoke/fedacs_fig2.pdf --cores 2" in found.texts["code"]
    assert found.values("li", "data-verdict") == ["supported", "refuted", "not run"]
    said = "FedACS ahead of FedAvg: lead 2.25 points (1.5 to 3), 5 seeds"
    dd = found.texts["dd"]
    assert dd[dd.index(said) : dd.index(said) + 3] == [
        said,
        "at least 1 points",
        said.split(":")[0] + ": lead 4 points",
    ]
    assert any(re.fullmatch(r"\d+ of 15 figures and tables, \d+ with numbers", text) for text in found.texts["span"])
    assert "On substitute data: 1 supported." in found.texts["p"]
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = found.values("a", "href")
    chosen = {link for link in links if link.startswith("#?")}
    assert {"#?artifact=fedacs-table1&verdict=refuted", "#?paper=fedacs&verdict=not%20run"} <= chosen
    assert {link.removeprefix("#") for link in links if link.startswith("#")} - {c[1:] for c in chosen} <= set(ids)
    named = [link for link in links if not link.startswith(("#", "http"))]
    assert {"../paper/index.html", "../../index.html"} <= set(named)
    assert "../../results/smoke/cells/fedacs_fig1.csv" in named
    assert all(
        re.search(r"reproduce/papers|figures/smoke|tables/smoke|cells|paper/index|^../../index|docs/", link)
        for link in named
    )


def shown(png: Path) -> Image.Image:
    """The picture as it is on the page."""
    return Image.open(io.BytesIO(small(png))).convert("RGB")


def whole(png: Path, size: tuple[int, ...]) -> np.ndarray:
    """The picture in all its colours, in the size of the page."""
    with Image.open(png) as picture:
        return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS), dtype=int)


@pytest.mark.parametrize("name", ["dynamic_init_fig3", "defedavg_fig6", "fedacs_fig6", "fiarse_fig3"])
def test_pictures_keep_their_bands_and_grids(name: str) -> None:
    png = Path("figures/reduced", f"{name}.png")
    few = np.asarray(shown(png), dtype=int)
    was = whole(png, few.shape[1::-1])
    faint = (was.min(axis=2) > 190) & (was.min(axis=2) < 242)
    assert faint.mean() > 0.01
    assert (few.min(axis=2)[faint] > 246).mean() < 0.1, "what is faint stays darker than white"
    assert tuple(few[0, 0]) == (255, 255, 255), "white stays white"
