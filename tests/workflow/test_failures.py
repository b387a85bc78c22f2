"""Trainings and drawings that fail on whatever machine: what was there before stays, and the same command goes on."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import miniature
import pytest
import written
from miniature import FIG2, cluster, snakemake, text

FAILING, FIG1 = "results/smoke/fiarse/diverge.parquet", "figures/smoke/fiarse_fig1.png"


@pytest.fixture
def before(drawn: Path) -> tuple[Path, bytes]:
    """A project with a result of fewer seeds than declared for a job that will fail; and the result."""
    few = drawn / FAILING
    few.parent.mkdir(parents=True)
    shutil.copy(drawn / "results/smoke/fedacs/own.parquet", few)
    written.edit(few, lambda run: run if run.seed == 1 else None)
    return drawn, few.read_bytes()


def test_a_training_that_fails_on_a_cluster_leaves_the_result_of_before(before: tuple[Path, bytes]) -> None:
    project, result = before
    run = cluster(project, FIG1, "--config", "budget=1")
    assert run.returncode != 0
    assert "the training fell over" in text(run)
    assert (project / FAILING).read_bytes() == result
    assert miniature.trained(project / "results/smoke/fiarse/fine.parquet")[0] == [0, 1, 2]


def test_a_node_that_never_runs_its_job_leaves_the_result_of_before(before: tuple[Path, bytes]) -> None:
    project, result = before
    run = cluster(project, FAILING, submit="echo 1 #", status="echo failed #")
    assert run.returncode != 0
    assert (project / FAILING).read_bytes() == result


def test_what_is_killed_leaves_the_result_of_before_and_goes_on(before: tuple[Path, bytes]) -> None:
    project, result = before
    training = project / "reproduce/runs/job.py"
    broken = training.read_text()
    training.write_text(broken.replace('raise ZeroDivisionError("the training fell over")', "os.kill(0, 9)"))
    process = subprocess.Popen(
        [*miniature.command("snakemake"), FAILING, "-c1"],
        cwd=project,
        env=miniature.environment(project),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.wait(timeout=120) == -signal.SIGKILL
    assert (project / FAILING).read_bytes() == result
    training.write_text(broken.replace('if "diverge" in job', "if False"))
    assert snakemake(project, "--unlock").returncode == 0
    assert snakemake(project, FAILING, "-c1").returncode == 0
    assert miniature.trained(project / FAILING)[0] == [0, 1, 2]


def test_what_a_stopped_workflow_left_is_no_training(before: tuple[Path, bytes]) -> None:
    """A training that has ended is one of this call."""
    project, _ = before
    left = project / "logs/smoke/fiarse/diverge.due/trained"
    left.parent.mkdir(parents=True)
    left.touch()
    for target in (FAILING, FIG1):
        assert "output: logs/smoke/fiarse/diverge.due/trained" in text(
            snakemake(project, target, "-n", "--config", "budget=1")
        )
        left.touch()
    os.utime(left, (time.time() + 5, time.time() + 5))
    assert "Nothing to be done" in text(snakemake(project, "results/smoke/fedacs/own.parquet", "-n"))


def test_a_drawing_that_fails_leaves_the_one_of_before(drawn: Path) -> None:
    rendering, figure = drawn / "reproduce/report/render.py", drawn / FIG2
    rendering.write_text(rendering.read_text() + "\n\ndef make(*given):\n    raise ValueError('no ink')\n")
    before = figure.read_bytes()
    run = snakemake(drawn, FIG2, "-c1")
    assert "no ink" in text(run)
    assert "command exited with non-zero exit code" in text(run), "of a command before a pipe"
    assert run.returncode != 0
    assert figure.read_bytes() == before
    assert (drawn / "results/smoke/cells/fedacs_fig2.csv").is_file()
