"""All that people get wrong: exit status 2, one line that begins with "error:", nothing half-written, no traceback.

The rows are in `inputs.py` and `inputs_damage.py`.
"""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import inputs
import inputs_damage
import pytest
from inputs import Bad

from reproduce.__main__ import COMMANDS, main
from reproduce.errors import say_once
from reproduce.runs import results

ROWS = (*inputs.ROWS, *inputs_damage.ROWS)


@pytest.fixture
def place(finished_table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_claim: object) -> Path:
    """A copy of it to work in."""
    folder = shutil.copytree(finished_table, tmp_path / "here")
    monkeypatch.chdir(folder)
    inputs_damage.put_claims(monkeypatch, lambda: one_claim)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("REPRODUCE_DATA", str(tmp_path / "data"))
    results._stored_runs.cache_clear()
    results._standing.cache_clear()
    say_once.cache_clear()
    return folder


@contextmanager
def full_disk(on: bool) -> Iterator[None]:
    """No file may get longer than nothing: a refusal of the operating system, as of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if on:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, through no link."""
    return {
        str(Path(base, name).relative_to(folder)): Path(base, name).read_bytes()
        for base, _, names in os.walk(folder)
        for name in names
        if Path(base, name).is_file() and not Path(base, name).is_symlink()
    }


@pytest.mark.parametrize("bad", ROWS, ids=str)
def test_what_people_get_wrong_ends_in_one_line(
    bad: Bad, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in bad.env.items():
        monkeypatch.setenv(name, value)
    bad.prepare(place)
    if bad.patch:
        bad.patch(place, monkeypatch)
    before = files(place)
    with full_disk(bad.full):
        status = main(bad.command)
    said = capsys.readouterr().err.splitlines()
    errors = [line for line in said if line.startswith("error:")]
    assert status == bad.status, said
    assert len(errors) == 1, said
    assert bad.says in errors[0]
    assert not [line for line in said if "Traceback" in line or "error in the program" in line]
    assert files(place) == before


@pytest.mark.parametrize("module", COMMANDS, ids=lambda m: m.NAME)
def test_an_interrupt_is_a_line(
    module: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupted)
    words = {"partition": "sessions", "render": "x/y", "train": "x y"}
    name = module.NAME  # type: ignore[attr-defined]
    assert main((name, *words.get(name, "").split())) == 130
    assert capsys.readouterr().err.count("\n") == 1


def test_an_output_that_takes_nothing_is_a_line() -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "reproduce", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 2
    assert run.stderr == "error: the output: No space left on device\n"
