"""The page of a scale, with papers, their tables and figures, and the claims about each; and a review sheet of each
paper, on one printed page: question, verdict, three numbers, a figure, what was not run.

Each is one HTML file, with the figures, the style and a script inside it, that asks no other host.
"""

import base64
import html
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from PIL import Image
from tqdm import tqdm

from reproduce import __version__
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import PACKAGE
from reproduce.declare.paper import has_numbers, papers
from reproduce.errors import UserError
from reproduce.files import read_text
from reproduce.pages.agreement import PICTURE
from reproduce.pages.overview import SVG, alt, tiles
from reproduce.pages.summary import Summary, register, summary
from reproduce.report.histories import one_split
from reproduce.report.names import pretty
from reproduce.runs import outdated, plan, results
from reproduce.runs.catalogue import catalogue, statuses
from reproduce.runs.provenance import commit
from reproduce.text import counted_seeds, duration, short
from reproduce.verdicts import wording
from reproduce.verdicts.scope import CHECK, GROUNDS, ground
from reproduce.verdicts.scoreboard import Verdict, by_ground, claims, counts, headline
from reproduce.verdicts.verdict import NOT_RUN, ON_SUBSTITUTE, SIGNS, VERDICTS

KINDS = {".md": "Markdown", ".pdf": "PDF", ".png": "PNG", ".txt": "caption and notes", ".tex": "LaTeX", ".csv": "CSV"}
CODE = {"runs": "configuration", "artifacts": "declaration", "measures": "measures", "pictures": "picture"}
SHOWN = 3
"""Numbers on a sheet."""
SHRUNK = 0.7
"""Of a figure's width on the page, which with all its figures is to stay under three megabytes."""


def inlined(artifact: Artifact | None, png: Path) -> str:
    """The address of a figure that lies inside the page."""
    return f"data:image/webp;base64,{base64.b64encode(small(png)).decode()}"


def contents(
    scale: str, verdicts: Sequence[Verdict], address: Callable[[Artifact, Path], str] = inlined
) -> list[dict[str, Any]]:
    """The papers of a scale, for the template. said: what came out, nothing at smoke scale. address: of a figure, by
    its PNG."""
    parts = []
    for paper, of in papers().items():
        artifacts = tqdm(of.artifacts, paper, leave=False, disable=None)
        items = [item(a, scale, [v for v in verdicts if v.artifact == a.id], address) for a in artifacts]
        head = {"about": of, "said": summarised(paper, scale, verdicts)}
        parts.append({"key": paper, **head, "items": items, "count": sum((i["count"] for i in items), Counter[str]())})
    return parts


def summarised(paper: str, scale: str, verdicts: Sequence[Verdict]) -> Summary:
    """Question, answer and sentences; where they cannot be told, why."""
    try:
        return summary(paper, scale, verdicts) if scale in ("paper", "reduced") else Summary("", "", {})
    except UserError as error:
        return Summary(f"The summary is not available: {error}", "", {})


def across(scale: str) -> str:
    """The algorithms by benchmarks as a table (HTML), if they were played at the scale, else ""."""
    file = Path(f"play/{scale}/across.md")
    return to_html(read_text(file).partition("\n")[2], "Algorithms by benchmark") if file.is_file() else ""


def item(
    artifact: Artifact, scale: str, verdicts: Sequence[Verdict], address: Callable[[Artifact, Path], str]
) -> dict[str, Any]:
    """An artifact for the template: its figure or table if it is made, and where it comes from. facts: (name, text) of
    its results; links: (text, path in the repository) of files that are there."""
    first = Path(plan.outputs(scale, artifact.id)[0])
    shown: dict[str, str] = {}
    if without := unrun(artifact, scale):
        shown = {"table": f"<p>{without}</p>"}
    elif first.is_file() and artifact.draw:
        caption = first.with_suffix(".txt")
        line = read_text(caption).partition("\n")[0] if caption.is_file() else f"{artifact.title}."
        shown = {"image": address(artifact, first.with_suffix(".png")), "caption": line}
    elif first.is_file():  # without its title, which is the heading on the page already
        shown = {"table": to_html(read_text(first.with_suffix(".md")).partition("\n")[2], label(artifact))}
    named = {"artifact": artifact, "key": artifact.id.replace("/", "-"), "label": label(artifact)}
    ordered = sorted(verdicts, key=lambda v: VERDICTS.index(v.verdict))
    judged = {"verdicts": ordered, "count": counts(verdicts), "command": f"snakemake {first} --cores 2"}
    origin = {"facts": _facts(artifact, scale), "links": _links(artifact, scale)}
    return {**named, **judged, **origin, "made": bool(shown), **shown}


def unrun(artifact: Artifact, scale: str) -> str:
    """The reason why a figure has no number of ours; "" if it has some."""
    jobs = plan.artifact_jobs(scale, artifact.id)
    if not artifact.draw or not jobs or has_numbers(scale, artifact.id):
        return ""
    lacking = dict.fromkeys(pretty(name) for job in jobs for name in plan.lacking(job))
    needs = f": data that is not here ({', '.join(lacking)})" if lacking else ""
    return f"Nothing of it was run at this scale{needs}."


def small(file: Path) -> bytes:
    """A picture as WebP, small enough for a page with all of them."""
    with Image.open(file) as picture:
        size = round(SHRUNK * picture.width), round(SHRUNK * picture.height)
        shrunk = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    packed = io.BytesIO()
    shrunk.save(packed, "WEBP", method=6, quality=83)  # at 80 faint bands turn grey
    return packed.getvalue()


def label(artifact: Artifact) -> str:
    """ "Figure 6", "Table 1"; those that no paper has by their name."""
    match = re.fullmatch(r"(fig|table)(\d+)", artifact.name)
    return f"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}" if match else artifact.name.capitalize()


def template(name: str) -> Any:
    """A template of this folder with the filters that it may use."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    like = {other: word for word, other in ON_SUBSTITUTE.items()}
    environment.filters |= {"key": key, "numbers": numbers, "reasons": reasons}
    environment.filters["inline"] = lambda text: to_html(text).strip().removeprefix("<p>").removesuffix("</p>")
    environment.filters["css"] = lambda verdict: str(like.get(verdict, verdict)).replace(" ", "-")
    return environment.get_template(name)


def page(scale: str, verdicts: Sequence[Verdict], others: Sequence[str] = (), home: str = "", **more: Any) -> str:
    """The page as HTML. others: scales whose pages lie beside this one. home: where the documents begin, on a site.
    more: `address` of `contents`, where they lie beside the page."""
    shown, total = contents(scale, verdicts, **more), counts(verdicts)
    return template("page.html").render(
        scale=scale,
        papers=shown,
        total=total,
        statements=len(verdicts),
        check=CHECK,
        results=results.tally(statuses(catalogue(scale).jobs)),
        headline=headline(scale, verdicts),
        refused=outdated.refused(scale),
        grounds=by_ground(verdicts),
        verdicts=[word for word in VERDICTS if total[word] or word == VERDICTS[-1]],
        signs=SIGNS,
        overview=read_text(SVG).partition("<svg")[2] if scale == "paper" and SVG.is_file() else "",
        overview_alt=alt(tiles(verdicts)) if scale == "paper" else "",
        agreement=inlined(None, PICTURE) if scale == "paper" and PICTURE.is_file() else "",
        across=across(scale),
        others=others,
        home=home,
        base="../../",
    )


def key(v: Verdict) -> str:
    return "claim-" + re.sub(r"[^a-zA-Z0-9]+", "-", v.id)


def numbers(v: Verdict) -> dict[str, str]:
    """The deciding number, ours and the paper's, and what is required of it, as far as there are any."""
    m = v.measured
    texts = {"ours": wording.ours(v), "required": wording.demanded(m, v.ours)} if m else {}
    return {**texts, "paper": wording.deciding(v.printed, v.names)} if v.printed else texts


def reasons(v: Verdict) -> list[str]:
    """Sentences on a verdict: its reason, remarks on the printed numbers, a note."""
    evidence = "; ".join(filter(None, [wording.basis(v), wording.named(v.reason, v.names)]))
    return [s for s in (evidence, "; ".join(wording.beside_print(v)), wording.named(v.note, v.names)) if s]


def _facts(artifact: Artifact, scale: str) -> Iterable[tuple[str, str]]:
    """The ground of an artifact's numbers, and the origin of its results."""
    panels, jobs = {p.name: p for p in artifact.panels(scale)}, plan.artifact_jobs(scale, artifact.id)
    runs = results.read_by(scale, artifact.id)
    stored = [run for run in runs if run.stored]
    if not stored:
        yield "Rests on", "" if jobs else "the definitions; nothing is trained"
        return
    declared, seeds = {run.experiment for run in runs}, Counter(run.experiment for run in stored)
    names = {e: panels[j.panel.name] for j in jobs for e in j.experiments}
    grounds = {ground(names[e], e.problem) for e in seeds}
    rests = [" and ".join(g for g in reversed(GROUNDS) if g in grounds)]
    rests += [counted_seeds(min(seeds.values()), max(seeds.values()))]
    rests += ["one data partition for all seeds"] * any(map(one_split, seeds))
    rests += [f"{len(seeds)} of {len(declared)} settings are run"] * (len(seeds) < len(declared))
    yield "Rests on", "; ".join(rests)
    yield "Results", results.tally(run.status for run in stored)
    trainings = [*{id(run.stored.training): run.stored.training for run in stored if run.stored}.values()]
    yield "Commit", _several(n["git"] for n in trainings)
    yield "Device", _several(str(n.get("gpu", n.get("device", "cpu").upper())) for n in trainings)
    seconds, flops = (sum(float(n.get(k) or 0) for n in trainings) for k in ("seconds", "flops"))
    cost = [duration(seconds) if seconds else "", f"{short(flops)}FLOP" if flops else ""]
    yield "Training", ", ".join(filter(None, cost))


def _several(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(map(str, values)))
    return ", ".join(distinct[:4]) + (f" and {len(distinct) - 4} more" if len(distinct) > 4 else "")


def _links(artifact: Artifact, scale: str) -> Iterable[tuple[str, str]]:
    *pictures, cells, _ = plan.outputs(scale, artifact.id)
    folder = papers()[artifact.paper].place
    named = [(KINDS["." + Path(f).name.partition(".")[2]], f) for f in pictures]
    named += [("per-seed values (CSV)", cells), ("published numbers", f"{folder}/reported/{artifact.name}.csv")]
    named += [(text, f"{folder}/{name}.py") for name, text in CODE.items() if artifact.draw or name != "pictures"]
    for text, path in [*named, ("claims", f"{folder}/claims.yaml")]:
        if Path(path).is_file() or (PACKAGE.parent / path).is_file():
            yield text, path


# --- Markdown ---------------------------------------------------------------------------------------------------------

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
TAG = r'</?(?:thead|tbody|tr|th|td|b)(?: colspan="\d+"| align="right")?>'
TABLE = re.compile(rf"(?m)^(<table>\n(?:{TAG}|[^<])*</table>\n)")
RIGHT = ' style="text-align:right"'
NAMES = re.compile(rf"<tr>\n((?:<td>.*</td>\n)+)(?=<td{RIGHT})|<tr>\n<td>.*</td>\n")
"""Cells that name a line: those to the left before numbers to the right; the first where all are to the left."""


def to_html(text: str, name: str = "Table") -> str:
    """Returns `text`, which is Markdown, as HTML with its headings a level lower. A table scrolls in a frame of this
    name that the keyboard reaches. HTML in the text is escaped, but for <br> and the tables of `report.formats`."""
    parts = TABLE.split(text)
    parts[::2] = map(PARSER.render, parts[::2])
    parts[1::2] = (re.sub(r"(?<=>)(?=<t[dh]|</tr>)", "\n", table) for table in parts[1::2])  # as the parser writes them
    markup = re.sub(r"(</?h)(\d)", lambda h: f"{h[1]}{int(h[2]) + 1}", "".join(parts)).replace(' align="right"', RIGHT)
    markup = markup.replace("&lt;br&gt;", "<br>").replace(' style="text-align:left"', "")
    markup = markup.replace("<th colspan", '<th scope="colgroup" colspan')
    markup = re.sub(r"<th(?=>| style)", '<th scope="col"', re.sub(r"<th[^>]*></th>", "<td></td>", markup))
    markup = NAMES.sub(lambda cells: re.sub(r"<td>(.+)</td>", r'<th scope="row">\1</th>', cells[0]), markup)
    frame = f'<div class="wide" role="group" aria-label="{html.escape(name)}" tabindex="0"><table>'
    return markup.replace(RIGHT, ' class="n"').replace("<table>", frame).replace("</table>", "</table></div>")


# --- the review sheet -------------------------------------------------------------------------------------------------


def sheet(paper: str, scale: str, verdicts: Sequence[Verdict]) -> str:
    """The sheet of a paper at a scale as HTML, in one file; its address is report/SCALE/PAPER.html."""
    entry, of_paper = register(paper), [v for v in claims(verdicts) if v.paper == paper]
    every = sorted(of_paper, key=lambda v: v.id.removeprefix(f"{paper}/") not in entry["answered_by"])
    measured = [v for v in every if v.measured and v.measured.low is not None]
    firsts = [*{v.verdict: v for v in reversed(measured)}.values()][::-1]  # one of each verdict before a second
    trained = [a for a in papers()[paper].artifacts if plan.artifact_jobs(scale, a.id)]
    return template("sheet.html").render(
        paper=paper,
        scale=scale,
        about=papers()[paper],
        said=summarised(paper, scale, verdicts),
        numbers=[(v, numbers(v)) for v in [*firsts, *(v for v in measured if v not in firsts)][:SHOWN]],
        figure=_figure(trained, scale, entry["look"]),
        unrun=[label(a) for a in trained if not has_numbers(scale, a.id)],
        claims=len(of_paper),
        left=sum(v.verdict == NOT_RUN for v in of_paper),
        commit=commit(),
        version=__version__,
    )


def _figure(artifacts: Sequence[Artifact], scale: str, main: str) -> dict[str, Any]:
    """The paper's main figure, or the first one with numbers; {} if no figure has any."""
    for a in sorted(artifacts, key=lambda a: a.name != main.partition("/")[2]):
        png = Path(plan.outputs(scale, a.id)[0]).with_suffix(".png")
        if png.is_file() and not unrun(a, scale):
            return {"label": label(a), "title": a.title, "image": inlined(a, png)}
    return {}
