"""The site of the documents, as far as it can be tried without Sphinx; `make docs` is the whole test."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
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


def test_links_to_markdown_lead_to_documents(conf: dict[str, Any]) -> None:
    """Sphinx makes a page of a document alone: of a table it knows none."""
    files = [f for f in DOCS.rglob("*.md") if f.parent.name != "templates"]
    known = {*files, *(ROOT / name for name in conf["DOCUMENTS"])}
    links = [(f, link.partition("#")[0]) for f in files for link in conf["LINK"].findall(f.read_text("utf-8"))]
    led = [(f.name, link) for f, link in links if link.endswith(".md") and (f.parent / link).resolve() not in known]
    assert led == []


def test_the_gallery_has_every_figure_and_leads_to_the_page(conf: dict[str, Any], tmp_path: Path) -> None:
    text = read(conf, "gallery", tmp_path)
    figures = [f for scale in ("paper", "reduced") for f in Path("figures", scale).glob("*.png")]
    made = [f"gallery/{f.parent.name}_{f.stem}.webp" for f in figures]
    assert sorted(re.findall(r'src="([^"]+)"', text)) == sorted(made)
    assert all((tmp_path / name).is_file() for name in made)
    assert 'href="report/reduced/index.html#fedacs-fig7"' in text
