"""A folder that a web server can serve as it is: the pages of all scales, the documents, and every file they link to.

Paths are those of the repository, so that links keep their meaning; a document (`*.md`) becomes a page (`*.html`), a
folder of documents a list of them.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from reproduce import files
from reproduce.page.markdown import first_heading, to_html
from reproduce.page.page import filled

START = Path("README.md")
_LINK = re.compile(r'(?<=href=")[^"]+|(?<=src=")[^"]+')


def write(folder: Path, pages: Mapping[str, str], root: Path = Path()) -> list[Path]:
    """Write the site into `folder`; returns its files. pages: scale -> the HTML of its page.

    It begins with README.md. Whatever of the repository is linked to comes along, documents with all that they link to;
    a link to what is not there stays as it is.
    """
    made = {Path("report", scale, "index.html"): text for scale, text in pages.items()}
    made[_place(root, START)] = _page(root, START, tuple(pages))
    copied: dict[Path, None] = {}
    todo = list(made)
    while todo:
        name = todo.pop()
        for source in _linked(root, name, made[name]):
            target = _place(root, source)
            if target in made or target in copied:
                continue
            if target == source:
                copied[target] = None
            else:
                made[target] = _page(root, source, tuple(pages))
                todo.append(target)
    written = [files.write_text(folder / name, _relinked(root, name, text)) for name, text in made.items()]
    return written + [files.write(folder / name, partial(_copy, root / name)) for name in copied]


def _page(root: Path, source: Path, scales: tuple[str, ...]) -> str:
    """A document, or the list of a folder's documents, as HTML whose links are still those of the repository."""
    place = _place(root, source)
    if (root / source).is_dir():
        names = sorted(f.name for f in (root / source).glob("*.md"))
        text = f"# {source.as_posix()}\n\n" + "\n".join(f"- [{name}]({name})" for name in names)
    else:
        text = files.read_text(root / source)
    level, title = first_heading(text) or (1, str(source))
    up = "../" * (len(place.parts) - 1)
    body = to_html(text, top=2 - level, taken=["main"])  # tables begin with the second level, a page with the first
    return filled("document.html", title=title, top=up, scales=scales, body=body)


def _place(root: Path, source: Path) -> Path:
    """Where a file or folder of the repository is in the site."""
    if source == START:
        return Path("index.html")
    if (root / source).is_dir():
        return source / "index.html"
    return source.with_suffix(".html") if source.suffix == ".md" else source


def _linked(root: Path, name: Path, text: str) -> list[Path]:
    """The files and folders of the repository that a page links to."""
    found = dict.fromkeys(_source(name, link) for link in _LINK.findall(text))
    return [source for source in found if source and (root / source).exists()]


def _relinked(root: Path, name: Path, text: str) -> str:
    """The page with links to where things are in the site."""

    def link(match: re.Match[str]) -> str:
        source = _source(name, match[0])
        if not source or not (root / source).exists():
            return match[0]
        fragment = urlsplit(match[0]).fragment
        return os.path.relpath(_place(root, source), name.parent) + (f"#{fragment}" if fragment else "")

    return _LINK.sub(link, text)


def _source(name: Path, link: str) -> Path | None:
    """The path in the repository that a link of the page `name` means; None for other hosts and places in the page."""
    if link.startswith("data:"):
        return None
    parts = urlsplit(html.unescape(link))
    if parts.scheme or not parts.path:
        return None
    path = Path(os.path.normpath(name.parent / unquote(parts.path)))
    return None if path.is_absolute() or ".." in path.parts else path


def _copy(source: Path, file: IO[bytes]) -> None:
    file.write(files.read_bytes(source))
