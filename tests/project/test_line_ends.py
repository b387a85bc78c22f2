"""A clone whose text files have the line ends of another system (git's `core.autocrlf`) is worth the same."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from reproduce import store
from reproduce.declare import closure

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["a.c", "a.csv", "a.yaml"])
def test_digests_are_those_of_lines_that_end_as_they_were_written(name: str, tmp_path: Path) -> None:
    """Results and cells that are committed keep theirs, which are of the bytes."""
    unix, windows = (tmp_path / folder / name for folder in ("unix", "windows"))
    for file, end in ((unix, b"\n"), (windows, b"\r\n")):
        file.parent.mkdir()
        file.write_bytes(end.join((b"a,b", b"1,2", b"")))
    whole = hashlib.sha256(unix.read_bytes()).hexdigest()
    assert closure._file_digest(unix) == closure._file_digest(windows) == whole
    assert store.of_file(unix) == store.of_file(windows) == whole[:32]


def test_every_file_of_the_repository_is_stored_with_the_lines_of_unix() -> None:
    listed = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    assert not [line for line in listed.stdout.splitlines() if line.startswith(("i/crlf", "i/mixed"))]
    assert not [line for line in listed.stdout.splitlines() if line.startswith("i/-text") and "attr/-text" not in line]
