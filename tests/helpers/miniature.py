"""A project in miniature for tests of the workflow and the command line: the real Snakefile, configuration, plan and
commands around papers, training and rendering that take no time."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import forks
import pytest

from reproduce import store

ROOT = Path(__file__).parents[2]

REAL = (
    "Snakefile",
    "config",
    "profiles",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "reproduce").glob("*.py"))),
    *(f"reproduce/{room}" for room in ("cli", "declare", "runs")),
    "reproduce/engine/host.py",
    "reproduce/papers/__init__.py",
)

FAKE = {
    "reproduce/toys/__init__.py": "",
    "reproduce/toys/records.py": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Toy:
    requires: tuple = ()
    hours: float = 0.0  # of three seeds

    model = None

@dataclass(frozen=True)
class Record:
    value: float = 1.0

    def check(self, experiment):
        pass
""",
    "reproduce/problem.py": "from typing import Literal\n\nScore = Literal['auc']\n",
    "reproduce/clocks/__init__.py": "",
    "reproduce/clocks/step.py": """
from dataclasses import dataclass
from typing import Literal

@dataclass(frozen=True)
class Clock:
    lr_decay: Literal["", "cosine"] = ""
""",
    "reproduce/data/__init__.py": "",
    "reproduce/data/load.py": """
from types import SimpleNamespace

def available(name, settings):
    state = "missing" if name == "svhn" else "present"
    return SimpleNamespace(state=state, detail=f"data set {name}: not in the data folder {settings.data}")
""",
    "reproduce/engine/__init__.py": "",
    "reproduce/engine/written.py": (Path(__file__).parent / "written.py").read_text(encoding="utf-8"),
    "reproduce/runs/rates.py": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Work:
    samples: int
    flops: float
    bytes: int

def estimate(experiment, seeds):
    return Work(100 * len(seeds), 1e9, 10**6)

START = 60.0

def seconds(experiment):
    return 1200 * experiment.problem.hours

cuda = seconds

def state_bytes(experiment):
    return 0.0

def machine():
    return 1.0
""",
    "reproduce/runs/job.py": """
import os
from reproduce.engine.written import run, write
from reproduce.declare.experiment import code

def train_job(job, place, output, stays):
    if "diverge" in job.name:
        raise ZeroDivisionError("the training fell over")
    training = {"git": "c0ffee", "date": "today", "threads": int(os.environ["REPRODUCE_THREADS"])}
    write(output, [run(e, seed, code([e]), **training) for e in job.experiments for seed in job.panel.seeds], stays)
""",
    "reproduce/report/__init__.py": "",
    "reproduce/report/histories.py": """
from typing import Any, NamedTuple

class Source(NamedTuple):
    panel: str
    file: Any
    without: str = ""
    needed: tuple = ()
""",
    "reproduce/report/names.py": "def pretty(name):\n    return name\n\n\ndef words():\n    return {}\n",
    "reproduce/report/render.py": """
from types import SimpleNamespace
from reproduce.runs import plan

def read(artifact, scale, sources, seeds):
    missing = [(source.panel, source.without) for source in sources if not source.file.is_file()]
    return SimpleNamespace(scale=scale, missing=missing, sources=sources, seeds=seeds)

def make(artifact, histories, root, width):
    written = [root / name for name in plan.outputs(histories.scale, artifact.id)[:-1]]
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{histories.sources} {histories.seeds}")
    return written
""",
}

HEAD = """
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import Experiment, Panel
from reproduce.toys.records import Record, Toy

def experiment(algorithm, requires=(), hours=0.0):
    return Experiment({"algorithm": algorithm}, Toy(requires, hours), Record(), Record(0.5), Record(len(algorithm)))

def panel(name, requires=(), hours=0.0):
    return Panel(name, tuple(experiment(a, requires, hours) for a in ("fedavg", "fed_acs")), (0, 1, 2))

def artifact(paper, name, panels):
    draw = None if name.startswith("table") else lambda histories, cells: None
    return Artifact(paper, name, f"Title of {name}", lambda scale: panels, cells=lambda histories: None, draw=draw)

ARTIFACTS = []
"""

PAPER = (
    """{name: A paper, authors: Somebody, title: A title, arxiv: "2501.00000", figures: 14, proposed: [], series: {}}"""
)

ARTIFACTS = {
    ("fedacs", "fig2"): "(panel('shared'), panel('own'))",
    ("fedacs", "fig10"): "(panel('needs', requires=('svhn',)), panel('shared'))",
    ("fedacs", "fig11"): "(panel('shared'), panel('long', hours=20.0))",
    ("fedacs", "table1"): "(panel('shared'),)",
    ("dynamic_init", "table3"): "()",
    ("fiarse", "fig1"): "(panel('diverge'), panel('fine'))",
}


def build(folder: Path) -> Path:
    """Write the miniature into `folder`; returns it."""
    for name in REAL:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    for name, text in FAKE.items():
        write(folder / name, text)
    for paper in ("fedacs", "dynamic_init", "fedagrac", "fiarse", "defedavg"):
        write(folder / "reproduce/papers" / paper / "__init__.py", "")
        write(folder / "reproduce/papers" / paper / "paper.yaml", PAPER)
        write(folder / "reproduce/papers" / paper / "artifacts.py", HEAD)
    for (paper, name), panels in ARTIFACTS.items():
        add_artifact(folder, paper, name, panels)
    return folder


def add_artifact(folder: Path, paper: str, name: str, panels: str) -> None:
    """One more artifact whose panels are the Python expression `panels`."""
    with (folder / f"reproduce/papers/{paper}/artifacts.py").open("a") as file:
        file.write(f"ARTIFACTS.append(artifact('{paper}', '{name}', {panels}))\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def trained(path: Path) -> tuple[list[int], int, int]:
    """(seeds, experiments, threads) of the runs of a results file."""
    runs = store.result(path)[1]
    experiments = {str(run.experiment) for run in runs}
    return sorted({run.seed for run in runs}), len(experiments), runs[-1].training["threads"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment without the user's settings, in which `reproduce` is the miniature's; `more` adds variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("REPRODUCE_")}
    return kept | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **more}


def command(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def run(folder: Path, module: str, arguments: Sequence[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return forks.run(folder, module, arguments, environment(folder, **more))


def reproduce(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`reproduce ...` in the miniature."""
    return run(folder, "reproduce", arguments, more)


def snakemake(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`snakemake ...` in the miniature; targets first, as always."""
    return run(folder, "snakemake", arguments, more)


SUBMIT = """#!/bin/sh
nohup sh "$1" > /dev/null 2>&1 &
echo $!
"""


def cluster(
    folder: Path, *arguments: str, submit: str = "./submit", status: str = ""
) -> subprocess.CompletedProcess[str]:
    """`snakemake ...` with a batch system that is a script, as docs/cluster.md has it."""
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    (folder / "submit").write_text(SUBMIT)
    (folder / "submit").chmod(0o755)
    asked = ("--cluster-generic-status-cmd", status) if status else ()
    often = ("--seconds-between-status-checks", "1", "-j", "2")
    submitted = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", submit)
    return snakemake(folder, *arguments, *submitted, *asked, *often)


def trains(folder: Path, *arguments: str) -> str:
    """What a dry run says it would train; those that are trained together in the form of the others."""
    said = text(snakemake(folder, *arguments, "-n", "-p"))
    together = re.findall(r"-m reproduce train --scale (?:smoke|reduced) ([a-z_]+) (.*?) \|\|", said)
    return said + "".join(f"{paper}/{job}.parquet\n" for paper, jobs in together for job in jobs.split())


FIG2 = "figures/smoke/fedacs_fig2.png"


def text(run: subprocess.CompletedProcess[str]) -> str:
    return run.stdout + run.stderr


def refusal(run: subprocess.CompletedProcess[str]) -> str:
    """The one line in which a workflow ends that cannot begin."""
    assert run.returncode == 2, text(run)
    assert "Traceback" not in text(run)
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    return line
