"""What evaluators of the artifact are given: docs/artifact.md, the archive, the container, the citation file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduce.declare.paper import total
from reproduce.runs import plan
from reproduce.verdicts.claims import claims_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/artifact.md").read_text(encoding="utf-8")
CLAIMS = ROOT / "docs/papers/claims.md"
SHELL = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)


def test_the_smoke_part_does_what_the_page_says(archive: Path) -> None:
    """In an unpacked archive, without git; `make smoke` itself is what `make test` begins with."""
    first, others = SHELL
    assert first.splitlines() == ["make smoke"]
    commands = others.splitlines()
    assert commands.pop(0) == ". .venv/bin/activate"
    for command in commands:
        done = called(command, archive)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert (archive / "figures/smoke/fedacs_fig7.png").is_file()


def test_the_verdicts_are_those_of_the_scoreboard() -> None:
    rows = [
        re.split(r" *\| *", line)[1:-1] for line in PAGE.splitlines() if re.match(r"\| `\S+` \| (paper|reduced) ", line)
    ]
    assert len(rows) == 5
    parts = CLAIMS.read_text(encoding="utf-8").split("\n### ")
    for claim, scale, _, expected in rows:
        ((head, line),) = [(p.splitlines()[0], line) for p in parts for line in p.splitlines() if f" {claim}" in line]
        assert head.endswith(f", {scale} scale")
        assert re.match(rf"{expected}(<br>| )", line.split(" | ")[-1]), line


def test_every_claim_has_its_line_below_commands_that_exist() -> None:
    page = CLAIMS.read_text(encoding="utf-8")
    parts = re.findall(r"^### (\S+), (\w+) scale\n\n`snakemake (\S+) .*\n`reproduce verify (\S+)(.*)`:", page, re.M)
    assert len(parts) == page.count("\n### ")
    for artifact, scale, file, shown, at in parts:
        assert file in plan.outputs(scale, artifact)
        assert (shown, at) == (artifact, "" if scale == "paper" else f" --scale {scale}")
    below = [(part.split(",")[0], part) for part in page.split("\n### ")[1:]]
    named = sorted((artifact, name) for artifact, part in below for name in re.findall(r" `(\S+)` \|", part))
    assert named == sorted((c.artifact, c.id.partition("/")[2]) for file in claims_files() for c in file.claims)


ANEW = re.findall(r"^\| `\S+` \| `reproduce (.*?)` \| `(.*?)` \| (.*?),", PAGE, re.M)
"""Commands that train, what their last lines have, how long they take."""


@pytest.mark.parametrize(("command", "said", "time"), ANEW)
def test_what_is_trained_anew_ends_as_the_page_says(command: str, said: str, time: str, archive: Path) -> None:
    """What takes minutes, or needs data, exists at least."""
    if "minute" in time or "second" in time:
        done = called(f"reproduce {command}", archive)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout.splitlines()[-1]
    else:
        _, paper, job, *_ = command.split()
        assert plan.job("paper", paper, job).requires


def test_the_page_replays_and_trains() -> None:
    assert [command.split()[0] for command, *_ in ANEW] == ["replay", "replay", "train", "train", "train"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make archive` writes, unpacked where no repository is."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no clone: nothing to make an archive of")
    folder = tmp_path_factory.mktemp("archive")
    packed = folder / "packed.tar.gz"
    subprocess.run(["make", "archive", f"ARCHIVE={packed}"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-xzf", packed, "-C", folder], check=True)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def called(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the page in `folder`, with the archive's code, where git finds nothing and there are no data."""
    words = command.split()
    words = words[1:] if words[0] == "python" else ["-m", *words]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("REPRODUCE_", "GIT_"))}
    outside = {"GIT_CEILING_DIRECTORIES": str(folder.parent), "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=kept | outside, capture_output=True, text=True, timeout=600
    )


def test_an_archive_has_everything_but_history(archive: Path) -> None:
    assert archive.name == f"reproduce-{citation()['version']}"
    assert not (archive / ".git").exists()
    for name in ("README.md", "Snakefile", "reproduce", "tests", "results/paper", "tables", "figures"):
        assert (archive / name).exists(), name


def test_an_archive_works_without_git(archive: Path) -> None:
    listed = called("reproduce list", archive)
    assert (listed.returncode, f"{total()} figures and tables" in listed.stdout) == (0, True)
    verified = called("reproduce verify fedagrac/fig1", archive)
    assert verified.returncode == 0, verified.stderr
    assert "fedagrac/c09" in verified.stdout
    trained = called("reproduce train --scale smoke fedagrac fig1 -o mine.parquet", archive)
    assert trained.returncode == 0, trained.stderr
    ask = "from pathlib import Path; from reproduce import store;"
    ask += "print(store.result(Path('mine.parquet'))[1][0].training['git'])"
    said = subprocess.run([sys.executable, "-c", ask], cwd=archive, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "unknown"


def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
