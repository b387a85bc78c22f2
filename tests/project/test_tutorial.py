"""docs/tutorial.md in a folder that has nothing else; the commands of docs/play.md."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL, PAGE = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "play.md"))
OWN, SCRIPT, DIGITS, NET = re.findall(r"^```python\n(.*?)^```$", TUTORIAL, flags=re.M | re.S)
COMMAND, MINE, TOGETHER = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL, flags=re.M | re.S)
(OTHERS,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)


def put(folder: Path, *blocks: str) -> None:
    """Write blocks that begin with the name of their file."""
    for block in blocks:
        name, text = re.fullmatch(r"# (\S+)\n(.*)", block, flags=re.S).groups()
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    put(folder, OWN)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "REPRODUCE_STORE": str(folder / "store")}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_strangers_class_has_its_row_with_intervals_on_two_benchmarks(folder: Path) -> None:
    words = shlex.split(COMMAND)
    said = run(folder, "-m", *words)
    lines = [line for line in said.stdout.splitlines() if "FedSlow" in line]
    assert [line.split()[0] for line in lines] == ["fedagrac-steps", "sessions"]
    assert all(" to " in line and line.split()[-1] in "123" for line in lines), "all are ok, and ranked"
    assert "6 of 6 results to train, 18 runs in 4 cohorts" in said.stderr
    assert {f.name for f in folder.glob("slow.*")} == {"slow.md", "slow.csv", "slow.png", "slow.pdf"}
    frame = pd.read_csv(folder / "slow.csv")
    assert len(frame) == 2 * 3 * 3
    again = run(folder, "-c", SCRIPT)
    assert "2 of 6 results to train" in again.stderr
    assert again.stdout.count("FedSlow(fade=0.9)") == 2


def test_a_strangers_pictures_and_network_train_in_one_command_each(tmp_path: Path) -> None:
    put(tmp_path, OWN, DIGITS, NET)
    for line in MINE.splitlines():
        said = run(tmp_path, *shlex.split(line.removeprefix("python ") if line.startswith("python") else f"-m {line}"))
    about = "my digits: 1,442 + 355 pictures 8 x 8 x 1, 10 classes; DirichletClass(alpha=0.3) over 20 clients"
    assert about in said.stderr
    rows = [line for line in said.stdout.splitlines() if line.startswith(("fedavg ", "scaffold "))]
    assert [row.split()[0] for row in rows] == ["fedavg", "scaffold"]
    assert all(float(row.split()[2]) > 50 for row in rows), "it learns"
    said = run(tmp_path, "-m", *shlex.split(TOGETHER))
    rows = [line for line in said.stdout.splitlines() if line.startswith(("fedavg ", "my_module:"))]
    assert [row.split()[0] for row in rows] == ["fedavg", "my_module:FedSlow(fade=0.9)"]
    told = " ".join(said.stdout.split())
    assert "Rates: chosen on a tenth of the training data that no client has, by other seeds." in told


def test_the_class_of_the_page_goes_half_the_way() -> None:
    named: dict[str, type] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S)[0], named)
    state = {"x": 1.0}
    named["FedHalf"](share=0.25).aggregate(None, state, None, None, SimpleNamespace(sums=[4.0]))
    assert state == {"x": 2.0}


def test_the_other_commands_of_the_page_exist() -> None:
    from reproduce.__main__ import parser

    for line in OTHERS.splitlines():
        assert parser().parse_args(shlex.split(line.partition("#")[0])[1:]).command == "play"
