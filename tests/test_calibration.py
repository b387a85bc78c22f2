"""Rates that were measured, kept, foreign or damaged, and what finished jobs teach."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import miniature
import pytest
import written
from estimated import ROUND, declared, softmax
from miniature import reproduce as command

from reproduce.engine import hardware
from reproduce.engine.cost import estimate, expected_strategy, macs
from reproduce.engine.rates import ASSUMED, Rates
from reproduce.runs import costs, plan
from reproduce.runs.provenance import environment
from reproduce.runs.speed import kept, measure
from reproduce.settings import Settings


@pytest.fixture
def here(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "data", tmp_path / "store", "cpu", 1)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Replace the measurement by a process that prints `text` and ends with `code`."""
    real = subprocess.run

    def install(text: str, code: int = 0) -> None:
        script = f"import sys; print({text!r}); print('boom', file=sys.stderr); sys.exit({code})"
        monkeypatch.setattr(
            kept.subprocess, "run", lambda _, **options: real([sys.executable, "-c", script], **options)
        )

    return install


def as_json(rates: Rates) -> str:
    kinds = {kind: [vars(a) for a in anchors] for kind, anchors in rates.kinds.items()}
    return json.dumps({**vars(rates), "kinds": kinds})


# --- measured, kept, foreign, damaged ---------------------------------------------------------------------------------


def test_every_kind_that_plans_expect_is_measured_at_its_size() -> None:
    sizes: dict[str, list[float]] = {}
    for piece in measure.PIECES:
        kind = expected_strategy(piece.model, piece.shape)
        sizes.setdefault(kind, []).append(macs(piece.model, piece.shape))
    assert sizes.keys() == ASSUMED.kinds.keys()
    for kind, anchors in ASSUMED.kinds.items():
        assert [a.macs for a in anchors] == sorted(sizes[kind])
    assert {expected_strategy(model, shape) for model, shape in declared()} <= sizes.keys()


def test_a_measurement_is_kept_and_read_again(here: Settings, quick: Callable[..., None]) -> None:
    assert kept.rates(here) is ASSUMED
    assert "not measured" in ASSUMED.source
    quick(as_json(replace(ROUND, run=3.0)))
    measured = kept.calibrate(here)
    assert measured.run == 3.0
    assert measured.source.startswith(f"measured here ({hardware.machine()['processor']}, ")
    assert kept.rates(here) == measured
    assert estimate(softmax(), [0], kept.rates(here)).seconds > estimate(softmax(), [0], ROUND).seconds
    assert kept.rates(replace(here, device="cuda")) is ASSUMED


@pytest.mark.parametrize("part", ["processor", "cores", "instructions", "torch", "compiler", "kernels"])
def test_another_machines_measurement_is_not_used(
    part: str, here: Settings, quick: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither under its own name nor under the name that this machine's would have."""
    quick(as_json(ROUND))
    kept.calibrate(here)
    mine = kept._file(here)
    other = {**hardware.machine(), part: "other"}
    monkeypatch.setattr(kept, "machine", lambda: other)
    assert kept.rates(here) is ASSUMED
    mine.rename(kept._file(here))
    assert kept.rates(here) is ASSUMED


def test_the_level_of_instructions_and_the_compiler_make_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hardware.machine()
    monkeypatch.setenv("REPRODUCE_ISA", "sse2")
    monkeypatch.setenv("CC", "none")
    assert hardware.machine() == {**before, "instructions": "sse2", "compiler": "none"}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"machine": 1}', "null", "\x00\xff"])
def test_a_damaged_file_counts_as_no_measurement(text: str, here: Settings, quick: Callable[..., None]) -> None:
    quick(as_json(ROUND))
    kept.calibrate(here)
    kept._file(here).write_text(text)
    assert kept.rates(here) is ASSUMED
    content = {"machine": hardware.machine(), "date": "2026-01-01", "rates": {"kinds": {"kernel": 3}, "run": "x"}}
    kept._file(here).write_text(json.dumps(content))
    assert kept.rates(here) is ASSUMED
    assert kept.calibrate(here).run == ROUND.run
    assert kept.rates(here).measured


@pytest.mark.parametrize(("text", "code"), [("", 1), ("no JSON", 0), ("{}", 0), ("[1]", 0)])
def test_a_measurement_that_fails_is_one_line(
    text: str, code: int, here: Settings, quick: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    quick(text, code)
    with pytest.raises(kept.UserError, match=r"could not be measured \(.*\): use plan --no-calibrate"):
        kept.calibrate(here)
    assert kept.rates(here) is ASSUMED


def test_a_store_that_cannot_be_written_is_one_line(here: Settings, quick: Callable[..., None]) -> None:
    quick(as_json(ROUND))
    here.store.write_text("a file")
    with pytest.raises(kept.UserError, match="cannot write"):
        kept.calibrate(here)


@pytest.mark.slow
def test_the_measurement_prints_rates_of_every_kind() -> None:
    """And of the package alone: started as a script it is not taken for a user's own code, which is slow to watch."""
    script = """
import runpy
from reproduce.engine import own
own.Own = None  # nobody needs it
runpy.run_module("reproduce.runs.speed.measure", run_name="__main__")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = kept._rates({"rates": json.loads(run.stdout), "machine": hardware.machine(), "date": "today"})
    assert {kind: len(a) for kind, a in found.kinds.items()} == {kind: len(a) for kind, a in ASSUMED.kinds.items()}


# --- finished jobs ----------------------------------------------------------------------------------------------------


def finished(job: plan.Job, took: float, share: float = 1.0, leave: int = 0, **said: Any) -> Path:
    """The results file of a job that took so many seconds, and trained on a share of its samples; leave: runs out."""
    each = share * costs._estimate(job).samples / job.runs
    training = {"device": "cpu", "precision": "float32", "cpu_seconds": took, **environment(), **said}
    runs = [written.run(e, seed, **training) for e in job.experiments for seed in job.panel.seeds]
    return written.write(Path(job.output), [replace(run, samples=each) for run in runs[leave:]])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    costs.forget_speed()
    yield tmp_path
    costs.forget_speed()


def test_a_finished_job_corrects_its_panel_and_its_kind(project: Path) -> None:
    done, kin = plan.job("reduced", "fedagrac", "fig3-cnn2-equal"), plan.job("reduced", "fedagrac", "fig3-cnn2-async")
    stranger = plan.job("reduced", "fedagrac", "fig5-lr-10")
    before = {j: costs.cost(j).seconds for j in (done, kin, stranger)}
    finished(done, 6 * before[done], seconds=1e6, threads=2, resumed=True)
    costs.forget_speed()
    assert costs.cost(done).seconds == pytest.approx(6 * before[done])
    assert costs.cost(kin).seconds == pytest.approx(6 * before[kin])
    assert costs.cost(stranger).seconds == before[stranger]
    finished(kin, 2 * before[kin])
    costs.forget_speed()
    assert (costs.correction(done), costs.correction(kin)) == (pytest.approx(6), pytest.approx(2))
    together = (6 * before[done] + 2 * before[kin]) / (before[done] + before[kin])
    assert costs.correction(plan.job("reduced", "fedagrac", "table2-rpi4")) == pytest.approx(together)
    assert costs.correction(stranger) == 1


def test_an_algorithm_that_trains_on_less_does_not_make_the_others_cheap(project: Path) -> None:
    """FedACS's jobs come first, and their time alone once made the plan of a whole panel a third of what it takes."""
    jobs = {
        (p, a): plan.job("paper", "fedacs", f"mnist-{p}--{a}") for p in ("dynamic", "static") for a in ("fedacs", "os")
    }
    before = {which: costs.cost(job).seconds for which, job in jobs.items()}
    done = jobs["dynamic", "fedacs"]
    finished(done, 0.5 * before["dynamic", "fedacs"], share=0.25)
    costs.forget_speed()
    factors = {which: costs.cost(job).seconds / before[which] for which, job in jobs.items()}
    assert factors == pytest.approx(
        {("dynamic", "fedacs"): 0.5, ("dynamic", "os"): 2, ("static", "fedacs"): 0.5, ("static", "os"): 2}
    )


def test_a_job_that_hardly_trains_teaches_nothing(project: Path) -> None:
    """Its time is the start of a process: three drawings of masks once made the plan of all networks a thousandfold."""
    short = plan.job("smoke", "fedagrac", "fig3-cnn2-equal")
    kin = plan.job("smoke", "fedagrac", "fig3-cnn2-async")
    finished(short, 100.0)
    costs.forget_speed()
    assert (costs.correction(short), costs.correction(kin)) == (1, 1)


def test_a_job_that_may_end_at_a_target_is_a_bound_and_teaches_nothing(project: Path) -> None:
    done, kin = plan.job("reduced", "fedagrac", "table1-cnn2"), plan.job("reduced", "fedagrac", "fig3-cnn2-equal")
    assert (costs.at_most(done), costs.at_most(kin)) == (True, False)
    assert costs.kind(done) == costs.kind(kin)
    before = costs.cost(done).seconds
    finished(done, 0.1 * before)
    costs.forget_speed()
    assert (costs.correction(done), costs.correction(kin)) == (1, 1)
    finished(kin, 2 * costs.cost(kin).seconds)
    costs.forget_speed()
    assert costs.cost(done).seconds == pytest.approx(2 * before), "the machine is slower than it was measured to be"


@pytest.mark.parametrize(
    "said",
    [
        {"machine": {**hardware.machine(), "processor": "other"}},
        {"machine": {}},
        {"configured_precision": "bfloat16"},
        {"leave": 1},
        {"cpu_seconds": 0.0},
    ],
    ids=str,
)
def test_a_job_that_is_not_alike_teaches_nothing(said: dict[str, Any], project: Path) -> None:
    job = plan.job("reduced", "fedagrac", "fig3-cnn2-equal")
    finished(job, 10_000.0, **said)
    costs.forget_speed()
    assert costs.correction(job) == 1


def test_damaged_results_teach_nothing(project: Path) -> None:
    job = plan.job("reduced", "fedagrac", "fig3-cnn2-equal")
    file = finished(job, 10_000.0)
    assert costs.correction(job) > 1
    file.write_bytes(b"PAR1 not any more")
    costs.forget_speed()
    assert costs.correction(job) == 1


# --- the command, and the workflow ------------------------------------------------------------------------------------


def test_the_workflow_never_measures(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "calibrate", lambda settings: pytest.fail("measured"))
    assert costs.minutes("smoke", "fedagrac", "table6") == 10
    assert costs.rates() is ASSUMED


def test_plan_says_where_its_times_come_from(tmp_path: Path) -> None:
    project = miniature.build(tmp_path)
    store = {"REPRODUCE_STORE": str(tmp_path / "store")}
    first = command(project, "plan", "fedacs", "--no-calibrate", **store)
    assert "times: assumed: " in first.stdout
    assert not (tmp_path / "store").exists()
    second = command(project, "plan", "fedacs", **store)
    assert "measuring this machine" in second.stderr
    assert "times: measured here (" in second.stdout
    third = command(project, "plan", "fedacs", **store)
    assert third.stderr == ""
    assert third.stdout == second.stdout
    assert "measuring this machine" in command(project, "plan", "fedacs", "--calibrate", **store).stderr
    gpu = command(project, "plan", "--calibrate", **store, REPRODUCE_DEVICE="cuda")
    assert (gpu.returncode, gpu.stderr) == (2, "error: only the CPU can be measured: set the device to cpu\n")
    broken = next((tmp_path / "store" / "machines").glob("*[0-9a-f].json"))
    broken.write_text("{")
    assert "measuring this machine" in command(project, "plan", "fedacs", **store).stderr


def test_planning_imports_no_heavy_library_once_the_machine_was_measured(
    here: Settings, quick: Callable[..., None]
) -> None:
    quick(as_json(ROUND))
    kept.calibrate(here)
    code = (
        "import sys; from reproduce.runs import costs, plan; from reproduce.cli import plan as command;"
        "command.learn(False); costs.cost(plan.jobs('smoke')[-1]); assert costs.rates().measured;"
        "print(*{'torch', 'pandas', 'pyarrow', 'matplotlib', 'scipy', 'sklearn'} & set(sys.modules))"
    )
    variables = {**miniature.os.environ, "REPRODUCE_STORE": str(here.store)}
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=variables, cwd=here.store
    )
    assert run.communicate()[0].strip() == ""
    assert run.returncode == 0
