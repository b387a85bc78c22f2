"""The report's page: tables, figures, claims and the scoreboard in one well-formed HTML file."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reproduce import papers, plan
from reproduce.commands import report
from reproduce.commands.markdown import to_html
from reproduce.declare import Artifact, no_panels
from reproduce.verdicts.scoreboard import Tally, Verdict

TABLE = r"""## Accuracy \* of all

smoke scale: digits for <CIFAR>.

| Algorithm | α 0.1 | α 0.5 |
| :--- | ---: | ---: |
| FedAvg \| x | 71.2 ± 0.3<br>(70.1) +1.1 | **80.0** |
| FedACS | &lt; 1 | `not run` |

- a note
- another
"""


class Outline(HTMLParser):
    """Checks that tags nest, and collects texts by tag and all attributes."""

    VOID = ("br", "img", "meta", "link")

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

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())


def test_markdown_becomes_html() -> None:
    page = Outline(to_html(TABLE, top=2))
    assert page.texts["h3"] == ["Accuracy * of all"]
    assert page.texts["p"] == ["smoke scale: digits for <CIFAR>."]
    assert page.texts["th"] == ["Algorithm", "α 0.1", "α 0.5"]
    assert page.texts["td"] == ["FedAvg | x", "71.2 ± 0.3", "(70.1) +1.1", "FedACS", "< 1"]
    assert page.texts["strong"] == ["80.0"]
    assert page.texts["code"] == ["not run"]
    assert page.texts["li"] == ["a note", "another"]
    assert sum(a == ("td", "class", "n") for a in page.attributes) == 4


@pytest.fixture
def _two_artifacts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = tuple(
        Artifact("fedacs", name, f"Title of <{name}>", no_panels, cells=lambda histories: None)  # type: ignore
        for name in ("fig1", "fig2", "table1")
    )
    monkeypatch.setattr(plan, "artifacts", lambda: found)
    monkeypatch.setattr(papers, "artifacts", lambda: found)
    monkeypatch.chdir(tmp_path)


def verdict(name: str, verdict: str, effect: float | None = None, **more: Any) -> Verdict:
    fields = {"unit": "points", "interval": None, "n": 0, "reason": "", "paper_numbers": "na"} | more
    return Verdict(f"fedacs/{name}_claim", f"fedacs/{name}", f"A < B in {name}", verdict, effect, **fields)


@pytest.mark.usefixtures("_two_artifacts")
def test_page_shows_what_was_made_and_names_what_was_not() -> None:
    Path("figures/smoke").mkdir(parents=True)
    Path("figures/smoke/fedacs_fig1.pdf").touch()
    Path("figures/smoke/fedacs_fig1.png").write_bytes(b"picture")
    Path("tables/smoke").mkdir(parents=True)
    Path("tables/smoke/fedacs_table1.md").write_text(TABLE)
    verdicts = [
        verdict("fig1", "reproduced", 1.23456, interval=(0.5, 2.0), n=5, rests_on="stand-in data"),
        verdict("table1", "contradicted", -3.0),
        verdict("table1", "not run"),
    ]
    text = report.page("smoke", verdicts, [Tally("fedacs", 15, 12, 3)])
    page = Outline(text)
    assert page.texts["h3"] == ["fig1: Title of <fig1>", "fig2: Title of <fig2>", "table1: Title of <table1>"]
    assert ("img", "src", "data:image/png;base64,cGljdHVyZQ==") in page.attributes
    assert page.texts["code"] == ["snakemake figures/smoke/fedacs_fig2.pdf --cores 2", "not run"]
    assert page.texts["span"] == ["reproduced", "stand-in data", "contradicted", "not run"]
    assert (
        "12 of the papers' 15 tables and figures are part of this package; 3 have numbers at this scale."
        in (page.texts["p"])
    )
    assert "On stand-in data: 1 reproduced, 0 contradicted, 0 depends, 0 inconclusive." in page.texts["p"]
    first = [page.texts["th"].index(name) for name in ("judged", "tables and figures", "made", "run", "claims")]
    assert first == sorted(first)
    assert "A < B in fig1" in page.texts["td"]
    assert "0.5 to 2" in page.texts["td"]
    assert "1.23 points" in page.texts["td"]
    targets = {value for tag, name, value in page.attributes if name == "id"}
    links = {value for tag, name, value in page.attributes if tag == "a" and name == "href" and value}
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= targets
    assert all(
        (Path("report/smoke") / link).resolve().is_file() for link in links if ".csv" not in link and "#" not in link
    )
    assert "http" not in text


def test_counts_of_the_scoreboard() -> None:
    assert report.count([verdict("a", "reproduced"), verdict("b", "reproduced"), verdict("c", "not run")]) == {
        "reproduced": 2,
        "not run": 1,
    }
