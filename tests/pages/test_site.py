"""The site of the documents, as far as it can be tried without Sphinx; `make docs` is the whole test."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.declare.paper import artifacts
from reproduce.pages.page import unrun

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def conf() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "conf.py"))


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


@pytest.mark.parametrize("document", ["index", "contributing", "changelog", "across_table", "papers/across", "play"])
def test_links_of_a_text_lead_from_its_place_in_the_site(document: str, conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, document, tmp_path)
    assert "<!-- text of" not in text
    assert "play/reduced/across.md" not in "".join(conf["LINK"].findall(text))
    targets = [(DOCS / document).parent / link.partition("#")[0] for link in conf["LINK"].findall(text)]
    assert [str(t) for t in targets if not t.exists()] == []


def test_links_to_markdown_lead_to_documents(conf: dict[str, Any], tmp_path: Path) -> None:
    """Sphinx makes a page of a document alone: of a table, or of a file outside of its folder, it knows none."""
    known = {f for f in DOCS.rglob("*.md") if f.parent.name != "templates"}
    for file in known:
        text = read(conf, file.relative_to(DOCS).with_suffix("").as_posix(), tmp_path)
        links = [link.partition("#")[0] for link in conf["LINK"].findall(text)]
        led = [link for link in links if link.endswith(".md") and (file.parent / link).resolve() not in known]
        assert (file.name, led) == (file.name, [])


def test_a_dead_link_of_the_site_is_named(conf: dict[str, Any], tmp_path: Path) -> None:
    pages = {
        "index.html": '<p id="top"><a href="a/b.html#there">1</a><a href="a/b.html#gone">2</a><a href="#top">3</a>'
        '<a href="#nowhere">4</a><a href="https://host/x.html#y">5</a><a href="#?verdict=inconclusive">6</a></p>',
        "a/b.html": '<h1 id="there">A title</h1><img src="../b%20c.png"><img src="c.png"><a href="../index.html">7</a>',
        "b c.png": "",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert conf["dead"](tmp_path) == ["a/b.html: c.png", "index.html: #nowhere", "index.html: a/b.html#gone"]


def test_the_gallery_has_every_figure_and_leads_to_the_page(conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, "gallery", tmp_path)
    figures = [f for scale in ("paper", "reduced") for f in Path("figures", scale).glob("*.png")]
    of = {f"{a.paper}_{a.name}": a for a in artifacts()}
    figures = [f for f in figures if f.stem not in of or not unrun(of[f.stem], f.parent.name)]
    made = [f"gallery/{f.parent.name}_{f.stem}.webp" for f in figures]
    assert sorted(re.findall(r'src="([^"]+)"', text)) == sorted(made)
    assert all((tmp_path / name).is_file() for name in made)
    assert 'href="report/reduced/index.html#fedacs-fig7"' in text
