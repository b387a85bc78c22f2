"""The contents of the pages: numbers are those of the files, references lead somewhere, and all counts are the same."""

import json
import math
import re
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce.__main__ import main
from reproduce.cli.verify import tally
from reproduce.declare.paper import papers, total
from reproduce.errors import UserError
from reproduce.pages import page_numbers
from reproduce.pages.documents import CLAIMS, RULES, TEMPLATES, both_scales, claims_table, documents
from reproduce.pages.page import _facts, page
from reproduce.pages.page_numbers import Cells, lead, share
from reproduce.runs import plan, results
from reproduce.verdicts import scoreboard
from reproduce.verdicts.judging import Judgement
from reproduce.verdicts.scope import GENUINE, GROUNDS, SUBSTITUTE
from reproduce.verdicts.scoreboard import Verdict, by_ground, claims, headline
from reproduce.verdicts.verdict import JUDGED, ON_SUBSTITUTE, REFUTED, SUPPORTED

ROOT = Path(__file__).parents[2]
FOLDERS = ("reproduce", "tests", "docs", "benchmarks", "config")
LOOSE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Snakefile")]
FILES = [*LOOSE, *(f for folder in FOLDERS for f in sorted((ROOT / folder).rglob("*")))]
TEXTS = [
    f for f in FILES if f.suffix in ("", ".py", ".md", ".yaml", ".c", ".h") and f.is_file() and f != Path(__file__)
]


INTERVAL = re.compile(r"([−\d.,]+)\s\(([−\d.,]+)\sto\s([−\d.,]+)\)")


def test_pages_are_rendered_from_the_committed_cells_with_the_intervals_of_the_verdicts(
    boards: dict[str, list[Verdict]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If numbers moved, `report --docs` mends it; whether sentences still hold, a reader must say. A lead that a claim
    asks for, found in the scoreboard by its numbers per seed, has the widest interval there; and a page has no interval
    but those of leads, means and ratios."""
    told: list[tuple[Cells, list[float], tuple[float, float, float]]] = []

    def gap(a: Cells, b: Cells) -> tuple[float, float, float]:
        told.append((a, sorted((a.seeds - b.seeds).dropna()), plain(a, b)))
        return told[-1][2]

    def interval(values: list[float], *level: float) -> tuple[float, float]:
        others.append((float(np.mean(values)), *(ends := usual(values, *level))))
        return ends

    plain, usual, others = page_numbers.gap, page_numbers.t_interval, list[tuple[float, float, float]]()
    monkeypatch.setattr(page_numbers, "gap", gap)
    monkeypatch.setattr(page_numbers, "t_interval", interval)
    found, failed = documents()
    assert not failed
    pages = {f"{paper}.md" for paper in papers()}
    assert {p.name for p in found} == {f.name for f in TEMPLATES.glob("*.md")} | {"claims.md"} | pages
    for file, text in found.items():
        assert file.read_text() == text, f"{file} is not up to date: reproduce report --docs"

    judged = [(scale, v.artifact, u) for scale, board in boards.items() for v in board for u in v.each if u.random]
    compared = 0
    for a, gaps, said in told:
        of = [u for scale, artifact, u in judged if a.name == f"results/{scale}/cells/{artifact.replace('/', '_')}.csv"]
        both = [([x for x, _ in u.seeds], u.judged.value, u.judged.low, u.judged.high) for u in of]
        both += [([-x for x, _ in u.seeds], -u.judged.value, *_negative(u.judged)) for u in of]
        same = [ends for xs, *ends in both if len(xs) == len(gaps) and any(xs) and np.allclose(sorted(xs), gaps)]
        if same and None not in (widest := max(same, key=_width)):
            assert said == pytest.approx(widest, rel=1e-6), (a.name, gaps)
            compared += 1
    assert compared > 20
    shares = [[math.exp(x) for x in ends] for ends in others if max(ends) < 9]  # of the logarithms of ratios
    leads = np.array([*(said for *_, said in told), *others, *shares])
    for file in (p for p in found if p not in (CLAIMS, RULES)):
        for triple in INTERVAL.findall(found[file]):
            digits = len(triple[0].partition(".")[2])
            numbers = [float(x.replace("−", "-").replace(",", "")) for x in triple]
            near = np.abs(leads - numbers) <= 0.5001 * 10**-digits
            assert near.all(axis=1).any(), (file, triple)


def _negative(judged: Judgement) -> tuple[float | None, float | None]:
    return (None if judged.high is None else -judged.high), (None if judged.low is None else -judged.low)


def _width(ends: list[float | None]) -> float:
    _, low, high = ends
    return math.inf if low is None or high is None else high - low


def test_a_page_of_damaged_cells_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = tmp_path / "results/paper/cells/fedacs_fig1.csv"
    cells.parent.mkdir(parents=True)
    cells.write_text("algorithm,seed\n")
    templates = tmp_path / TEMPLATES
    templates.mkdir(parents=True)
    (templates / "fine.md").write_text("fine\n")
    (templates / "odd.md").write_text("{{ cells('paper/fedacs_fig1').mean() }}\n")
    (tmp_path / RULES).write_text("<!-- both scales -->\n<!-- end of both scales -->\n")
    monkeypatch.setattr(scoreboard, "claims_files", list)
    assert main(["report", "--docs"]) == 2
    assert (tmp_path / "docs/papers/fine.md").read_text() == "fine\n"
    assert not (tmp_path / "docs/papers/odd.md").exists()
    said = capsys.readouterr().err
    why = "results/paper/cells/fedacs_fig1.csv: fedacs_fig1.csv has no record fedacs_fig1.json; render it again"
    assert f"error: {TEMPLATES}/odd.md: {why}" in said


def toy() -> Cells:
    rows = [
        ("a", "0.30", 0, 1.0),
        ("a", "0.30", 1, 3.0),
        ("b", "0.30", 0, 0.0),
        ("b", "0.30", 1, 1.0),
        ("a", "2", 0, 9.0),
    ]
    return Cells(pd.DataFrame(rows, columns=["algorithm", "n", "seed", "value"]), "toy")


def test_what_is_said_of_a_selection() -> None:
    a, b = toy()(algorithm="a", n=0.3), toy()(algorithm="b")
    assert (a.mean(), a.interval(2)) == ("2.0", "2.00 (−10.71 to 14.71)")  # t(0.975, 1) = 12.706, standard error 1
    half = 12.7062047 * math.log(6 / 4) / 2  # of the logarithms of 4 and 6, whose standard error is log(6 / 4) / 2
    b_ = Cells(b.rows.assign(value=[0.25, 0.5]), "toy")
    assert share(a, b_) == f"{24**0.5:.2f} ({24**0.5 / math.exp(half):.2f} to {24**0.5 * math.exp(half):.2f})"
    single = Cells(a.rows[:1], "toy"), Cells(b_.rows[:1], "toy")
    assert (single[0].interval(), share(*single)) == ("1.0", "4.00")
    assert toy()(n="0.3").range(1) == "0.5 to 2.0"
    assert lead(a, b) == "1.5 (−4.9 to 7.9)"  # t(0.975, 1) = 12.706, standard error 0.5
    more = pd.concat([a.rows, a.rows.assign(seed=[2, 3], value=float("nan"))])
    assert lead(Cells(more, "toy"), b) == lead(a, b), "seeds that one of them lacks do not count"
    with pytest.raises(UserError, match="none that diverged"):
        lead(Cells(more, "toy"), Cells(pd.concat([b.rows, b.rows.assign(seed=[2, 3])]), "toy"))
    censored = Cells(a.rows.assign(censored=["False", "True"]), "toy")
    assert censored.mean(0) == "> 2"
    assert censored.interval(0) == "> 2"
    assert [share(*pair) for pair in ((censored, b), (b, censored), (censored, censored))] == ["> 4.00", "< 0.25", "–"]
    assert Cells(a.rows.assign(value=[1.0, float("nan")]), "toy").interval() == "1 of 2 diverged"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda c: c(m=1), "no column 'm'"),
        (lambda c: c(algorithm="c"), "no rows with algorithm = c"),
        (lambda c: c(algorithm="a").mean(), "more than one setting"),
        (lambda c: lead(c(algorithm="a", n=2), c(algorithm="b")), "two seeds that both have"),
    ],
)
def test_a_selection_that_says_nothing_is_refused(ask: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        ask(toy())  # type: ignore[operator]


def test_how_often_a_stand_in_was_right() -> None:
    """Where it supports what is supported on the data, and refutes what is refuted there."""
    on = ON_SUBSTITUTE[SUPPORTED], ON_SUBSTITUTE[REFUTED]
    counts = dict(zip(product((SUPPORTED, REFUTED), on), (3, 2, 1, 5), strict=True))
    pairs = [pair for pair, n in counts.items() for _ in range(n)]
    grounds = ((0, "paper", GENUINE), (1, "reduced", SUBSTITUTE))
    boards = {
        scale: [Verdict(pair[k], id="p/c", artifact="p/fig1", rests_on=ground) for pair in pairs]
        for k, scale, ground in grounds
    }
    said = both_scales(boards)
    assert f"*{on[0]}* was right 3 of 4 times, *{on[1]}* was right 5 of 7 times." in said
    assert f"| {on[0]} | 3 | 1 | 4 |\n| {on[1]} | 2 | 5 | 7 |" in said


def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown viewer gives to the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in heads}


def test_links_between_pages_resolve() -> None:
    broken = []
    for f in TEXTS:
        text = f.read_text()
        links = re.findall(r"\]\(([^)#\s:]*)(?:#([\w-]+))?\)", text) if f.suffix == ".md" else []
        here = ROOT / "docs/papers" if f.is_relative_to(ROOT / TEMPLATES) or f.name == "page.md" else f.parent
        if f == ROOT / TEMPLATES / "README.md":
            here = ROOT
        itself = here / (f"{f.parent.name}.md" if f.name == "page.md" else f.name)  # the page made of a template
        links = [(path, anchor) for path, anchor in links if not path.startswith("../../actions/")]  # of the host
        targets = [((here / path).resolve() if path else itself, anchor) for path, anchor in links]
        targets += [(ROOT / path, anchor) for path, anchor in re.findall(r"(docs/papers/\w+\.md)(?:#([\w-]+))?", text)]
        for target, anchor in targets:
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{f.relative_to(ROOT)}: {target} {anchor}")
    assert broken == []


def test_coverage() -> None:
    """The counts of figures and tables are those of the papers; what is declared is counted, not written down."""
    assert {key: (paper.figures, paper.tables) for key, paper in papers().items()} == {
        "defedavg": (7, 2), "dynamic_init": (4, 16), "fedacs": (10, 5), "fedagrac": (5, 6), "fiarse": (8, 7),
    }  # fmt: skip
    for paper in papers().values():
        assert paper.with_numbers("reduced") <= len(paper.declared)
        numbers = {int(f.stem.removeprefix("table")) for f in paper.folder.glob("reported/table*.csv")}
        assert max(numbers) <= paper.tables
    assert total() == f"{sum(len(paper.declared) for paper in papers().values())} of 70"


SCALES = ("paper", "reduced")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def numbers(line: str) -> list[int]:
    return [int(cell.replace(",", "")) for cell in re.split(r" *\| *", line) if re.fullmatch(r"[\d,]+", cell)]


@pytest.mark.parametrize("scale", SCALES)
def test_claims(scale: str, boards: dict[str, list[Verdict]]) -> None:
    """In the scoreboard, in the sentence below it, by what they rest on, on the page, in README."""
    board = boards[scale]
    told = Counter(v.verdict for v in board if v.rests_on != "check")
    total, judged = told.total(), sum(told[word] for word in JUDGED)
    assert {row[0]: int(row[-1]) for row in tally(claims(board))[1]} == {**told, "all": total}
    assert f"{judged} of {total} claims are evaluated." in headline(scale, board)
    grounds = sum((found for _, found in by_ground(board)), Counter[str]())
    assert grounds == Counter({word: n for word, n in told.items() if word != "not run"})
    (key,) = re.findall(r'<p class="key">(.*?)</p>', page(scale, board, address=lambda artifact, png: ""), re.DOTALL)
    said = re.findall(r"([a-z][a-z -]*[a-z])</span> (\d+)|of (\d+) claims", key)
    assert {word or "all": int(n or every) for word, n, every in said if int(n or every)} == {**told, "all": total}
    if scale == "paper":
        readme = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- claims -->")[1]
        last = next(line for line in readme.splitlines() if line.startswith("| all |"))
        words = [word for word in JUDGED if word not in ON_SUBSTITUTE.values()]
        assert numbers(last)[-2 - len(words) :] == [total, judged, *(told[word] for word in words)]
        assert f"{told['not run']} claims are not run" in readme
        assert claims_table(boards) in readme


@pytest.mark.parametrize("scale", SCALES)
def test_runs_of_an_artifact(scale: str) -> None:
    """Its card tells of its results, and of what they rest on."""
    for a in plan.select(None):
        facts = dict(_facts(a, scale))
        there = sum(bool(run.stored) for run in results.read_by(scale, a.id))
        declared = sum(len(p.experiments) * len(p.seeds) for p in a.panels(scale))
        assert there <= declared, a.id
        assert ("Results" in facts) == bool(there), a.id
        if there:
            assert int(facts["Results"].split(" run")[0].replace(",", "")) == there, a.id
            assert facts["Rests on"].partition(";")[0].partition(" and ")[0] in GROUNDS, a.id


@pytest.mark.parametrize("scale", SCALES)
def test_artifacts_with_numbers(
    scale: str, boards: dict[str, list[Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list, in README, above the scoreboard."""
    assert main(["list", "--json", "--scale", scale]) == 0
    listed = json.loads(capsys.readouterr().out)
    has = Counter(a["paper"] for a in listed if a["made"] != "no" and re.search(r"/(fig|table)\d", a["id"]))
    column = {"paper": 1, "reduced": 2}[scale]
    rows = {p: next(r for r in claims_table(boards).splitlines() if f"/{p}.md" in r) for p in papers()}
    assert {paper: numbers(row)[column] for paper, row in rows.items()} == dict(has)
    assert f"{has.total()} have numbers at this scale." in headline(scale, boards[scale])[0]


def test_what_was_run_leaves_no_training_out() -> None:
    """Each is in one line of README's table."""
    calls = re.findall(r"minutes\((.*?)\)", (TEMPLATES / "README.md").read_text(encoding="utf-8"))
    lines = [named for call in calls if len(named := re.findall(r'"(.*?)"', call)) > 1]  # the others are totals
    for job in (j for scale in SCALES for j in plan.jobs(scale) if results.standing(j).stored):
        mine = [names for scale, paper, *names in lines if (scale, paper) == (job.scale, job.paper)]
        assert sum(job.name.startswith(tuple(names) or "") for names in mine) == 1, job.output
