"""The Snakefile from other folders, with other names for targets, where it cannot write, with odd configurations."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import miniature
import pytest
from miniature import FIG2, refusal, snakemake


@pytest.fixture(scope="module")
def finished(drawn_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A miniature with a figure, which the tests of this module leave as it is."""
    return shutil.copytree(drawn_once, tmp_path_factory.mktemp("finished") / "project")


def elsewhere(project: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`snakemake ...` of the project in another folder."""
    return miniature.run(folder, "snakemake", arguments, {"PYTHONPATH": str(project)})


def test_a_folder_that_is_not_the_projects_is_named(finished: Path, tmp_path: Path) -> None:
    run = elsewhere(finished, tmp_path, FIG2, "-c1", "-s", str(finished / "Snakefile"))
    assert f"{tmp_path} is not the folder of the project: cd {finished}, or name a folder" in refusal(run)
    run = elsewhere(finished, finished / "config", FIG2, "-c1", "-s", "../Snakefile")
    assert f"{finished / 'config'} is not the folder of the project" in refusal(run)
    assert {f.name for f in tmp_path.iterdir()} <= {".snakemake"}


def test_a_folder_that_is_named_is_worked_in(finished: Path, tmp_path: Path) -> None:
    """With the configuration of the repository, or with its own."""
    there, snakefile = tmp_path / "there", str(finished / "Snakefile")
    run = elsewhere(finished, tmp_path, FIG2, "-c2", "-s", snakefile, "-d", "there")
    assert run.returncode == 0, run.stderr
    assert f"working in {there}: what {finished} has made does not count here" in run.stderr
    assert (there / FIG2).is_file()
    assert miniature.trained(there / "results/smoke/fedacs/own.parquet")[2] == 1
    (there / "config").mkdir()
    (there / "config/config.yaml").write_text("threads: 3\nseeds: [5]\n")
    run = elsewhere(finished, tmp_path, FIG2, "-c3", "-s", snakefile, "-d", "there")
    assert run.returncode == 0, run.stderr
    assert miniature.trained(there / "results/smoke/fedacs/own.parquet") == ([0, 1, 2, 5], 2, 3)


@pytest.mark.parametrize("target", [f"./{FIG2}", f"figures/../{FIG2}"])
def test_another_way_to_write_a_target_asks_for_no_more(finished: Path, target: str) -> None:
    """A single figure has a budget, however it is named; and what is there is not trained again."""
    run = snakemake(finished, target, "-n")
    assert "Nothing to be done" in run.stdout + run.stderr
    long = target.replace("fig2", "fig11").replace("smoke/f", "paper/f").replace("/smoke/", "/paper/")
    run = snakemake(finished, long.replace("//smoke", "//paper"), "-n")
    assert "leaves out 2 (over the budget of 1 h a job)" in run.stderr


def no_folder(name: str) -> Callable[[Path], object]:
    return lambda project: (project / name).write_text("in the way")


def nowhere(name: str) -> Callable[[Path], object]:
    return lambda project: (project / name).symlink_to("/proc/nothing")


def piped(name: str) -> Callable[[Path], object]:
    def prepare(project: Path) -> None:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).unlink(missing_ok=True)
        os.mkfifo(project / name)

    return prepare


def folder(name: str) -> Callable[[Path], object]:
    return lambda project: (project / name).mkdir(parents=True)


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        *((no_folder(name), "is no folder") for name in ("results", ".snakemake")),
        *((nowhere(name), "is no folder") for name in ("figures", "logs")),
        (piped("results/smoke/fedacs/own.parquet"), "own.parquet: what lies there is no file"),
        (folder(FIG2), "fedacs_fig2.png: what lies there is no file"),
        (piped("config/config.yaml"), "config/config.yaml is a pipe, a socket or a device"),
    ],
)
def test_where_nothing_can_be_written_is_said_before_the_first_job(
    tmp_path: Path, prepare: Callable[[Path], object], says: str
) -> None:
    project = miniature.build(tmp_path)
    prepare(project)
    assert says in refusal(snakemake(project, FIG2, "-c1"))


AS_OTHERS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root may write everywhere; so it may not."""


@pytest.mark.skipif(bool(AS_OTHERS) and shutil.which("setpriv") is None, reason="root may write everywhere")
@pytest.mark.parametrize("name", ["results/smoke/fedacs", ".snakemake"])
def test_a_read_only_folder_is_said(tmp_path: Path, name: str) -> None:
    project = miniature.build(tmp_path)
    (project / name).mkdir(parents=True)
    (project / name).chmod(0o500)
    command, env = [*AS_OTHERS, *miniature.command("snakemake"), FIG2, "-c1"], miniature.environment(project)
    run = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
    (project / name).chmod(0o700)
    assert "is not writable" in refusal(run)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seeds: [08]\n", "'08' does not match"),
        ("- scale\n", "not the keys of a configuration"),
        ("threads: true\n", "True is not of type 'integer'"),
        ("budget: .nan\n", "REPRODUCE_BUDGET=nan"),
    ],
)
def test_a_configuration_that_is_not_what_it_looks_like_is_refused(finished: Path, text: str, says: str) -> None:
    """In the project's file and in one that is named."""
    own, other = finished / "config/config.yaml", finished / "other.yaml"
    before = own.read_text()
    try:
        own.write_text(text)
        assert says in refusal(snakemake(finished, FIG2, "-n"))
    finally:
        own.write_text(before)
    if not text.startswith("-"):  # Snakemake reads that one first
        other.write_text(text)
        assert says in refusal(snakemake(finished, FIG2, "-n", "--configfile", "other.yaml"))
