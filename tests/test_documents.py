"""The site of the documents, as far as it can be tried without Sphinx; `make docs` is the whole test."""

from __future__ import annotations

import os
import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.declare.experiment import SCALES
from reproduce.papers import PAPERS, artifacts
from reproduce.papers.described import settings_table
from reproduce.runs.plan import select

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def conf() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "conf.py"))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def read(conf: dict[str, Any], document: str, folder: Path) -> str:
    """The text of a document as Sphinx gets it."""
    source = [(DOCS / f"{document}.md").read_text(encoding="utf-8")]
    conf["read"](SimpleNamespace(outdir=folder), document, source)
    return source[0]


def test_contents_name_every_document_once(conf: dict[str, Any]) -> None:
    named = ["index"]
    for file in DOCS.rglob("*.md"):
        for block in TOCTREE.findall(file.read_text(encoding="utf-8")):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            folder = file.parent.relative_to(DOCS)
            named += [line[1:] if line.startswith("/") else (folder / line).as_posix() for line in lines]
    documents = {f.relative_to(DOCS).with_suffix("").as_posix() for f in DOCS.rglob("*.md")}
    left_out = {name for name in documents if any(name.startswith(p) for p in conf["exclude_patterns"])}
    assert sorted(named) == sorted(documents - left_out)


def test_what_the_configuration_asks_for_is_a_dependency_and_there(conf: dict[str, Any]) -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["docs"]
    installed = {re.split(r"[><=]", line)[0].replace("-", "_") for line in extra}
    own = {"sphinxcontrib.mermaid": "sphinxcontrib_mermaid", conf["html_theme"]: "furo"}
    wanted = {own.get(name, name) for name in [*conf["extensions"], conf["html_theme"]]}
    assert {name for name in wanted if not name.startswith("sphinx.")} <= installed
    assert set(conf["SCALES"].split(",")) <= set(SCALES)
    assert all((DOCS / "static" / name).is_file() for name in conf["html_css_files"])
    for file, name in conf["DOCUMENTS"].items():
        assert f"<!-- text of {file} -->" in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", ["index", "contributing", "changelog", "across_table", "papers/across", "play"])
def test_links_of_a_text_lead_from_its_place_in_the_site(document: str, conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, document, tmp_path)
    assert "<!-- text of" not in text
    assert "play/reduced/across.md" not in "".join(conf["LINK"].findall(text))
    targets = [(DOCS / document).parent / link.partition("#")[0] for link in conf["LINK"].findall(text)]
    assert [str(t) for t in targets if not t.exists()] == []


def test_links_to_markdown_lead_to_documents(conf: dict[str, Any]) -> None:
    """Sphinx makes a page of a document alone: of a table it knows none."""
    files = [f for f in DOCS.rglob("*.md") if f.parent.name != "templates"]
    known = {*files, *(ROOT / name for name in conf["DOCUMENTS"])}
    links = [(f, link.partition("#")[0]) for f in files for link in conf["LINK"].findall(f.read_text("utf-8"))]
    led = [(f.name, link) for f, link in links if link.endswith(".md") and (f.parent / link).resolve() not in known]
    assert led == []


@pytest.mark.parametrize("paper", PAPERS)
def test_settings_stand_on_the_page_of_their_paper(paper: str, conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, f"papers/{paper}", tmp_path)
    for scale in ("paper", "reduced"):
        assert settings_table(select(paper), scale) in text
    assert "<!-- settings of" not in text


def test_the_gallery_has_every_figure_and_leads_to_the_page(conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, "gallery", tmp_path)
    figures = [f for scale in ("paper", "reduced") for f in Path("figures", scale).glob("*.png")]
    made = [f"gallery/{f.parent.name}_{f.stem}.webp" for f in figures]
    assert sorted(re.findall(r'src="([^"]+)"', text)) == sorted(made)
    assert all((tmp_path / name).is_file() for name in made)
    assert 'href="report/reduced/index.html#fedacs-fig7"' in text


def test_figures_of_the_site_are_drawn_again_as_svg(conf: dict[str, Any], tmp_path: Path) -> None:
    png = Path("figures/paper/fedacs_fig1.png")
    artifact = next(a for a in artifacts() if a.id == "fedacs/fig1")
    address = conf["vector"](tmp_path, artifact, png)
    made = tmp_path / "figures/paper/fedacs_fig1.svg"
    assert address == "../../figures/paper/fedacs_fig1.svg"
    assert made.read_text(encoding="utf-8").count("<path") > 20
    os.utime(made, (2**33, 2**33))
    before = made.stat().st_mtime
    conf["vector"](tmp_path, artifact, png)
    assert made.stat().st_mtime == before, "what is there and newer stays"


def test_files_that_a_page_links_to_come_along(conf: dict[str, Any], tmp_path: Path) -> None:
    there = conf["there"]
    assert there("docs/papers/fedacs.md", tmp_path) == "papers/fedacs.html"
    assert there("results/reduced/cells/fedacs_fig7.csv", tmp_path) == "results/reduced/cells/fedacs_fig7.csv"
    assert (tmp_path / "results/reduced/cells/fedacs_fig7.csv").is_file()
    text = '<a href="../../docs/papers/fedacs.md">x</a> <a href="#y">y</a> <a href="../paper/index.html">z</a>'
    assert conf["PLACES"].findall(text) == ["docs/papers/fedacs.md"]


def test_docstrings_are_no_markup(conf: dict[str, Any]) -> None:
    lines = ["A *b_ c| of", "`x_*`.", "", "name   what", "other   more"]
    conf["plain"](None, "", "", None, None, lines)
    assert lines[0] == r"A \*b\_ c\| of ``x_*``."
    assert lines[2:] == [".. code-block:: none", "", "   name   what", "   other   more", ""]
