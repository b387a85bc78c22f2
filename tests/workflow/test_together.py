"""A scale whose jobs are made together: one process for each paper; what fails, what is due alone, signals."""

import os
import signal
import subprocess
import time
from pathlib import Path

import miniature
import written
from miniature import FIG2, snakemake, text


def test_a_whole_scale_is_trained_and_drawn_together(project: Path) -> None:
    """By one process each for a paper; a job that fails, and an artifact that does, end neither the others nor well."""
    run = snakemake(project, "smoke", "-c2", "--config", "budget=1")
    assert run.returncode != 0
    assert "ZeroDivisionError: the training fell over" in text(run)
    assert "1 of 2 jobs were not trained, see above: diverge" in text(run)
    assert "rule train" not in text(run)
    assert "rule figure" not in text(run)
    drawn = {"fedacs_fig2", "fedacs_fig10", "fedacs_fig11", "fedacs_table1", "fiarse_fig1", "dynamic_init_table3"}
    assert {file.stem for file in (project / "results/smoke/cells").iterdir()} == drawn
    assert (project / "results/smoke/fiarse/fine.parquet").is_file(), "trained beside one that fails"
    assert miniature.trained(project / "results/smoke/fedacs/own.parquet") == ([0, 1, 2], 2, 1)
    again = text(snakemake(project, "smoke", "-n", "--config", "budget=1"))
    assert "rule smoke_fiarse" in again
    assert "rule smoke_fedacs" not in again


def test_together_is_made_what_is_due_alone(project: Path) -> None:
    assert snakemake(project, "smoke", "-c2", "-k", "--config", "budget=1").returncode != 0
    other = project / "results/smoke/fedacs/own.parquet"
    before = [(project / f"results/smoke/fedacs/{n}.parquet").read_bytes() for n in ("own", "shared")]
    written.edit(other, lambda run: run if run.seed != 1 else None)
    run = text(snakemake(project, "smoke", "-n", "-p", "--config", "budget=1"))
    assert "-m reproduce train --scale smoke fedacs own ||" in run
    assert "-m reproduce render --scale smoke fedacs/fig2 ||" in run
    assert snakemake(project, "smoke", "-c2", "-k", "--config", "budget=1").returncode != 0
    assert miniature.trained(other)[0] == [0, 1, 2]
    assert (project / "results/smoke/fedacs/shared.parquet").read_bytes() == before[1]


def test_what_fails_over_files_of_before_ends_in_an_error(project: Path) -> None:
    asked = ("smoke_fedacs", "-c2", "--config", "budget=1")
    assert snakemake(project, *asked).returncode == 0
    rendering = project / "reproduce/report/render.py"
    rendering.write_text(rendering.read_text() + "\n\ndef make(*given):\n    raise ValueError('no ink')\n")
    run = snakemake(project, *asked)
    assert "no ink" in text(run)
    assert "error: not all was made of fedacs: see logs/smoke/PAPER.log" in text(run)
    assert run.returncode != 0


def test_a_single_artifact_of_such_a_scale_is_made_alone(project: Path) -> None:
    run = text(snakemake(project, FIG2, "-n"))
    assert "rule figure" in run
    assert "rule smoke_fedacs" not in run


def test_several_jobs_in_processes_of_their_own(project: Path) -> None:
    run = miniature.reproduce(
        project, "train", "--scale", "smoke", "fiarse", "fine", "diverge", "fine", REPRODUCE_THREADS="1"
    )
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == "error: 1 of 2 jobs were not trained, see above: diverge"
    refused = miniature.reproduce(
        project, "train", "--scale", "smoke", "fiarse", "fine", "diverge", "-o", "one.parquet"
    )
    assert (refused.returncode, "name one job" in refused.stderr) == (2, True)
    assert miniature.reproduce(project, "train", "--scale", "smoke", "fiarse", "fine", "nothing").returncode == 2


def test_a_signal_ends_what_is_trained_and_what_waits(project: Path) -> None:
    """It comes to the job once, whether it was sent to the process that was called or to its group."""
    training = project / "reproduce/runs/job.py"
    waiting = """    from reproduce.engine.host import Stopping
    with Stopping() as stopping:
        open("started", "w").close()
        while not stopping.signal:
            pass
        stopping.end()
    write(output"""
    training.write_text(training.read_text().replace("    write(output", waiting))
    process = subprocess.Popen(
        [*miniature.command("reproduce"), "train", "--scale", "smoke", "fedacs", "own", "shared"],
        cwd=project,
        env=miniature.environment(project, REPRODUCE_THREADS="1"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (project / "started").exists():
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "stopped by SIGTERM; the checkpoint is written" in errors
    assert "1 more jobs wait: the same command goes on with them" in errors
