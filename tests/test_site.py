"""The folder for a web server: every link in it has its target in it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from reproduce.page import site


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    one = "![picture](../figures/a.png) [up](../README.md) [deep](deep/two.md) [gone](gone.md)"
    texts = {
        "README.md": "# Start\n\n[docs](docs/), [one](docs/one.md#two), [code](LICENSE), [out](https://host/x.md)\n",
        "docs/one.md": f"# One\n\n{one}\n\n## Two\n\n[above](#one) [nowhere](#three)\n",
        "docs/deep/two.md": "# Two\n\n[one](../one.md), [outside](../../../x.md)\n",
        "figures/a.png": "picture",
        "figures/b.png": "nobody links here",
        "LICENSE": "MIT",
    }
    for name, text in texts.items():
        (tmp_path / "repository" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / name).write_text(text)
    return tmp_path / "repository"


def links(folder: Path) -> dict[str, list[str]]:
    """Page -> its links to files."""
    found = {}
    for page in folder.rglob("*.html"):
        every = re.findall(r'(?:href|src)="([^"]+)"', page.read_text())
        found[str(page.relative_to(folder))] = [link for link in every if not link.startswith(("data:", "http", "#"))]
    return found


def dead_anchors(folder: Path) -> list[tuple[str, str]]:
    """(page, link) of the links to places in the site's pages that are not there."""
    texts = {page.resolve(): page.read_text() for page in folder.rglob("*.html")}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    found = []
    for page, text in texts.items():
        for link in re.findall(r'href="([^":]*#[^"]+)"', text):
            path, _, place = unescape(unquote(link)).partition("#")
            target = (page.parent / path).resolve() if path else page
            if place not in places.get(target, {place}):
                found.append((str(page.relative_to(folder.resolve())), link))
    return found


def test_a_site_has_all_that_its_pages_link_to(root: Path, tmp_path: Path) -> None:
    page = '<a href="../../docs/one.md">one</a> <img src="data:image/png;base64,xx"> <a href="#here">here</a>'
    written = site.write(tmp_path / "site", {"paper": page}, root)
    names = {str(f.relative_to(tmp_path / "site")) for f in written}
    pages = {"index.html", "docs/index.html", "docs/one.html", "docs/deep/two.html"}
    assert names == pages | {"report/paper/index.html", "figures/a.png", "LICENSE"}
    assert all(f.is_file() for f in written)
    found = links(tmp_path / "site")
    assert found["report/paper/index.html"] == ["../../docs/one.html"]
    assert "docs/one.html#two" in found["index.html"]
    dead = {
        link
        for name, targets in found.items()
        for link in targets
        if not (tmp_path / "site" / name).parent.joinpath(link.partition("#")[0]).is_file()
    }
    assert dead == {"gone.md", "../../../x.md"}
    assert set(dead_anchors(tmp_path / "site")) == {("docs/one.html", "#three"), ("report/paper/index.html", "#here")}
    assert 'href="https://host/x.md"' in (tmp_path / "site/index.html").read_text()
    assert (tmp_path / "site/figures/a.png").read_text() == "picture"


def test_a_page_begins_with_a_heading_of_the_first_level(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[a](a.md)\n")
    (tmp_path / "a.md").write_text("## The `first` \\* one\n\n### Below\n")
    site.write(tmp_path / "site", {}, tmp_path)
    text = (tmp_path / "site/a.html").read_text()
    assert "<title>The first * one</title>" in text
    assert re.findall(r"<h\d", text) == ["<h1", "<h2"]


def test_the_documents_of_this_repository_have_no_dead_links(tmp_path: Path) -> None:
    site.write(tmp_path, {})
    found = links(tmp_path)
    assert "docs/findings/fedacs.html" in found
    dead = [
        (name, link)
        for name, targets in found.items()
        for link in targets
        if not (tmp_path / name).parent.joinpath(link.partition("#")[0]).exists()
    ]
    assert dead == []
    assert dead_anchors(tmp_path) == []
