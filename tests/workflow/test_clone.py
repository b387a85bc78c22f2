"""The Snakefile in a clone: no memory of Snakemake, times of files in any order; what is due, what a budget leaves; and
a scale whose jobs are made together."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import miniature
import pytest
import written
from miniature import FIG2, snakemake, text, trains

BOTH = FIG2, "tables/smoke/fedacs_table1.md"


@pytest.fixture(scope="module")
def finished(drawn_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = shutil.copytree(drawn_once, tmp_path_factory.mktemp("finished") / "project")
    assert snakemake(project, *BOTH, "-c2").returncode == 0
    return project


@pytest.fixture
def both(finished: Path, tmp_path: Path) -> Path:
    """A miniature in which that figure and a table are made."""
    return shutil.copytree(finished, tmp_path / "project")


def clone(project: Path, backwards: bool = True) -> Path:
    """`project` as a fresh checkout; backwards: what was made last has the oldest time."""
    copy = project.with_name(f"{project.name}-clone")
    ignored = shutil.ignore_patterns(".snakemake", "logs", ".reproduce")
    shutil.copytree(project, copy, ignore=ignored)
    files = sorted((f for f in copy.rglob("*") if f.is_file()), key=lambda f: f.stat().st_mtime)
    for i, file in enumerate(files):
        at = 1_700_000_000 + (len(files) - i if backwards else i)
        os.utime(file, (at, at))
    return copy


def change_code(project: Path) -> None:
    """Something that can change a number."""
    training = project / "reproduce/runs/job.py"
    training.write_text(training.read_text() + "\nCONSTANT = 2\n")


@pytest.mark.parametrize("backwards", [True, False])
def test_nothing_is_to_do_in_a_clone_whatever_the_times(both: Path, backwards: bool) -> None:
    copy = clone(both, backwards)
    targets = (*BOTH, "results/smoke/fedacs/own.parquet")
    assert "Nothing to be done" in text(snakemake(copy, *targets, "-n"))


def test_results_of_older_code_are_trained_again_in_a_clone_too_and_said_so(both: Path) -> None:
    copy = clone(both)
    for folder in (both, copy):
        change_code(folder)
        run = snakemake(folder, *BOTH, "-c2")
        assert run.returncode == 0, text(run)
        assert "fig2 at scale smoke trains 2 jobs, about 2 min on one core (all 12 runs stale)" in text(run)
        assert "To train: 2 jobs, about 2 min on one core" in text(run)
        assert "Nothing to be done" in text(snakemake(folder, *BOTH, "-n"))


def test_a_replay_that_agrees_means_nothing_to_do(both: Path) -> None:
    copy = clone(both)
    change_code(copy)
    ask = "from reproduce.runs import plan, results; from reproduce.declare.experiment import code\n"
    for name in ("own", "shared"):
        ask += f"job = plan.job('smoke', 'fedacs', '{name}')\n"
        ask += "line = dict.fromkeys(results.REPLAYED, '') | {'job': 'fedacs/' + job.name, 'result': 'today'}\n"
        ask += "results.add_replay('smoke', line | {'agrees': 'yes', 'asked': '2', 'code': code(job.experiments)})\n"
    subprocess.run([sys.executable, "-c", ask], cwd=copy, env=miniature.environment(copy), check=True)
    assert "Nothing to be done" in text(snakemake(copy, *BOTH, "-n"))


def test_results_that_were_replaced_are_drawn_again(drawn: Path) -> None:
    written.edit(drawn / "results/smoke/fedacs/own.parquet", date="later", git="c0ffee+")
    run = snakemake(drawn, FIG2, "-c2", "-p")
    assert "rule train" not in text(run)
    assert "rule figure" in text(run)
    assert "Nothing to be done" in text(snakemake(drawn, FIG2, "-n"))


def test_a_single_figure_leaves_long_jobs_out_and_a_budget_trains_them(project: Path) -> None:
    fig11 = "figures/smoke/fedacs_fig11.png"
    run = snakemake(project, fig11, "-c2")
    assert run.returncode == 0, text(run)
    assert "leaves out 1 (over the budget of 1 h a job); --config budget=40.1 trains the 1 too" in text(run)
    assert not (project / "results/smoke/fedacs/long.parquet").exists()
    assert "Nothing to be done" in text(snakemake(project, fig11, "-n"))
    (project / fig11).unlink()
    run = snakemake(project, fig11, "-c2", "--config", "budget=2")
    assert "leaves out 1 (over the budget of 2 h a job)" in text(run)
    run = snakemake(project, fig11, "-c2", "--config", "budget=41")
    assert run.returncode == 0, text(run)
    assert "trains 1 job, about 1 d 16 h on one core (all 6 runs missing)" in text(run)
    assert (project / "results/smoke/fedacs/long.parquet").exists()
    assert "Nothing to be done" in text(snakemake(project, fig11, "-n"))


@pytest.mark.parametrize(
    ("target", "scale", "cheap", "long", "lacking", "hours"),
    [
        ("", "paper", 8, 2, 2, "20.1"),
        ("reduced", "reduced", 4, 1, 1, "40.1"),
        ("report/smoke/index.html", "smoke", 4, 1, 1, "40.1"),
    ],
)
def test_a_whole_scale_says_first_what_it_lacks_and_trains_what_is_affordable(
    project: Path, target: str, scale: str, cheap: int, long: int, lacking: int, hours: str
) -> None:
    """Plain Snakemake too; a budget, named, holds for them as for a figure."""
    targets = [target] if target else []
    run = snakemake(project, *targets, "-n")
    (said,) = [line for line in run.stderr.splitlines() if " at scale " in line]  # all is said at once
    assert said.startswith(f"all at scale {scale} trains {cheap} jobs, about {cheap} min on one core (all ")
    assert f"; leaves out {long} (over the budget of 1 h a job)" in said
    assert f"; leaves out {lacking} (needs svhn)" in said
    assert f"; --config budget={hours} trains the {long} too; " in said
    assert "own" in trains(project, *targets)
    assert "long" not in trains(project, *targets)
    assert "long" in trains(project, *targets, "--config", f"budget={hours}")


def test_the_gaps_of_a_figure_that_is_there_are_left_unless_a_budget_is_given(drawn: Path) -> None:
    (drawn / "results/smoke/fedacs/own.parquet").unlink()
    assert snakemake(drawn, FIG2, "-c2").returncode == 0
    copy = clone(drawn)
    few = copy / "results/smoke/fedacs/shared.parquet"
    written.edit(few, lambda run: run if run.seed == 1 else None)
    run = snakemake(copy, FIG2, "-c2")
    assert run.returncode == 0, text(run)
    assert "keeps 1 (a gap of what is there); leaves out 1 (a gap of what is there); --config budget=0.1" in text(run)
    assert "rule train" not in text(run)
    assert "rule figure" in text(run)
    run = snakemake(copy, FIG2, "-c2", "--config", "budget=0.1")
    assert "trains 2 jobs, about 2 min on one core (all 10 runs missing)" in text(run)
    assert miniature.trained(few)[0] == [0, 1, 2]


def test_missing_seeds_are_added_and_what_is_there_stays_if_that_fails(drawn: Path) -> None:
    copy = clone(drawn)
    few = copy / "results/smoke/fedacs/shared.parquet"
    written.edit(few, lambda run: run if run.seed == 1 else None, date="before")
    failing = copy / "results/smoke/fiarse/diverge.parquet"
    failing.parent.mkdir(parents=True)
    shutil.copy(few, failing)
    run = snakemake(copy, "smoke", "-c2", "--config", "budget=1")
    assert "the training fell over" in text(run)
    assert miniature.trained(few)[0] == [0, 1, 2]
    assert {(run.seed, run.training["date"]) for run in written.runs(few)} == {
        (0, "today"),
        (1, "before"),
        (2, "today"),
    }
    log = (copy / "logs/smoke/fedacs.log").read_text()
    assert "4 of 6 runs missing; trains 2 settings with seeds 0, 2, keeps the rest" in log
    assert miniature.trained(failing)[0] == [1]
    assert "fiarse/diverge.parquet" in trains(copy, "smoke")


def test_fewer_seeds_draw_again_and_train_nothing(drawn: Path) -> None:
    run = text(snakemake(drawn, FIG2, "-n", "--config", "seeds=[2]"))
    assert "rule figure" in run
    assert "rule train" not in run
    assert "rule train" in text(snakemake(drawn, FIG2, "-n", "--config", "seeds=[2, 3]"))


def test_a_results_file_is_a_target_that_trains(project: Path) -> None:
    target = "results/smoke/fedacs/long.parquet"
    assert snakemake(project, target, "-c2").returncode == 0
    copy = clone(project)
    assert "Nothing to be done" in text(snakemake(copy, target, "-n"))
    change_code(copy)
    run = text(snakemake(copy, target, "-c2"))
    assert "2 of 2 steps (100%) done" in run
    assert "To train: 1 job, about 1 d 16 h on one core" in run


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
