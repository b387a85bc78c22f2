"""What a results file is worth: every state, what the captions say of it, and how a declaration is recognised."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import written

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment, Panel, canonical, code, same
from reproduce.errors import UserError
from reproduce.papers import artifacts
from reproduce.problem import Quadratic
from reproduce.runs import due, plan, results
from reproduce.runs.plan import Job
from reproduce.store import reading
from reproduce.systems import System
from reproduce.systems.work import Steps


def experiment(lr: float = 0.1, algorithm: type[FedAvg] = FedAvg) -> Experiment:
    return Experiment({"eta": lr}, Quadratic(dim=2, clients=3), System(work=Steps(2)), algorithm(lr=lr), Rounds(4))


def job(*experiments: Experiment, seeds: tuple[int, ...] = (0, 1, 2)) -> Job:
    found = experiments or (experiment(),)
    return Job("smoke", "fedacs", "p", Panel("p", found, seeds), found, ("fedacs/fig1",))


def provenance(of: Job, **changes: Any) -> dict[str, Any]:
    records = json.loads(json.dumps([e.record() for e in of.experiments]))
    note = {"experiments": records, "seeds": [0, 1, 2], "git": "c0ffee", "date": "then", "code": code(of.experiments)}
    note |= {"scale": of.scale, "paper": of.paper, "job": of.name}
    return {**note, **changes}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., results.Standing]:
    """stored(job, provenance): the standing of a results file with that provenance."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPRODUCE_PRECISION", raising=False)

    def stored(of: Job, note: dict[str, Any] | None = None) -> results.Standing:
        said = note or provenance(of)
        reading._say.cache_clear()
        written.write(Path(of.output), said, None if "seeds" in said else written.rows(provenance(of)))
        results._provenance.cache_clear()
        return results.standing(of)

    return stored


def line(of: Job, **changes: str) -> dict[str, str]:
    told = {
        "job": f"{of.paper}/{of.name}",
        "result": "then",
        "code": code(of.experiments),
        "agrees": "yes",
        "asked": "2",
    }
    return dict.fromkeys(results.REPLAY, "") | told | changes


def test_current_and_of_older_code(stored: Callable[..., results.Standing]) -> None:
    assert results.standing(job()).state == "missing"
    now, old = stored(job()), stored(job(), provenance(job(), code="0" * 16))
    assert (now.state, now.words, now.holds, now.usable) == ("current", "current", True, True)
    assert (old.state, old.words, old.holds, old.usable) == ("older", "of older code", False, True)
    unknown = provenance(job())
    del unknown["code"]
    assert stored(job(), unknown).state == "older"


def test_a_replay_confirms_or_contradicts_for_its_code_and_its_result_only(
    stored: Callable[..., results.Standing],
) -> None:
    old = provenance(job(), code="0" * 16)
    stored(job(), old)
    for changes, state in (
        ({}, "confirmed"),
        ({"agrees": "no"}, "differs"),
        ({"code": "1" * 16}, "older"),
        ({"result": "earlier"}, "older"),
        ({"job": "fedacs/other"}, "older"),
    ):
        results.replay_file("smoke").unlink(missing_ok=True)
        results.record_replays("smoke", [line(job(), **changes)])
        assert results.standing(job()).state == state
    results.record_replays("smoke", [line(job())])
    assert list(results.replays("smoke")) == ["fedacs/other", "fedacs/p"]
    assert results.standing(job()).holds


def test_missing_seeds_are_incomplete_and_others_are_not_used(stored: Callable[..., results.Standing]) -> None:
    few = stored(job(), provenance(job(), seeds=[1], git="c0ffee+"))
    assert (few.state, few.usable, few.holds) == ("incomplete", True, False)
    assert few.words == "1 of 3 seeds; of uncommitted code"
    assert stored(job(), provenance(job(), seeds=[1], code="")).words == "1 of 3 seeds; of older code"
    other = stored(job(seeds=(7,)), provenance(job()))
    assert (other.state, other.usable, other.words) == ("incomplete", False, "of other seeds (0, 1, 2)")
    some = stored(job(seeds=(0, 7)), provenance(job()))
    assert (some.state, some.usable, some.words) == ("incomplete", True, "1 of 2 seeds")
    assert results.stamp([("p", some)]) == "p has 1 of 2 seeds in 1 result"


def test_more_seeds_than_asked_for_hold(stored: Callable[..., results.Standing]) -> None:
    more = stored(job(seeds=(2, 0)), provenance(job()))
    assert (more.state, more.words, more.holds) == ("current", "current", True)
    assert results.stamp([("p", more)]) == ""


@pytest.mark.parametrize(
    "changed",
    [
        job(experiment(0.2)),
        job(experiment(algorithm=Scaffold)),
        job(experiment(), experiment(0.2)),
        job(replace(experiment(), labels={"eta": 0.2})),
        job(replace(experiment(), clock=Rounds(5))),
        job(replace(experiment(), system=System(work=Steps(3)))),
        job(replace(experiment(), problem=Quadratic(dim=2, clients=4))),
    ],
)
def test_another_declaration_is_not_used(stored: Callable[..., results.Standing], changed: Job) -> None:
    found = stored(changed, provenance(job()))
    assert found.words == "of another declaration" + " in 1 of 2 settings" * (len(changed.experiments) > 1)
    assert not found.usable


def test_another_precision_is_not_used_if_one_is_asked_for(
    stored: Callable[..., results.Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    half = provenance(job(), precision="float32", configured_precision="bfloat16")
    assert stored(job(), half).holds
    monkeypatch.setenv("REPRODUCE_PRECISION", "float32")
    assert stored(job(), half).words == "of another precision (bfloat16)"
    monkeypatch.setenv("REPRODUCE_PRECISION", "bfloat16")
    assert results.standing(job()).holds


@pytest.mark.parametrize("content", [b"", b"PAR1 cut short", None])
def test_a_damaged_file_is_said_to_be_one(stored: Callable[..., results.Standing], content: bytes | None) -> None:
    stored(job(), {"job": "no provenance"})
    if content is not None:
        Path(job().output).write_bytes(content)
    results._provenance.cache_clear()
    missing = "its provenance has no entry seeds"
    assert results.standing(job()).words == (missing if content is None else "not a complete results file")
    assert not results.standing(job()).usable


def test_a_damaged_record_of_replays_is_not_used(
    stored: Callable[..., results.Standing], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor are damaged lines of one; the others are, and nothing is added to what is no such record."""
    stored(job(), provenance(job(), code=""))
    head, good = ",".join(results.REPLAY), ",".join(line(job()).values())
    file = results.replay_file("smoke")
    for data in (b"", b"job,result\nfedacs/p,then\n", b"\xff\xfe", b"\0" * 9, head.encode().replace(b"job", b"Job")):
        file.write_bytes(data)
        assert results.standing(job()).code == "older"
        with pytest.raises(UserError, match=r"results/smoke/replay.csv: not a record of replays"):
            results.record_replays("smoke", [line(job())])
        assert file.read_bytes() == data
    odd = (line(job(), asked="few"), line(job(), asked="²"), line(job(), agrees="maybe"), line(job(), job="a b"))
    lines = [*(",".join(o.values()) for o in odd), "fedacs/p,then", good + ",more", good.replace("yes", "ye\x1bs")]
    for i, bad in enumerate(lines):
        file.write_text(f"{head}\n{bad}\n{good.replace('/p', f'/other{i}')}\n")
        assert list(results.replays("smoke")) == [f"fedacs/other{i}"]
    file.write_text(f"{head}\n{good}\n{good}\n")
    assert results.replays("smoke") == {}
    said = capsys.readouterr().err.splitlines()
    assert set(said) == {
        "not used: results/smoke/replay.csv: not a record of replays; restore it, or delete it and replay again",
        *(f"not used: results/smoke/replay.csv: line {n} is not the record of a replay" for n in (2, 3)),
    }


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5


@dataclass(frozen=True)
class Outer:
    size: int
    parts: tuple[Inner, ...] = (Inner(),)
    mode: str = ""
    more: dict[str, float] = field(default_factory=dict)


def test_a_record_that_grew_a_field_is_the_same_while_the_field_has_its_default() -> None:
    now = Outer(3, (Inner(), Inner(0.25)))
    old = json.loads(json.dumps(canonical(now)))
    assert same(old, now)
    for name in ("mode", "more"):
        shorter = {k: v for k, v in old.items() if k != name}
        assert same(shorter, now)
    del old["parts"][0]["rate"]
    assert same(old, now)
    assert not same(old, replace(now, parts=(Inner(0.75), Inner(0.25))))
    del old["mode"]
    assert not same(old, replace(now, mode="new"))


@pytest.mark.parametrize(
    "change",
    [{"size": 4}, {"size": None}, {"type": "Inner"}, {"gone": 1}, {"parts": []}, {"parts": None}, {"more": {"a": 1.0}}],
)
def test_every_other_change_is_another_record(change: dict[str, Any]) -> None:
    now = Outer(3)
    assert not same(canonical(now) | change, now)
    assert not same({"type": "Outer"}, now)
    assert not same(None, now)


def standing(panel: str, code: str = "current", seeds: int = 3, dirty: bool = False) -> tuple[str, results.Standing]:
    return panel, results.Standing(True, "", code, tuple(range(seeds)), (0, 1, 2), dirty)


def test_stamps() -> None:
    gone = ("p", results.Standing(wanted=(0,)))
    assert results.stamp([]) == results.stamp([gone]) == results.stamp([standing("a"), standing("b"), gone]) == ""
    assert results.stamp([standing("a", "older"), gone]) == "the result of older code"
    found = [standing("a", "confirmed", dirty=True), standing("a", "older", dirty=True), standing("b", seeds=1)]
    assert results.stamp(found) == (
        "1 of 3 results of older code, confirmed by a replay; 1 of 3 results of older code; "
        "2 of 3 results of uncommitted code; b has 1 of 3 seeds in 1 result"
    )


@pytest.mark.parametrize("scale", plan.SCALES)
def test_every_declaration_is_recognised_in_its_own_provenance(scale: str) -> None:
    for found in plan.jobs(scale):
        assert all(results.declared(json.loads(json.dumps(e.record())), e) for e in found.experiments)


# --- what is committed ------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_every_committed_result_is_of_a_job_and_of_its_declaration(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of plays: `tests/test_across.py`."""
    monkeypatch.chdir(ROOT)
    jobs = {j.output: j for j in plan.jobs(scale)}
    found = {str(f) for f in Path("results", scale).glob("*/*.parquet") if f.parent.name != "play"}
    assert found <= set(jobs)
    assert {f: results.standing(jobs[f]).words for f in found if not results.standing(jobs[f]).usable} == {}


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRODUCE_BUDGET", raising=False)
    whole, single = due.Budget(), due.Budget(due.SINGLE, gaps=False)
    for targets in ([], ["paper"], ["figures/paper/x.png", "paper"], ["report/paper/index.html"]):
        assert due.budget(targets) == whole
    assert due.budget(["figures/paper/x.png", "tables/paper/y.md"]) == single
    monkeypatch.setenv("REPRODUCE_BUDGET", "0.5")
    assert due.budget([]) == due.budget(["figures/paper/x.png"]) == due.Budget(0.5)


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan"])
def test_a_budget_that_makes_no_sense_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("REPRODUCE_BUDGET", text)
    with pytest.raises(UserError, match=f"REPRODUCE_BUDGET={text}"):
        due.budget([])


def test_the_record_of_an_artifact_is_the_last_of_its_files() -> None:
    for artifact in artifacts():
        *_, cells, record = plan.outputs("paper", artifact.id)
        assert (cells, record) == (plan.cells_file("paper", artifact.id), cells.replace(".csv", ".json"))
