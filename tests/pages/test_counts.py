"""Claims, runs, artifacts with numbers, trainings: every place that counts them says the same."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from reproduce.__main__ import main
from reproduce.cli.verify import tally
from reproduce.pages.documents import TEMPLATES, claims_table
from reproduce.pages.page import _facts, citing, page
from reproduce.papers import coverage, coverage_table
from reproduce.runs import plan, results
from reproduce.verdicts.scoreboard import Verdict, by_ground, claims, headline
from reproduce.verdicts.verdict import JUDGED, ON_SUBSTITUTE

ROOT = Path(__file__).parents[2]
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
    assert f"{judged} of {total} claims are judged." in headline(scale, board)
    grounds = sum((found for _, found in by_ground(board)), Counter[str]())
    assert grounds == Counter({word: n for word, n in told.items() if word != "not run"})
    (key,) = re.findall(r'<p class="key">(.*?)</p>', page(scale, board, address=lambda artifact, png: ""), re.DOTALL)
    said = re.findall(r"([a-z][a-z -]*[a-z])</span> (\d+)|of (\d+) claims", key)
    assert {word or "all": int(n or every) for word, n, every in said if int(n or every)} == {**told, "all": total}
    if scale == "paper":
        readme = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- claims -->")[1]
        last = next(line for line in readme.splitlines() if line.startswith("| all |"))
        words = [word for word in JUDGED if word not in ON_SUBSTITUTE.values()]
        assert numbers(last) == [total, judged, *(told[word] for word in words)]
        assert f"{told['not run']} claims are not run" in readme
        assert claims_table(boards) in readme


@pytest.mark.parametrize("scale", SCALES)
def test_runs_of_an_artifact(scale: str) -> None:
    """What its card says of its results, and of whether they are to be cited."""
    for a in plan.select(None):
        facts, (_, _, why) = dict(_facts(a, scale)), citing(a, scale)
        there = sum(bool(run.stored) for run in results.read_by(scale, a.id))
        declared = sum(len(p.experiments) * len(p.seeds) for p in a.panels(scale))
        assert there <= declared, a.id
        said = re.findall(r"\b(?:all|of) ([\d,]+) runs", why)
        if re.match(r"[\d,]+ runs?: ", facts.get("Results", "")):
            counted = [*said, facts["Results"].split(" run")[0]]
            assert {int(n.replace(",", "")) for n in counted} == {there}, a.id


@pytest.mark.parametrize("scale", SCALES)
def test_artifacts_with_numbers(
    scale: str, boards: dict[str, list[Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list, in README, above the scoreboard."""
    assert main(["list", "--json", "--scale", scale]) == 0
    listed = json.loads(capsys.readouterr().out)
    has = Counter(a["paper"] for a in listed if a["made"] != "no" and re.search(r"/(fig|table)\d", a["id"]))
    column = {"paper": 1, "reduced": 2}[scale]
    rows = {c.paper: next(r for r in coverage_table().splitlines() if f"[{c.paper}]" in r) for c in coverage()}
    assert {paper: numbers(row)[column] for paper, row in rows.items()} == dict(has)
    assert f"{has.total()} have numbers at this scale." in headline(scale, boards[scale])[0]


def test_what_was_run_leaves_no_training_out() -> None:
    """Each is in one line of README's table."""
    calls = re.findall(r"minutes\((.*?)\)", (TEMPLATES / "README.md").read_text(encoding="utf-8"))
    lines = [re.findall(r'"(.*?)"', call) for call in calls]
    for job in (j for scale in SCALES for j in plan.jobs(scale) if results.standing(j).there):
        mine = [names for scale, paper, *names in lines if (scale, paper) == (job.scale, job.paper)]
        assert sum(job.name.startswith(tuple(names) or "") for names in mine) == 1, job.output
