"""What a results file is worth: every state, what the captions say of it, and how a declaration is recognised."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import written

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment, Panel, canonical, code, recorded, same
from reproduce.errors import UserError, say_once
from reproduce.problem import Quadratic
from reproduce.runs import costs, outdated, plan, results
from reproduce.runs.catalogue import Catalogue, known
from reproduce.runs.plan import Job
from reproduce.store import Stored
from reproduce.systems import System
from reproduce.systems.work import Steps


def experiment(lr: float = 0.1, algorithm: type[FedAvg] = FedAvg) -> Experiment:
    return Experiment({"eta": lr}, Quadratic(dim=2, clients=3), System(work=Steps(2)), algorithm(lr=lr), Rounds(4))


def job(*experiments: Experiment, seeds: tuple[int, ...] = (0, 1, 2)) -> Job:
    found = experiments or (experiment(),)
    return Job("smoke", "fedacs", "p", Panel("p", found, seeds), found, ("fedacs/fig1",))


def runs(of: Job, seeds: tuple[int, ...] = (0, 1, 2), source: str | None = None, **training: Any) -> list[Stored]:
    """The runs of a job as they are stored after a training with today's code, or with another."""
    codes = {e: code([e]) if source is None else source for e in of.experiments}
    return [written.run(e, seed, codes[e], **training) for e in of.experiments for seed in seeds]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., results.Standing]:
    """stored(job, runs): the standing of a job whose results file has these runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPRODUCE_PRECISION", raising=False)

    def stored(of: Job, found: list[Stored] | None = None) -> results.Standing:
        say_once.cache_clear()
        written.write(Path(of.output), runs(of) if found is None else found)
        return results.standing(of)

    return stored


def line(of: Job, **changes: str) -> dict[str, str]:
    told = {"job": f"{of.paper}/{of.name}", "result": "then", "code": code(of.experiments), "agrees": "yes"}
    return dict.fromkeys(results.REPLAYED, "") | told | {"asked": "2"} | changes


def test_current_and_of_stale_runs(stored: Callable[..., results.Standing]) -> None:
    assert (results.standing(job()).state, results.standing(job()).words) == ("missing", "")
    now, old = stored(job()), stored(job(), runs(job(), source="0" * 16))
    assert (now.state, now.words, now.holds, now.usable) == ("current", "current", True, True)
    assert (old.state, old.words, old.holds, old.usable) == ("stale", "all 3 runs stale", False, True)
    assert stored(job(), runs(job(), source="")).state == "stale"
    Path(job().output).unlink()
    Path(job().output).symlink_to("nowhere")
    assert results.standing(job()).exists
    assert results.standing(job()).words


def test_where_one_run_is_of_own_code_nothing_is_remembered(
    stored: Callable[..., results.Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may have changed."""
    both = job(experiment(0.1), experiment(0.2))
    monkeypatch.setattr(plan, "own_code", lambda e: e.labels["eta"] == 0.2)
    stored(both)
    known = results._standing.cache_info()
    assert results.standing(both).state == "current"
    assert results._standing.cache_info() == known


def test_a_replay_rechecks_or_contradicts_for_its_code_and_its_result_only(
    stored: Callable[..., results.Standing],
) -> None:
    stored(job(), runs(job(), source="0" * 16))
    for changes, state in (
        ({}, "re-checked"),
        ({"agrees": "no"}, "not reproduced"),
        ({"code": "1" * 16}, "stale"),
        ({"result": "earlier"}, "stale"),
        ({"job": "fedacs/other"}, "stale"),
    ):
        results.replay_file("smoke").unlink(missing_ok=True)
        results.add_replay("smoke", line(job(), **changes))
        assert results.standing(job()).state == state
    results.add_replay("smoke", line(job()))
    assert list(results.replay_lines("smoke")) == ["fedacs/other", "fedacs/p"]
    results.drop_replays("smoke", [job()])
    assert list(results.replay_lines("smoke")) == ["fedacs/p"]
    results.add_replay("smoke", line(job(), result="earlier"))
    results.drop_replays("smoke", [job()])
    assert not results.replay_lines("smoke")
    results.add_replay("smoke", line(job()))
    assert results.standing(job()).holds


def test_a_replay_counts_for_what_was_there_when_it_was_made(stored: Callable[..., results.Standing]) -> None:
    """Not for what was trained later; and it goes on counting when settings with other code are declared beside."""
    first, more = job(), job(experiment(), experiment(0.2, Scaffold))
    old, late = runs(first, (0, 1), "0" * 16, date="1"), runs(first, (2,), "0" * 16, date="2")
    stored(first, [*old, *late])
    results.add_replay("smoke", line(first, result="1"))
    assert [run.state for run in results.standing(first).runs] == ["re-checked", "re-checked", "stale"]
    results.add_replay("smoke", line(first, result="2"))
    assert results.standing(first).state == "re-checked"
    assert code(more.experiments) != code(first.experiments)
    assert Counter(run.state for run in results.standing(more).runs) == {"re-checked": 3, "missing": 3}
    stored(more, [*old, *late, *runs(job(more.experiments[1]), date="3")])
    assert Counter(run.state for run in results.standing(more).runs) == {"re-checked": 3, "current": 3}


def test_missing_seeds_and_others(stored: Callable[..., results.Standing]) -> None:
    few = stored(job(), runs(job(), (1,), git="c0ffee+"))
    assert (few.state, few.usable, few.holds) == ("missing", True, False)
    assert few.words == "2 of 3 runs missing; 1 of 3 runs of uncommitted code"
    old = stored(job(), runs(job(), (1,), ""))
    assert old.words == "1 of 3 runs stale; 2 of 3 runs missing"
    other = stored(job(seeds=(7,)), runs(job()))
    assert (other.state, other.usable, other.words) == ("missing", False, "the run missing")
    some = stored(job(seeds=(0, 7)), runs(job()))
    assert (some.usable, some.words) == (True, "1 of 2 runs missing")


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        (job(experiment(0.2)), "missing"),
        (job(experiment(algorithm=Scaffold)), "other"),
        (job(replace(experiment(), labels={"eta": 0.2})), "missing"),
        (job(replace(experiment(), clock=Rounds(5))), "other"),
        (job(replace(experiment(), system=System(work=Steps(3)))), "other"),
        (job(replace(experiment(), problem=Quadratic(dim=2, clients=4))), "other"),
    ],
)
def test_another_declaration_is_not_used(stored: Callable[..., results.Standing], changed: Job, state: str) -> None:
    """One of other labels is nobody's; one of the same labels is replaced when it is trained."""
    found = stored(changed, runs(job()))
    assert (found.state, found.usable, len(found.due)) == (state, False, 3)


def test_a_setting_that_is_new_leaves_the_others_as_they_are(stored: Callable[..., results.Standing]) -> None:
    both = job(experiment(), experiment(0.2))
    found = stored(both, runs(job()))
    assert not found.usable, "a setting without any run"
    assert Counter(run.state for run in found.runs) == {"current": 3, "missing": 3}
    (part,) = results.parts(both)
    assert (part.experiments, part.panel.seeds) == (both.experiments[1:], (0, 1, 2))
    assert results.parts(job()) == ()
    stored(both, [*runs(job()), *runs(job(experiment(0.2)), (1,))])
    assert [(p.experiments, p.panel.seeds) for p in results.parts(both)] == [(both.experiments[1:], (0, 2))]
    stored(both, [*runs(job(), (0, 1)), *runs(job(experiment(0.2)), (1,))])
    assert [p.panel.seeds for p in results.parts(both)] == [(2,), (0, 2)], "settings that lack other seeds"


def test_another_precision_is_not_used_if_one_is_asked_for(
    stored: Callable[..., results.Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stored(job(), runs(job(), precision="float32", configured_precision="bfloat16")).holds
    monkeypatch.setenv("REPRODUCE_PRECISION", "float32")
    assert results.standing(job()).words == "all 3 runs of another declaration or precision"
    monkeypatch.setenv("REPRODUCE_PRECISION", "bfloat16")
    assert results.standing(job()).holds


def test_a_damaged_record_of_replays_is_refused(stored: Callable[..., results.Standing]) -> None:
    stored(job(), runs(job(), source=""))
    odd = f"{','.join(results.REPLAYED)}\n{','.join(line(job(), agrees='maybe').values())}\n"
    file = results.replay_file("smoke")
    for data in (b"", b"job,result\nfedacs/p,then\n", odd.encode()):
        file.write_bytes(data)
        with pytest.raises(UserError, match=r"results/smoke/replay.csv: not a record of replays"):
            results.standing(job())


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


@pytest.mark.parametrize("scale", plan.SCALES)
def test_every_declaration_is_recognised_in_its_own_record(scale: str) -> None:
    for found in plan.jobs(scale):
        assert all(recorded(json.loads(json.dumps(e.record())), e) for e in found.experiments)


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_every_committed_result_is_of_a_job_and_of_its_declaration(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of plays: `tests/play/test_across.py`."""
    monkeypatch.chdir(ROOT)
    jobs = {j.output: j for j in plan.jobs(scale)}
    found = {str(f) for f in Path("results", scale).glob("*/*.parquet") if f.parent.name != "play"}
    assert found <= set(jobs)
    assert {f: results.standing(jobs[f]).words for f in found if not results.standing(jobs[f]).usable} == {}
    runs = [(f, run) for f in sorted(found) for run in written.runs(f)]
    assert [(f, run.name) for f, run in runs if not results.stays(jobs[f], run)] == []
    assert [(f, run.name) for f, run in runs if run.seed not in jobs[f].panel.seeds] == []


@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_every_committed_replay_is_of_a_result_that_is_there(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else: `reproduce replay --scale SCALE`."""
    monkeypatch.chdir(ROOT)
    there = {f"{j.paper}/{j.name}": results.standing(j).stored for j in plan.jobs(scale)}
    dates = {name: {run.training["date"] for run in runs} for name, runs in there.items()}
    lines = results.replay_lines(scale)
    assert [name for name, line in lines.items() if line["result"] not in dates.get(name, ())] == []


def test_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRODUCE_BUDGET", raising=False)
    whole, single = outdated.Budget(outdated.HOURS), outdated.Budget(outdated.HOURS, gaps=False)
    for targets in ([], ["paper"], ["figures/paper/x.png", "paper"], ["report/paper/index.html"]):
        assert outdated.budget(targets) == whole
    assert outdated.budget(["figures/paper/x.png", "tables/paper/y.md"]) == single
    monkeypatch.setenv("REPRODUCE_BUDGET", "0.5")
    assert outdated.budget([]) == outdated.budget(["figures/paper/x.png"]) == outdated.Budget(0.5)


def test_what_is_due_for_a_figure_and_what_is_said_of_it(
    stored: Callable[..., results.Standing], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gap of a figure that is there is left unless seeds or a budget are named, what is stale is trained."""
    read = replace(job(), artifacts=("fedacs/fig1",))
    monkeypatch.setattr(outdated, "jobs", lambda _: Catalogue("", (), (known(read),)))
    monkeypatch.setattr(plan, "outputs", lambda *_: ["drawn", "cells", "record"])
    monkeypatch.setattr(costs, "due", lambda _: costs.Cost(0, 0, 1800.0, 0))

    def said(budget: outdated.Budget) -> str:
        outdated.training.cache_clear()
        outdated.announce.cache_clear()
        outdated.announce("smoke", "fedacs/fig1", budget)
        return capsys.readouterr().err.removeprefix("fedacs/fig1 at scale smoke ").strip()

    single, trains = outdated.Budget(outdated.HOURS, gaps=False), "trains 1 job, about 30 min on one core"
    stored(job())
    assert said(single) == ""
    stored(job(), runs(job(), source="0" * 16))
    assert said(single).startswith(f"{trains} (all 3 runs stale); `reproduce replay fedacs/fig1 --scale smoke`")
    assert (
        said(outdated.Budget(0.44)) == "keeps 1 (over the budget of 0.44 h a job); --config budget=0.5 trains the 1 too"
    )
    for found in ("drawn", "cells"):
        assert said(single).startswith(trains)
        Path(found).touch()
    assert said(single).startswith(trains)
    stored(job(), runs(job(), (0, 1)))
    assert said(outdated.Budget()).startswith(trains)
    assert said(single) == "keeps 1 (a gap of what is there); --config budget=0.5 trains the 1 too"
    monkeypatch.setenv("REPRODUCE_SEEDS", "0,1,2")
    assert said(single).startswith(trains)
    Path(job().output).unlink()
    assert said(single) == "leaves out 1 (a gap of what is there); --config budget=0.5 trains the 1 too"
