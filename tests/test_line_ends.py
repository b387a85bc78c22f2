"""A clone whose text files have the line ends of another system (git's `core.autocrlf`) is worth the same."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import miniature
import pytest

from reproduce.declare import closure
from reproduce.store import seal

ROOT = Path(__file__).parent.parent
KEPT = ("reproduce", "results/reduced/cells", "results/reduced/replay.csv", "results/reduced/fedagrac")
BINARY = {".parquet", ".png", ".pdf"}

WORTH = """
import json
from pathlib import Path
from reproduce.runs import due, plan, results
from reproduce.store import seal
from reproduce.verdicts.claims import claims_files
jobs = plan.jobs("reduced")
print(json.dumps({
    "digests": [plan.digest_of(j, "float32") for j in jobs],
    "drawn by": [plan.made_from("reduced", a.id) for a in plan.artifacts()],
    "standings": [results.standing(j).words for j in jobs],
    "results": results.tally(jobs),
    "refused": due.refused("reduced"),
    "cells": [seal.of_file(Path(plan.cells_file("reduced", a.id))) for a in plan.artifacts()],
    "claims": [str(file.claims) for file in claims_files()],
}, indent=1))
"""


def crlf(folder: Path) -> int:
    """Give the text files of a folder the line ends of Windows; returns how many."""
    texts = [f for f in folder.rglob("*") if f.is_file() and f.suffix not in BINARY]
    for file in texts:
        file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    return len(texts)


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two copies of a part of the repository, the second with the line ends of Windows."""
    here, there = (tmp_path_factory.mktemp(name) for name in ("unix", "windows"))
    for folder in (here, there):
        for name in KEPT:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    assert crlf(there) > 300
    return here, there


def worth(folder: Path) -> str:
    command = [sys.executable, "-c", WORTH]
    done = subprocess.run(command, cwd=folder, env=miniature.environment(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digests_standings_and_seals_do_not_ask_for_line_ends(clones: tuple[Path, Path]) -> None:
    here, there = map(worth, clones)
    assert here == there
    assert '"refused": []' in here
    assert ": of another" not in here


def test_a_digest_of_lines_that_end_as_they_were_written_is_that_of_the_bytes(tmp_path: Path) -> None:
    """Results and cells that are committed keep theirs."""
    source, cells = closure.PACKAGE / "engine/kernels/convnet.c", tmp_path / "cells.csv"
    assert closure._file_digest(source) == hashlib.sha256(source.read_bytes()).hexdigest()
    cells.write_bytes(b"a,b\n1,2\n")
    assert seal.of_file(cells) == hashlib.sha256(cells.read_bytes()).hexdigest()[:32]


def test_every_file_of_the_repository_is_stored_with_the_lines_of_unix() -> None:
    listed = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    assert not [line for line in listed.stdout.splitlines() if line.startswith(("i/crlf", "i/mixed"))]
    assert not [line for line in listed.stdout.splitlines() if line.startswith("i/-text") and "attr/-text" not in line]
