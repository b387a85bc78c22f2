"""docs/extending.md: its blocks are put into a copy of the package, and its commands run there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
NEW = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, flags=re.M | re.S)
CHANGES = re.findall(r"^```python\n# (\S+), ([^\n]+)\n(.*?)^```$", PAGE, flags=re.M | re.S)
(OF_PAPER,) = re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.M | re.S)
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with what the page adds to it."""
    folder = tmp_path_factory.mktemp("extended")
    copied = ("reproduce", "benchmarks", "config", "tests/conftest.py", "tests/helpers", "Snakefile", "pyproject.toml")
    for name in copied:
        (folder / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for name, text in NEW:
        assert not (folder / name).exists()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name, place, text in CHANGES:
        (folder / name).write_text(_changed((folder / name).read_text(encoding="utf-8"), place, text), encoding="utf-8")
    return folder


def _changed(old: str, place: str, text: str) -> str:
    if place == "among the imports":
        return old.replace("\nfrom reproduce", f"\n{text}from reproduce", 1)
    assert place == "in ARTIFACTS"
    head, start, rest = old.partition("\nARTIFACTS = (\n")
    assert start
    return head + start + text + rest


def _run(folder: Path, command: str) -> str:
    """What the command prints; the copy comes before the installed package, and has a store of its own."""
    words = shlex.split(command)
    environment = {**os.environ, "PYTHONPATH": str(folder), "REPRODUCE_STORE": str(folder / "store")}
    python = [sys.executable, *(["-m"] if words[0] != "python" else [])]
    done = subprocess.run(
        [*python, *words[words[0] == "python" :]],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_page_ends_with_commands_that_make_what_it_adds(project: Path) -> None:
    test, plan, figure = COMMANDS.splitlines()
    assert "1 passed" in _run(project, test)
    assert "halves" in _run(project, plan)
    _run(project, figure)
    assert (project / "figures/smoke/fedagrac_halves.png").stat().st_size > 10_000
    cells = pd.read_csv(project / "results/smoke/cells/fedagrac_halves.csv")
    assert sorted(set(cells["algorithm"])) == ["fedavg", "fedhalf"]
    assert (cells["value"] > 50).all(), "a third would be chance"
    assert "FedHalf beside FedAvg" in _run(project, "reproduce list")
    _run(project, "python -m benchmarks.graphs")
    kept = (project / "reproduce/models/networks.json").read_text(encoding="utf-8")
    assert "Deep" not in kept, "a change of deep.py would go unseen"
    played = _run(project, "reproduce play fedhalf --cost --on fedagrac-steps --scale smoke")
    assert "2 of 2 results to train" in played, "nothing is registered for it"


ALL = """
import sys
from reproduce.__main__ import main
for line in sys.stdin:
    print("status", main(line.split()[1:]), flush=True)
"""


def test_a_paper_is_one_folder(tmp_path: Path) -> None:
    """The page's, beside those of the package, which nothing changes. Of another one a file is missing: its page alone
    is not written."""
    for name, text in NEW:
        for key in ("fedavgm", "other") if name.startswith("mine/") else ():
            file = tmp_path / name.replace("fedavgm", key)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("fedavgm", key), encoding="utf-8")
            (tmp_path / "mine" / key / "__init__.py").touch()
    (tmp_path / "mine/other/summary.yaml").unlink()
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/claims.md").write_text("<!-- both scales -->\n<!-- end of both scales -->\n", encoding="utf-8")
    environment = {**os.environ, "REPRODUCE_PAPERS": "mine", "PYTHONPATH": str(ROOT), "REPRODUCE_STORE": "store"}
    lines, said, failed = OF_PAPER.splitlines(), "", ""
    for part in (lines[:4], lines[4:]):  # what a process has seen of results it takes for what is there
        done = subprocess.run(
            [sys.executable, "-c", ALL], input="\n".join(part),
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        said, failed = said + done.stdout, failed + done.stderr
    assert re.findall(r"^status (\d)", said, flags=re.M) == ["0"] * 6 + ["2"], failed
    assert "fedavgm/table1" in said
    assert "supported: 1\n  fedavgm/nearer" in said
    cells = pd.read_csv(tmp_path / "results/smoke/cells/fedavgm_fig1.csv")
    ours = cells.groupby("algorithm")["value"].mean()["fedavgm"]
    assert f"| FedAvgM | ours | **{ours:.2f} ± " in (tmp_path / "tables/smoke/fedavgm_table1.md").read_text("utf-8")
    assert (tmp_path / "figures/smoke/fedavgm_fig1.png").stat().st_size > 10_000
    assert "FedAvgM" in (tmp_path / "report/smoke/index.html").read_text(encoding="utf-8")
    page = (tmp_path / "docs/papers" / "fedavgm.md").read_text(encoding="utf-8")
    assert f"FedAvgM ends at {ours:.2f} (published:\n0.05)" in page
    assert "## Unstated choices" in page
    assert "mine/other/summary.yaml is not there" in failed
    assert "mine/fedavgm" not in failed
    assert not (tmp_path / "docs/papers" / "other.md").exists()
