"""The Snakefile from other folders, with other names for targets, where it cannot write, with odd configurations; on
clusters that let a job run so long."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import miniature
import pytest
import yaml
from miniature import FIG2, ROOT, refusal, snakemake, text

from reproduce.runs import costs, outdated, plan, rates
from reproduce.runs.catalogue import known
from reproduce.runs.costs import Cost


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


SLOW = """
import signal, sys, time
from pathlib import Path
from reproduce.runs import job as quick

train_job = quick.train_job

def slowly(*given):
    begun = Path("begun")
    begun.write_text(begun.read_text() + "x" if begun.exists() else "x")
    if len(begun.read_text()) < 3:  # two parts are stopped in the middle
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        time.sleep(60)
    train_job(*given)

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
    outdated.training.cache_clear()
    outdated.jobs.cache_clear()
    trained, left = outdated.training("paper", "fedagrac/fig4", outdated.Budget(said["budget"]))
    outdated.training.cache_clear()
    outdated.jobs.cache_clear()
    assert {job.name for job in trained} >= {f"fig4-alexnet-{way}--fedagrac" for way in ("equal", "async")}
    assert not left
