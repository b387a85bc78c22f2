"""The site (`make docs`): the documents, the API from the docstrings, a gallery, and the report pages of all scales.

Sphinx reads `docs/`, MyST its Markdown. Only two things are loaded from another host, in the reader's browser: Mermaid
for the diagram, and MathJax on pages with formulas. `tests/pages/test_site.py` reads this file without Sphinx.
"""

from __future__ import annotations

import dataclasses
import html
import os
import re
import shutil
import tomllib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project, version = PROJECT["name"], PROJECT["version"]
author = copyright = PROJECT["authors"][0]["name"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_copybutton", "sphinxcontrib.mermaid"]
exclude_patterns = ["papers/templates"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 6
mermaid_fullscreen, mermaid_height = False, "auto"
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["static"]
templates_path = ["templates"]
html_sidebars = {
    "**": [f"sidebar/{n}.html" for n in ("brand", "search", "scroll-start", "pages", "navigation", "scroll-end")]
}
html_css_files = ["site.css"]
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

SCALES = "paper,reduced"
"""Whose report pages are made (`-D scales=` makes none: they take minutes, as all figures are drawn as SVG)."""
DOCUMENTS = {
    **{f"{name}.md": f"docs/{name.lower()}.md" for name in ("CONTRIBUTING", "CHANGELOG", "AGENTS", "CODE_OF_CONDUCT")},
    "play/reduced/across.md": "docs/across_table.md",
}
"""Files outside this folder that are documents of the site."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+")
"""Where a link in Markdown leads, if it is to a file."""
TABLE = re.compile(r"\[([^]]+)\]\((?:\.\./)*tables/(\w+)/(\w+)_(\w+)\.md\)")
"""A link to a table, which is no document: it is on a report page."""
PLACES = re.compile(r'(?<=href=")\.\./\.\./([^"]+)')
"""Links of a report page to files of the repository."""


def setup(app: Any) -> None:
    os.chdir(ROOT)  # results and figures are named from here
    app.add_config_value("scales", SCALES, "")
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", plain)
    app.connect("build-finished", pages)


def read(app: Any, document: str, source: list[str]) -> None:
    """Put texts of the repository in the places of `<!-- text of FILE -->`, figures in those of `<!-- figures of SCALE
    -->`, settings in those of `<!-- settings of PAPER at SCALE -->`, and let links to files that became documents lead
    there."""
    here = Path("docs", document).parent
    text = re.sub(r"<!-- text of (\S+) -->", lambda match: moved(Path(match[1]), here), source[0])
    text = re.sub(r"<!-- settings of (\w+) at (\w+) -->", lambda match: settings(*match.groups()), text)
    text = re.sub(r"<!-- figures of (\w+) -->", lambda match: gallery(match[1], Path(app.outdir)), text)
    up = os.path.relpath("docs", here)
    text = TABLE.sub(lambda found: _on_page(found, up), text)
    for file, name in DOCUMENTS.items():
        text = text.replace(f"]({os.path.relpath(file, here)})", f"]({os.path.relpath(name, here)})")
    source[0] = text


def _on_page(found: re.Match[str], up: str) -> str:
    text, scale, stem, name = found.groups()
    return f'<a href="{up}/report/{scale}/index.html#{stem}-{name}">{text}</a>'


def moved(file: Path, folder: Path) -> str:
    """The text of a file below its title and badges, with its links as they are from another folder."""
    _, _, text = re.sub(r"(?m)^\[!\[.*badge.*\n", "", (ROOT / file).read_text(encoding="utf-8")).partition("\n")
    return LINK.sub(lambda match: os.path.relpath(file.parent / match[0], folder), text)


def settings(paper: str, scale: str) -> str:
    """Markdown: the settings of a paper at a scale, read from its declarations."""
    from reproduce.runs.plan import select

    return f"**{scale.capitalize()} scale**\n\n{settings_table(select(paper), scale)}"


SETTINGS = ("tables and figures", "data", "model", "partition", "clients", "batch", "local steps, uplink",
            "learning rates", "length", "seeds")  # fmt: skip
GROUPED = ("data", "model", "clients", "batch", "length")
"""What tells the rows of an artifact apart; the other columns list all their values."""
SHOWN = 10
"""More values than this are given by their number and ends."""


def settings_table(chosen: Iterable[Any], scale: str) -> str:
    """Markdown: one row per data set, model and length of run; artifacts with the same settings share rows."""
    from reproduce.text import markdown

    groups: dict[tuple[str, ...], tuple[list[str], tuple[Any, ...]]] = {}
    for artifact in chosen:
        panels = artifact.panels(scale)
        groups.setdefault(tuple(p.name for p in panels), ([], panels))[0].append(artifact.name)
    untrained, _ = groups.pop((), ([], ()))
    shared: dict[tuple[str, ...], list[str]] = {}
    for names, panels in groups.values():
        rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in (_row(e, p.seeds) for p in panels for e in p.experiments):
            rows.setdefault(tuple(row[c] for c in GROUPED), []).append(row)
        for found in rows.values():
            shared.setdefault(tuple(_listed(f[c] for f in found) for c in SETTINGS[1:]), []).extend(names)
    lines = [[", ".join(names), *line] for line, names in shared.items()]
    text = (
        f"{markdown(SETTINGS, lines)}\n\nPartitions, local steps and uplinks are named by the records of "
        "`reproduce/partitions` and `reproduce/systems`, with the\nfields that differ from their defaults."
    )
    return text + (f"\n\nThese need no training: {', '.join(untrained)}." if untrained else "")


def short(record: Any) -> str:
    """A frozen record in one word, without the fields that have their defaults: `CappedDirichlet(0.1)`."""
    from reproduce.declare.experiment import is_default

    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return f"{record:g}" if isinstance(record, float) else str(record)
    kept = [short(getattr(record, f.name)) for f in dataclasses.fields(record) if not is_default(f, record)]
    return type(record).__name__ + (f"({', '.join(kept)})" if kept else "")


def _row(e: Any, seeds: tuple[int, ...]) -> dict[str, str]:
    problem: Any = e.problem
    clock = e.clock
    if hasattr(problem, "data"):
        name = problem.data if isinstance(problem.data, str) else type(problem.data).__name__
        data = f"{name}, {problem.train_samples:,} samples" if problem.train_samples else name
        model, split = f"{type(problem.model).__name__}, {problem.model.parameters:,}", short(problem.partition)
    else:
        data, model, split = "quadratic", f"{problem.dim} coordinates", "" if problem.minimisers else "N(0, I)"
    if hasattr(clock, "policy"):
        work = f"n = {clock.policy.n}, K = {e.system.work.k}"
        length = f"{clock.horizon:g} virtual s" if clock.horizon else f"{clock.aggregations} aggregations"
    else:
        link = short(e.system.link)
        work = short(e.system.work) + ("" if link == "Reliable" else f", {link}")
        length = f"{clock.sessions} x {clock.rounds}" if hasattr(clock, "sessions") else f"{clock.rounds}"
    if getattr(clock, "until", None):
        target = clock.until[1] if isinstance(clock.until, tuple) else clock.until.value
        length += f", to {target:g} %"
    return {
        "data": data, "model": model, "partition": split, "clients": str(problem.clients),
        "batch": str(problem.batches.size) if hasattr(problem, "data") else "all", "local steps, uplink": work,
        "learning rates": f"{e.algorithm.lr:g}", "length": length, "seeds": str(len(seeds)),
    }  # fmt: skip


def _listed(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(v for v in values if v))
    if len(found) <= SHOWN:
        return "; ".join(found)
    return f"{found[0]} ... {found[-1]} ({len(found)})"


def gallery(scale: str, folder: Path) -> str:
    """The figures of a scale, small. An artifact's leads to its place on the report page, another one is just shown."""
    from reproduce.declare.paper import artifacts, papers
    from reproduce.pages.page import label, small, unrun

    made = {f"{a.paper}_{a.name}": a for a in artifacts()}
    empty = {stem for stem, a in made.items() if unrun(a, scale)}
    files = {f.stem: f for f in Path("figures", scale).glob("*.png") if f.stem not in empty}
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    found = []
    for stem in [*sorted(files.keys() - made.keys()), *(stem for stem in made if stem in files)]:
        image = f"gallery/{scale}_{stem}.webp"
        (folder / image).write_bytes(small(files[stem]))
        name, title, place, made_by = stem.capitalize(), "", image, "report --docs"
        if a := made.get(stem):
            name, title = f"{papers()[a.paper].name}, {label(a)}", html.escape(a.title)
            place = f"report/{scale}/index.html#{a.paper}-{a.name}"
            made_by = f"render {a.id}" + f" --scale {scale}" * (scale != "paper")
        found.append(
            f'<figure><a href="{place}"><img src="{image}" alt="{name}" loading="lazy"></a>'
            f"<figcaption><strong>{name}</strong> {title}<br><code>reproduce {made_by}</code></figcaption></figure>"
        )
    return "\n".join(['<div class="gallery">', *found, "</div>"])


def plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain English: nothing in them is markup but `code`, and a list or an example keeps its lines."""
    made: list[str] = []
    for block in "\n".join(lines).split("\n\n"):
        if re.search(r"^(    |from |\w+ = |[\w, ]+   )", block, flags=re.MULTILINE):
            made += [".. code-block:: none", "", *("   " + line for line in block.split("\n")), ""]
            continue
        text = re.sub(r"([*|_\\])", r"\\\1", " ".join(block.split()))
        made += [re.sub(r"`([^`]+)`", lambda code: f"``{code[1]}``".replace("\\", ""), text), ""]
    lines[:] = made


def pages(app: Any, exception: Exception | None) -> None:
    """Write the report pages into the site, with every file that they link to. ExtensionError for a dead link."""
    from sphinx.errors import ExtensionError

    from reproduce.declare.paper import papers
    from reproduce.pages.page import page, sheet
    from reproduce.verdicts.scoreboard import scoreboard

    site = Path(app.outdir)
    scales = [s for s in app.config.scales.split(",") if s and not exception]
    for scale in scales:
        others = [s for s in scales if s != scale]
        board = scoreboard(scale)
        text = page(scale, board, others, home="../../index.html", address=partial(vector, site))
        target = site / "report" / scale / "index.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        text = PLACES.sub(lambda match: f"../../{there(match[1], site)}", text)
        target.write_text(text, encoding="utf-8")
        for paper in papers() if scale != "smoke" else ():
            target.with_name(f"{paper}.html").write_text(sheet(paper, scale, board), encoding="utf-8")
    if scales and (found := dead(site)):
        raise ExtensionError(f"{len(found)} links of the site lead nowhere: {'; '.join(found[:20])}")


def dead(site: Path) -> list[str]:
    """Links of the pages under a folder to files or places in a page that are not there: "faq.html: need.html#disk"."""
    from bs4 import BeautifulSoup

    pages = {file.resolve(): BeautifulSoup(file.read_bytes(), "html.parser") for file in sorted(site.rglob("*.html"))}
    places = {file: {tag.get("id") or tag.get("name") for tag in page.find_all()} for file, page in pages.items()}
    found = []
    for file, page in pages.items():
        links = {tag[name] for name in ("href", "src") for tag in page.find_all(**{name: True})}
        for link in sorted(links):
            kind, host, path, _, place = urlsplit(link)[:5]
            if kind or host or place.startswith("?"):  # of another host, or a choice of what a page shows
                continue
            led = (file.parent / unquote(path)).resolve() if path else file
            if not led.is_file() or (place and led in places and unquote(place) not in places[led]):
                found.append(f"{file.relative_to(site.resolve())}: {link}")
    return found


def vector(site: Path, artifact: Any, png: Path) -> str:
    """Draw a figure again from the committed results, as SVG into the site, if it is not there or older than its PNG;
    its address as seen from a report page."""
    from reproduce.report import drawing, figures, render
    from reproduce.runs import plan

    scale, file = png.parent.name, site / png.with_suffix(".svg")
    if not file.is_file() or file.stat().st_mtime < png.stat().st_mtime:
        file.parent.mkdir(parents=True, exist_ok=True)
        curves = render.read(artifact, scale, plan.sources(scale, artifact.id), plan.seeds_read(scale, artifact.id))
        with figures.style():
            drawn = drawing.draw(artifact, curves, render.artifact_cells(artifact, curves))
            figures.lay_out(drawn)
            drawn.savefig(file, format="svg", metadata={"Date": None})
            drawn.clear()
    return f"../../{png.with_suffix('.svg').as_posix()}"


def there(name: str, folder: Path) -> str:
    """Where a file of the repository is in the site: a document is a page, whatever else is copied."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/").replace(".md", ".html")
    if Path(name).is_file() and not name.startswith("report/"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, folder / name)
    return name
