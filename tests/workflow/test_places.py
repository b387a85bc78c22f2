"""The Snakefile from other folders, with other names for targets, where it cannot write, with odd configurations."""

import shutil
import subprocess
import zipfile
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


def test_another_snakefile_takes_the_rules_as_a_module(finished: Path, tmp_path: Path) -> None:
    """In its own folder; the configuration is not one of its own rules, and its first rule is the target."""
    (tmp_path / "Snakefile").write_text(f"""
rule paper:
    input: "{FIG2}"
    output: "paper.txt"
    shell: "echo ours: ${{{{REPRODUCE_THREADS-no threads}}}} > {{output}}"

module reproduce:
    snakefile: "{finished}/Snakefile"
    config: {{"seeds": [5], "threads": 2}}

use rule * from reproduce as reproduce_*
""")
    run = elsewhere(finished, tmp_path, "-c2")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "paper.txt").read_text() == "ours: no threads\n"
    assert miniature.trained(tmp_path / "results/smoke/fedacs/own.parquet") == ([5], 2, 2)
    assert "rule reproduce_smoke_fedacs" not in elsewhere(finished, tmp_path, "reproduce_smoke", "-n").stderr


def test_the_report_of_snakemake_has_every_artifact_of_a_run(drawn: Path) -> None:
    """By paper, name and scale; of a figure its picture, of a table the text."""
    table = "tables/smoke/fedacs_table1.md"
    for arguments in (("-c2",), ("--report", "run.zip")):
        run = snakemake(drawn, FIG2, table, *arguments)
        assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(drawn / "run.zip") as archive:
        shown = {Path(name).name for name in archive.namelist()}
        page = archive.read("run/report.html").decode()
    assert shown == {"fedacs_fig2.png", "fedacs_table1.md", "report.html"}
    assert '"labels": {"item": "table1", "scale": "smoke"}' in page


@pytest.mark.parametrize("target", [f"./{FIG2}", f"figures/../{FIG2}"])
def test_another_way_to_write_a_target_asks_for_no_more(finished: Path, target: str) -> None:
    """A single figure has a budget, however it is named; and what is there is not trained again."""
    run = snakemake(finished, target, "-n")
    assert "Nothing to be done" in run.stdout + run.stderr
    long = target.replace("fig2", "fig11").replace("smoke/f", "paper/f").replace("/smoke/", "/paper/")
    run = snakemake(finished, long.replace("//smoke", "//paper"), "-n")
    assert "leaves out 2 (over the budget of 1 h a job)" in run.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seeds: [08]\n", "'08' does not match"),
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
    other.write_text(text)
    assert says in refusal(snakemake(finished, FIG2, "-n", "--configfile", "other.yaml"))
