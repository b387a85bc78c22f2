"""A summary's sentence sees one scale and follows its claims' verdicts."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.patches import Rectangle

from reproduce.declare.paper import papers
from reproduce.errors import UserError
from reproduce.pages import overview, summary
from reproduce.pages.page import sheet
from reproduce.verdicts.scope import CHECK
from reproduce.verdicts.scoreboard import Verdict

ROOT = Path(__file__).parents[2]


def verdict(says: str, ground: str = "quadratics", name: str = "a") -> Verdict:
    rests = ground if says != "not run" else ""
    return Verdict(says, id=f"fedacs/{name}", artifact="fedacs/fig1", rests_on=rests)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ("supported supported", "supported"),
        ("supported inconclusive", "in part"),
        ("supported not_run", "in part"),
        ("supported_where_run", "supported"),
        ("supported_on_substitute_data", "supported"),
        ("supported_on_substitute_data not_supported_on_substitute_data", "in part"),
        ("refuted inconclusive", "refuted"),
        ("inconclusive not_run", "inconclusive"),
        ("not_run", "not run"),
    ],
)
def test_the_answer_is_a_word(verdicts: str, said: str) -> None:
    assert summary.word([verdict(v.replace("_", " ")) for v in verdicts.split()]) == said


@pytest.mark.parametrize("paper", papers())
def test_a_review_sheet_has_numbers_with_intervals_and_counts_what_was_not_run(
    paper: str, boards: dict[str, list[Verdict]]
) -> None:
    """Of different verdicts, as far as there are some: none is picked for what came out."""
    claims = [v for v in boards["paper"] if v.paper == paper and v.rests_on != CHECK]
    known = [v for v in claims if v.measured and v.measured.low is not None]
    text = sheet(paper, "paper", boards["paper"])
    rows = re.findall(r"<tr><td>.*<td>(.*?)</td></tr>", text)
    assert len(rows) == min(3, len(known))
    assert len(set(rows)) == min(3, len({v.verdict for v in known}))
    assert f"{sum(v.verdict == 'not run' for v in claims)} of {len(claims)} claims." in text
    assert f"@misc{{reproduce-{paper}-paper," in text


def test_a_label_is_the_weakest_verdict_and_says_whether_it_answers() -> None:
    board = {"a": verdict("supported"), "b": verdict("supported where run"), "c": verdict("inconclusive")}
    said = [summary.label(mine, board, ["b"]) for mine in (["a", "b"], ["a"], ["c"])]
    assert said == ["supported where run", "also supported", "also inconclusive"]


def test_a_side_that_paper_scale_lacks_is_that_of_reduced_scale(boards: dict[str, list[Verdict]]) -> None:
    _, told = next(row for row in summary.first_table(boards).splitlines() if "FIARSE" in row).split(" | ")
    assert re.findall(r"\*([^*]+):\*", told) == ["Inconclusive on substitute data", "Not run"]


def test_a_verdict_that_moves_makes_its_sentence_an_error(boards: dict[str, list[Verdict]]) -> None:
    for side, raw in summary.register("fedacs")["reduced"].items():
        for claim in raw["claims"][:1]:
            other = "refuted" if side != "refuted" else "supported"
            moved = [replace(v, verdict=other) if v.id == f"fedacs/{claim}" else v for v in boards["reduced"]]
            with pytest.raises(UserError, match=rf"fedacs/summary.yaml: reduced, \w+: .*{claim}.*say it anew"):
                summary.summary("fedacs", "reduced", moved)


def test_a_side_without_claims_fails_once_there_are_some(boards: dict[str, list[Verdict]]) -> None:
    board = [replace(v, verdict="refuted") if v.id.endswith("fig7-K-faster-iid") else v for v in boards["paper"]]
    with pytest.raises(UserError, match=r"summary\.yaml: paper, refuted: defedavg-fig7-K-faster-iid is refuted: say"):
        summary.summary("defedavg", "paper", board)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("{{ cells('paper/fedacs_fig7') }}", "results/reduced/cells/fedacs_paper/fedacs_fig7.csv is not there"),
        ("{{ verdict('paper/fedacs/x') }}", "'verdict' is undefined"),
        ("{{ cells('fig99') }}", "results/reduced/cells/fedacs_fig99.csv is not there"),
    ],
)
def test_a_sentence_sees_its_own_scale_alone(
    says: str, why: str, boards: dict[str, list[Verdict]], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = summary.register("fedacs")
    entry["reduced"]["supported"]["says"] = says
    monkeypatch.setattr(summary, "register", lambda paper: entry)
    with pytest.raises(UserError, match=why):
        summary.summary("fedacs", "reduced", boards["reduced"])


@pytest.mark.parametrize("text", ["- a", "{}", "question: x"])
def test_a_file_that_is_not_as_it_should_be_is_a_line(
    text: str, boards: dict[str, list[Verdict]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops the sentences of its paper, not those of others in README."""
    monkeypatch.setitem(papers()["fedacs"].__dict__, "folder", tmp_path)
    with pytest.raises(UserError, match=r"summary\.yaml is not there"):
        summary.register("fedacs")
    (tmp_path / "summary.yaml").write_text(text)
    with pytest.raises(UserError, match=r"summary\.yaml: "):
        summary.register("fedacs")
    rows = summary.first_table(boards).splitlines()[2:]
    assert [row.endswith("| – |") for row in rows] == [key == "fedacs" for key in papers()]


def test_readme_has_the_answers(boards: dict[str, list[Verdict]]) -> None:
    table = summary.first_table(boards)
    assert table in Path("README.md").read_text(encoding="utf-8")
    cells = [row.split(" | ")[1].split("<br>") for row in table.splitlines()[2:]]
    sides = [side for _, *told, _ in cells for side in told]
    assert all(re.search(r"\]\(((figures|tables)/.*)\)", last)[1] for *_, last in cells)
    sentences = [s for side in sides for s in re.split(r"\. (?=[A-Z])", re.sub(r"^\*.*?:\* ", "", side))]
    assert not [s for s in sentences if len(s.split()) > 30], "25 words and the ends of intervals"
    assert all(re.search(r"\d \(\S+ to \S+\)", " ".join(told)) for _, *told, _ in cells), "a measured effect"


def test_every_claim_is_a_segment_of_its_tile(boards: dict[str, list[Verdict]]) -> None:
    found = overview.tiles(boards["paper"])
    tiles = {t.artifact: t for mine in found.values() for t in mine}
    claims = [v for v in boards["paper"] if v.artifact in tiles and v.rests_on != CHECK]
    for artifact, tile in tiles.items():
        assert Counter(tile.verdicts) == Counter(v.verdict for v in claims if v.artifact == artifact)
    counts = Counter(v.verdict for v in claims)
    said = overview.alt(found)
    assert f"Of {len(claims)} claims" in said
    assert re.findall(r"(\d+) (?:supported|refuted)[,.]", said) == [str(counts["supported"]), str(counts["refuted"])]
    (ax,) = overview.figure(found).axes
    drawn = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert len(drawn) == len(claims) + len(tiles) + len(overview.FILLS)
    colours = Counter(p.get_facecolor()[:3] for p in drawn if p.get_fill())
    assert sorted(colours.values()) == sorted(counts[v] + 1 for v in overview.FILLS)
