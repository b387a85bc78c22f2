"""Where commands are started, and with which streams: in the project, elsewhere, in a folder that is gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.__main__ import main

ROOT = Path(__file__).parents[2]
NEEDS = [
    *(f"{words} --scale smoke{more}" for words in ("plan fedagrac", "verify") for more in ("", " --json")),
    *("render --scale smoke fedagrac/table1", "report --scale smoke", "replay --scale smoke"),
]
"""Commands that read what was made; in a folder without it all would be taken for missing."""
ANYWHERE = [
    *("list fedacs", "data", "play --list --scale smoke"),
    "partition fedagrac-steps --scale smoke -o who.parquet",
    "train --scale smoke fedagrac table1-lr -o out.parquet",
]


def run(words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    line = [sys.executable, "-m", "reproduce", *words.split()]
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("command", NEEDS)
def test_what_needs_results_says_where_they_are(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    line = f"error: {tmp_path} is not the folder of the project: run this where its results are (cd {ROOT})\n"
    assert capsys.readouterr() == ("", line)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("command", ANYWHERE)
def test_the_others_work_in_an_empty_folder(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 0


def test_signs_that_a_terminal_does_not_have_are_spelled_out() -> None:
    """A minus sign is not lost."""
    done = run("verify --scale reduced fedagrac/table6", ROOT, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2212" in done.stdout


@pytest.mark.parametrize("home", [None, "/nonexistent", ""])
def test_a_home_that_is_not_there(home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    words = "play fednova --on fedagrac/fig1 --scale smoke --seeds 0 -o a"
    done = run(words, tmp_path, **({} if home is None else {"HOME": home}))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.png").is_file()


WINDOWS = """
import runpy, sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "resource"):
            raise ModuleNotFoundError(name)
for name in ("fcntl", "resource"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Lacking())
sys.platform = "win32"
sys.argv = ["reproduce", "list"]
runpy.run_module("reproduce", run_name="__main__")
"""


def test_windows_is_told_in_a_line() -> None:
    done = subprocess.run([sys.executable, "-c", WINDOWS], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: reproduce runs on Linux and macOS; on Windows install and start it in WSL\n"
