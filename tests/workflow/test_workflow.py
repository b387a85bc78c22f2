"""The Snakefile on a miniature project: what is made, what is left out, what makes it run again, what stops it; and
trainings and drawings that fail, on whatever machine."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import miniature
import pytest
import written
from miniature import FIG2, cluster, refusal, snakemake, text

from reproduce.runs import plan
from reproduce.workflow import PAPER


def test_a_figure_is_a_target_and_nothing_more_is_made(project: Path) -> None:
    run = snakemake(project, FIG2, "-c2")
    assert run.returncode == 0, text(run)
    assert run.stderr.splitlines()[-1] == f"Written: {FIG2}"
    assert sorted(p.name for p in (project / "results").rglob("*.*")) == [
        "fedacs_fig2.csv",
        "fedacs_fig2.json",
        "own.parquet",
        "shared.parquet",
    ]
    assert sorted(p.name for p in (project / "figures/smoke").iterdir()) == [
        f"fedacs_fig2.{k}" for k in ("pdf", "png", "tex", "txt")
    ]
    assert miniature.trained(project / "results/smoke/fedacs/own.parquet") == ([0, 1, 2], 2, 1)
    assert "Nothing to be done" in text(snakemake(project, FIG2, "-n"))


def test_every_artifact_is_of_one_rule() -> None:
    """Of the rules of tables and figures, by their constraint of names; cells are outputs of both."""
    for artifact in plan.artifacts():
        file = Path(plan.cells_file("smoke", artifact.id)).name
        fit = [kind for kind, paper in PAPER.items() if re.fullmatch(rf"{paper}_[a-z0-9]+\.csv", file)]
        assert fit == [artifact.kind]
    assert "table" in {a.kind for a in plan.artifacts() if not a.name.startswith("table")}, "it is asked"


def test_changed_experiments_train_again_and_changed_rules_do_not(drawn: Path) -> None:
    snakefile = drawn / "Snakefile"
    assert "} render --scale" in snakefile.read_text()
    snakefile.write_text(snakefile.read_text().replace("} render --scale", "}  render --scale"))
    assert "Nothing to be done" in text(snakemake(drawn, FIG2, "-n"))
    fig = drawn / "reproduce/papers/fedacs/artifacts.py"
    fig.write_text(fig.read_text().replace("Record(0.5)", "Record(0.25 if name == 'own' else 0.5)"))
    fig.write_text(fig.read_text().replace("def experiment(algorithm, ", "def experiment(name, algorithm, "))
    fig.write_text(fig.read_text().replace("experiment(a, requires, hours)", "experiment(name, a, requires, hours)"))
    plan = text(snakemake(drawn, FIG2, "-n"))
    assert "output: logs/smoke/fedacs/own.due/trained" in plan
    assert "output: logs/smoke/fedacs/shared.due/trained" not in plan, (
        "an equal panel of another artifact is not touched"
    )


def test_seeds_of_the_configuration_replace_the_declared_ones_and_train_again(drawn: Path) -> None:
    run = snakemake(drawn, FIG2, "-c2", "--config", "seeds=[4, 7]", "threads=2")
    assert run.returncode == 0, text(run)
    assert miniature.trained(drawn / "results/smoke/fedacs/own.parquet") == ([0, 1, 2, 4, 7], 2, 2)


def test_a_panel_without_its_data_set_is_left_out_and_said_so(project: Path) -> None:
    run = snakemake(project, "figures/reduced/fedacs_fig10.pdf", "-c2")
    assert run.returncode == 0, text(run)
    assert "fedacs/fig10 at scale reduced: panel needs not run, or in part: no results yet on svhn" in text(run)
    assert [p.name for p in (project / "results/reduced/fedacs").iterdir()] == ["shared.parquet"]


def elsewhere(project: Path, scale: str, paper: str, job: str) -> Path:
    """A results file as another machine, which has all data, would have made it."""
    data = project / "reproduce/data/load.py"
    text = data.read_text()
    data.write_text(text.replace("svhn", "nothing"))
    run = miniature.reproduce(project, "train", "--scale", scale, paper, job, REPRODUCE_THREADS="9")
    data.write_text(text)
    assert run.returncode == 0, run.stderr
    return project / f"results/{scale}/{paper}/{job}.parquet"


def test_results_that_came_from_elsewhere_are_rendered_without_the_data_set(project: Path) -> None:
    needs = project / "results/reduced/fedacs/needs.parquet"
    elsewhere(project, "reduced", "fedacs", "needs")
    run = snakemake(project, "figures/reduced/fedacs_fig10.pdf", "-c2")
    assert run.returncode == 0, text(run)
    assert "not run" not in text(run)
    assert miniature.trained(needs)[2] == 9


def test_paper_scale_is_the_default_with_a_job_for_each_algorithm(project: Path) -> None:
    plan = text(snakemake(project, "-n"))
    for name in ("fedacs/own--fedavg", "fedacs/own--fed-acs", "fedacs/shared--fedavg", "fiarse/diverge--fed-acs"):
        assert f"output: logs/paper/{name}.due/trained" in plan
    assert "report/paper/index.html" in plan
    assert "results/smoke" not in plan


def test_a_failing_job_ends_in_an_error_shows_its_log_and_the_rest_is_made(project: Path) -> None:
    run = snakemake(project, "figures/smoke/fiarse_fig1.png", FIG2, "-c2")
    assert run.returncode != 0
    assert "ZeroDivisionError: the training fell over" in text(run)
    assert (project / FIG2).exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("figures/smoke/fedacs_fgi2.png", "unknown artifact 'fedacs/fgi2'; did you mean fedacs/fig2"),
        ("results/smoke/fedacs/onw.parquet", "unknown job of fedacs at scale smoke 'onw'; did you mean own"),
    ],
)
def test_an_unknown_target_is_named(project: Path, target: str, message: str) -> None:
    assert message in refusal(snakemake(project, target, "-n"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("budget=soon", "'soon' is not valid under any of the given schemas"),
        ("scle=smoke", "'scle' was unexpected"),
        ("threads=0", "0 is less than the minimum of 1"),
        ("seeds=[0, 0]", "has non-unique elements"),
        ("store=Snakefile", "REPRODUCE_STORE=Snakefile: not a folder"),
        ("precision=tf32", "REPRODUCE_PRECISION=tf32 is arithmetic of GPUs"),
    ],
)
def test_a_wrong_configuration_stops_before_the_first_job(project: Path, setting: str, message: str) -> None:
    run = snakemake(project, FIG2, "-c1", "--config", setting)
    assert message in refusal(run)
    assert not (project / "results").exists()


def test_a_second_workflow_in_the_same_folder_is_refused(project: Path) -> None:
    training = project / "reproduce/runs/job.py"
    waiting = "    import time\n    while not os.path.exists('go'):\n        time.sleep(0.05)\n    write(output"
    training.write_text(training.read_text().replace("    write(output", waiting))
    first = subprocess.Popen(
        [*miniature.command("snakemake"), FIG2, "-c1"],
        cwd=project,
        env=miniature.environment(project),
        stderr=-1,
        text=True,
    )
    try:
        wait_for(project / "logs/smoke/fedacs")
        second = snakemake(project, FIG2, "-c1")
        assert second.returncode != 0
        assert "LockException" in text(second)
    finally:
        (project / "go").touch()
        _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors


def test_a_folder_with_a_space_in_its_path(tmp_path: Path) -> None:
    """Also the interpreter may lie there: `make smoke` in "my clones/reproduce"."""
    project = miniature.build(tmp_path / "my clones" / "of $HOME & 'quotes'")
    python, workflow = project / "bin dir/python", project / "reproduce/workflow.py"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@" >> called\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    workflow.write_text(workflow.read_text().replace("PYTHON = sys.executable", f"PYTHON = {str(python)!r}"))
    refused = miniature.cluster(project, FIG2)
    assert "bin dir/python' has a space" in refusal(refused)
    run = snakemake(project, FIG2, "tables/smoke/fedacs_table1.md", "-c2")
    assert run.returncode == 0, text(run)
    assert len((project / "called").read_text().splitlines()) == 4, "two jobs, two artifacts"


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists() and any(path.iterdir()):
            return
        time.sleep(0.1)
    raise TimeoutError(path)


def test_the_gpu_profile_asks_for_a_gpu_and_trains_on_it(project: Path) -> None:
    run = snakemake(project, FIG2, "-n", "--workflow-profile", "profiles/gpu")
    assert run.returncode == 0, text(run)
    assert "gpu=1" in text(run)
    assert "gpu=0" in text(snakemake(project, FIG2, "-n"))


FAILING, FIG1 = "results/smoke/fiarse/diverge.parquet", "figures/smoke/fiarse_fig1.png"


@pytest.fixture
def before(drawn: Path) -> tuple[Path, bytes]:
    """A project with a result of fewer seeds than declared for a job that will fail; and the result."""
    few = drawn / FAILING
    few.parent.mkdir(parents=True)
    shutil.copy(drawn / "results/smoke/fedacs/own.parquet", few)
    written.edit(few, lambda run: run if run.seed == 1 else None)
    return drawn, few.read_bytes()


@pytest.mark.skipif(" " in sys.executable, reason="batch systems take no Python whose path has a space")
def test_a_training_that_fails_on_a_cluster_leaves_the_result_of_before(before: tuple[Path, bytes]) -> None:
    project, result = before
    run = cluster(project, FIG1, "--config", "budget=1")
    assert run.returncode != 0
    assert "the training fell over" in text(run)
    assert (project / FAILING).read_bytes() == result
    assert miniature.trained(project / "results/smoke/fiarse/fine.parquet")[0] == [0, 1, 2]


@pytest.mark.skipif(" " in sys.executable, reason="batch systems take no Python whose path has a space")
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
    training.write_text(broken.replace('if "diverge" in job.name', "if False"))
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
