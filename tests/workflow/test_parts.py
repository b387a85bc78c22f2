"""Clusters that let a job run so long: what is asked of them, and trainings that are cut into submissions."""

from pathlib import Path

import miniature
import pytest
import yaml
from miniature import ROOT, snakemake, text

from reproduce.runs import costs, due, plan, rates
from reproduce.runs.catalogue import known
from reproduce.runs.costs import Cost

SLOW = """
import signal, sys, time
from pathlib import Path
from reproduce.runs.catalogue import known
from reproduce.runs import job as quick

train_job = quick.train_job

def slowly(panel, experiments, scale, paper, job, digest, output, alone=False):
    begun = Path("begun")
    begun.write_text(begun.read_text() + "x" if begun.exists() else "x")
    if len(begun.read_text()) < 3:  # two parts are stopped in the middle
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        time.sleep(60)
    train_job(panel, experiments, scale, paper, job, digest, output, alone)

quick.train_job = slowly
"""
LONG = "results/reduced/fedacs/long.parquet"


def test_a_long_training_goes_on_from_part_to_part(project: Path) -> None:
    """40 hours are, with some room, ten jobs of 7 at most. Of 18 s in five the third trains all, and what comes after
    it nothing. A second call finds all there."""
    asked = (LONG, "-c1", "--config", "budget=100", "longest=7")
    plan_ = text(snakemake(project, *asked, "-n"))
    assert plan_.count("rule part:") == 9
    assert plan_.count("runtime=420") == 10
    source = project / "reproduce/runs/training.py"
    source.write_text(source.read_text() + SLOW)
    pace = project / "reproduce/runs/rates.py"
    pace.write_text(pace.read_text().replace("1200 *", "0.15 *").replace("START = 60.0", "START = 0.0"))
    run = snakemake(project, LONG, "-c1", "--config", "budget=100", "longest=0.002")
    assert run.returncode == 0, text(run)
    assert "1 job in 5 submissions of at most 0.002 h, each from the checkpoint of the one before" in text(run)
    assert (project / "begun").read_text() == "xxx"
    assert miniature.trained(project / LONG)[0] == [0, 1, 2]
    assert {file.name for file in (project / "logs/reduced/fedacs/long.due").iterdir()} <= {"trained", "again"}
    assert "Nothing to be done" in text(snakemake(project, LONG, "-c1", "--config", "budget=100", "longest=0.002"))


def test_a_part_that_fails_ends_it(project: Path) -> None:
    source = project / "reproduce/runs/training.py"
    source.write_text(source.read_text() + SLOW.replace("time.sleep(60)", "raise ZeroDivisionError"))
    run = snakemake(project, LONG, "-c1", "--config", "budget=100", "longest=7")
    assert run.returncode != 0
    assert (project / "begun").read_text() == "x"


def test_nothing_is_asked_for_beyond_what_a_cluster_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    job = plan.job("paper", "fedagrac", "fig4-alexnet-equal--fedagrac")
    monkeypatch.setattr(costs, "due", lambda job: Cost(0, 0, 100 * 3600, 10**9))
    asked = known(job)
    assert (costs.minutes(asked), costs.submissions(asked)) == (18000, 1)
    assert costs.megabytes(asked) > 100_000
    monkeypatch.setenv("REPRODUCE_LONGEST", "24")
    monkeypatch.setenv("REPRODUCE_MEMORY", "64")
    assert [costs.minutes(asked, attempt) for attempt in (1, 2)] == [1440, 1440]
    assert costs.submissions(asked) == 7, "one and a half times 100 hours in pieces of 21.6"
    assert [costs.megabytes(asked, attempt) for attempt in (1, 2)] == [64_000, 64_000]
    monkeypatch.setattr(costs, "due", lambda job: Cost(0, 0, 1800, 10**9))
    asked = known(job)
    assert [costs.minutes(asked, attempt) for attempt in (1, 2)] == [90, 180]


def test_a_gpu_has_its_own_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of AlexNet takes at least its launches, 32 of a small network share them; FLOPs come on top."""
    monkeypatch.setattr(rates, "CUDA", (1e12, 0.01))
    large = plan.job("paper", "fedagrac", "fig4-alexnet-equal--fedagrac").experiments[0]
    small = plan.job("paper", "fedagrac", "fig4-lr-equal--fedagrac").experiments[0]
    for e, together in ((large, 1), (small, 32)):
        work = rates.estimate(e, (0,))
        launched = work.samples / e.problem.batches.size / together * 0.01
        assert rates.cuda(e) == pytest.approx(work.flops / 1e12 + launched)
        on_cpu = costs.together([e], (0, 1))
        with monkeypatch.context() as patch:
            patch.setenv("REPRODUCE_DEVICE", "cuda")
            cost = costs.together([e], (0, 1))
        assert cost.seconds == pytest.approx(rates.machine() * rates.START + 2 * rates.cuda(e))
        assert cost.seconds != on_cpu.seconds


def test_the_plan_of_a_gpu_profile_trains_what_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    said = yaml.safe_load((ROOT / "profiles/gpu/config.yaml").read_text())
    monkeypatch.setenv("REPRODUCE_DEVICE", said["device"])
    monkeypatch.setattr(plan, "lacking", lambda job: [])
    due.training.cache_clear()
    due.jobs.cache_clear()
    trained, left = due.training("paper", "fedagrac/fig4", due.Budget(said["budget"]))
    due.training.cache_clear()
    due.jobs.cache_clear()
    assert {job.name for job in trained} >= {f"fig4-alexnet-{way}--fedagrac" for way in ("equal", "async")}
    assert not left
