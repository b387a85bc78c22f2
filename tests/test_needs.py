"""Which jobs open claims wait for: the runs that their checks read, and only while these have no results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from reproduce.cli import plan as command
from reproduce.runs import costs, needs, plan, results
from reproduce.verdicts.claims import claims_files

ROOT = Path(__file__).parent.parent
ALL = [a.id for a in plan.select(None)]


def jobs(found: list[needs.Need], claim: str) -> set[str]:
    return {j.name for n in found if n.claim == claim for j in n.jobs}


@pytest.fixture
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without results, where every data set is at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "_available", lambda name, settings: True)


@pytest.mark.usefixtures("anew")
def test_without_results_every_claim_waits_for_the_runs_that_it_reads() -> None:
    found = needs.needs("reduced", ALL)
    meant = {c.id for file in claims_files() for c in file.claims if "reduced" in c.scales and not c.construction}
    assert {n.claim for n in found} == meant
    assert jobs(found, "defedavg/defedavg-fig7-K-faster-iid") == {
        f"rounds-fashion-mnist-iid-n10-k{k}" for k in (4, 10, 20)
    }
    assert jobs(found, "defedavg/defedavg-t1-iid-order-n10") == {"fashion-mnist-iid-n10"}
    assert jobs(found, "defedavg/defedavg-t1-iid-time-grows-with-n") == {
        "fashion-mnist-iid-n10", "fashion-mnist-iid-n40",
    }  # fmt: skip
    assert not jobs(found, "defedavg/defedavg-fig1-idle"), "a simulation waits for no job"
    paper = needs.needs("paper", ["defedavg/table1", "fedagrac/fig3"])
    assert jobs(paper, "defedavg/defedavg-t1-iid-half-of-fedavg") == {
        "fashion-mnist-iid-n10--fedavg", "fashion-mnist-iid-n10--defedavg-iid",
    }  # fmt: skip
    equal = jobs(paper, "fedagrac/c15")
    assert "fig3-cnn2-equal--fedagrac-first" in equal
    assert not {name for name in equal if "async" in name or name.startswith("fig2") or name.endswith("-single")}


@pytest.mark.usefixtures("anew")
def test_the_cheapest_come_first_and_those_that_lack_data_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_available", lambda name, settings: name != "cifar10")
    found = needs.needs("paper", [a for a in ALL if a.startswith("defedavg")])
    lacking = [bool(n.lacking) for n in found]
    assert lacking == sorted(lacking)
    assert 0 < sum(lacking) < len(lacking)
    for group in (True, False):
        times = [needs.seconds(n.jobs) for n in found if bool(n.lacking) == group]
        assert times == sorted(times)
    assert {name for n in found for name in n.lacking} == {"cifar10"}
    assert all("cifar10" not in j.requires for n in found for j in n.jobs)
    twice = [*found[-1].jobs, *found[-1].jobs]
    assert needs.seconds(twice) == needs.seconds(found[-1].jobs)


def test_what_has_its_runs_waits_for_seeds_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "results/reduced", tmp_path / "results/reduced", ignore=shutil.ignore_patterns("play"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "_available", lambda name, settings: True)
    found = needs.needs("reduced", ALL)
    assert {n.verdict for n in found} <= set(needs.OPEN)
    assert not jobs(found, "defedavg/defedavg-t1-iid-order-n10")
    undecided = [n for n in found if n.verdict == "undecided"]
    assert undecided
    waiting = [results.standing(j) for n in undecided for j in n.jobs]
    assert all(s.usable and any(r.state == "missing" for r in s.runs) for s in waiting), "they lack seeds alone"
    monkeypatch.setattr(needs, "needs", lambda *_: found)
    command._print_claims("reduced", ALL, as_json=False)
    said = capsys.readouterr().out.partition("WANTED")[2]
    lines = {line.split()[0]: line.split()[1:4] for line in said.splitlines() if "/" in line.split(" ")[0]}
    prospects = {n.claim: n.prospect for n in found if n.prospect}
    assert lines == {k: [str(p.now), f"~{p.seeds}", p.verdict.split()[0]] for k, p in prospects.items()}
    assert set(prospects) >= {n.claim for n in undecided if n.prospect}
    several = next(n for n in undecided if n.prospect and len(n.done) > 1)
    assert several.prospect
    seeds = several.prospect.seeds
    anew = sum(costs.cost(j).seconds / len(j.panel.seeds) * seeds for j in several.done)
    there = sum(
        costs.cost(j).seconds * min(1.0, seeds / len(j.panel.seeds))  # one with more seeds than that needs none
        for j in several.done
        if results.standing(j).holds
    )
    assert several.more_seeds == pytest.approx(anew - there)
    assert several.more_seeds < anew or not there  # of older code nothing can be extended


@pytest.mark.usefixtures("anew")
def test_the_list_for_people_and_the_one_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["defedavg/table1", "defedavg/table2"]
    command._print_claims("paper", wanted, as_json=False)
    said = capsys.readouterr().out
    lines = [line.split() for line in said.partition("open claims")[0].splitlines() if line.startswith("defedavg/")]
    command._print_claims("paper", wanted, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert [row["claim"] for row in told if row["jobs"]] == [line[0] for line in lines]
    assert [str(len(row["jobs"])) for row in told if row["jobs"]] == [line[3] for line in lines]
    assert f"{len(told)} open claims asked at paper scale: {len(lines)} wait for runs alone" in said
    assert "no declared run gives" in said, "the tuned rates of Table II"
