"""The decoded copy of a data set: mapped, damaged, on full disks, written by several processes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data import copies
from test_data import mnist as mnist

from reproduce import files
from reproduce.data import decoded as store
from reproduce.data.load import available, load
from reproduce.errors import MissingData, UserError
from reproduce.settings import Settings


def flipped(path: Path, at: int, bits: int = 1) -> None:
    """The file with so many bytes changed from `at` on: as long as before, and as old."""
    before, content = path.stat(), bytearray(path.read_bytes())
    for i in range(at % len(content), at % len(content) + bits):
        content[i] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 1))


def said(key: str, value: Any) -> Callable[[Path], object]:
    """The stamp says something else."""
    return lambda folder: (folder / store.STAMP).write_text(
        json.dumps(json.loads((folder / store.STAMP).read_text()) | {key: value})
    )


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a short array": lambda folder: (folder / "train_x.npy").write_bytes((folder / "train_x.npy").read_bytes()[:-1]),
    "a lost array": lambda folder: (folder / "test_y.npy").unlink(),
    "the last byte": lambda folder: flipped(folder / "train_y.npy", -1),
    "numbers": lambda folder: flipped(folder / "test_x.npy", 150, 40),
    "a shape": lambda folder: flipped(folder / "test_y.npy", 60),
    "no array": lambda folder: flipped(folder / "train_x.npy", 0),
    "half a stamp": lambda folder: (folder / store.STAMP).write_text((folder / store.STAMP).read_text()[:-3]),
    "no stamp": lambda folder: (folder / store.STAMP).unlink(),
    "an old format": said("format", store.FORMAT - 1),
    "a stamp of another checksum": said("sha256", "ab" * 32),
    "a stamp with a note": said("note", "ab"),
    "a stamp of other arrays": said("sums", {}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_made_again(
    place: Settings, mnist: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """And said, where it is an array."""
    whole = load("mnist", place)
    (folder,) = copies(place)
    stamp = (folder / store.STAMP).read_text()
    DAMAGES[damage](folder)
    by_stamp = "stamp" in damage or "format" in damage
    assert available("mnist", place).state == ("present" if by_stamp else "verified")
    for line in ("" if by_stamp else "is damaged (its checksum differs): mnist is decoded again\n", ""):
        data = load("mnist", place)
        assert capsys.readouterr().err.endswith(line)
        assert (data.sha256, data.note) == (whole.sha256, "")
        for key, value in mnist.items():
            assert np.array_equal(getattr(data, key).reshape(value.shape), value)
    assert copies(place) == [folder]
    assert (folder / store.STAMP).read_text() == stamp
    assert sorted(f.name for f in folder.iterdir()) == sorted([store.STAMP, *(f"{k}.npy" for k in mnist)])


def test_of_a_touched_archive_a_whole_copy_is_taken_over_and_a_damaged_one_is_not(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = load("mnist", place)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(1, 1))
    assert available("mnist", place).state == "present"
    with monkeypatch.context() as m:
        m.setattr("reproduce.data.load.decode", None)
        load("mnist", place)
    assert available("mnist", place).state == "verified"
    flipped(copies(place)[0] / "train_x.npy", 300)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(2, 2))
    assert np.array_equal(load("mnist", place).train_x[..., 0], mnist["train_x"])
    assert capsys.readouterr().err.count("is decoded again") == 1
    assert not before.train_x.flags.writeable
    load("mnist", place)
    monkeypatch.setattr("reproduce.data.decoded.hashlib.file_digest", None)  # a process sums a copy once
    load("mnist", place)


def test_without_the_files_a_damaged_copy_is_no_data(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    load("mnist", place)
    flipped(copies(place)[0] / "train_x.npy", 300)
    (place.data / "mnist" / "mnist.npz").unlink()
    with pytest.raises(MissingData, match="data get mnist"):
        load("mnist", place)


ELSEWHERE = """
import sys
from pathlib import Path
sys.path.insert(0, "tests")
import fakes, pytest
from reproduce.data.load import load
from reproduce.settings import Settings
place = Settings(Path(sys.argv[1]), Path(sys.argv[2]), "cpu", 1)
fakes.declare(pytest.MonkeyPatch(), "mnist", fakes.known(place, "mnist/mnist.npz"), "read_npz", 30, 10)
print(load("mnist", place).train_x.sum())
"""


def test_processes_that_find_the_same_damage_all_get_the_data(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    load("mnist", place)
    (folder,) = copies(place)
    flipped(folder / "train_x.npy", 300, 100)
    command = [sys.executable, "-c", ELSEWHERE, str(place.data), str(place.store)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [process.communicate() for process in started]
    assert [out.strip() for out, _ in answers] == [str(mnist["train_x"].sum(dtype=np.int64))] * 4, answers
    assert all(len(said.splitlines()) <= 1 for _, said in answers)
    assert copies(place) == [folder]


@pytest.mark.parametrize(("number", "words"), [(errno.ENOSPC, "no space left"), (errno.EROFS, "cannot write")])
def test_a_full_or_read_only_disk_leaves_no_copy(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    write = files.write

    def refused(path: Path, fill: Any) -> Path:
        if path.name == "test_y.npy":
            raise files.unwritable(path, OSError(number, os.strerror(number)))
        return write(path, fill)

    with monkeypatch.context() as m:
        m.setattr(files, "write", refused)
        with pytest.raises(UserError, match=f"{words}.*{place.store}.* REPRODUCE_STORE"):
            load("mnist", place)
    assert available("mnist", place).state == "present"
    assert len(load("mnist", place).test_y) == 10


def test_an_array_that_does_not_fit_has_an_error_number(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    """A real refusal of the operating system in the middle of an array, by a limit on the size of files."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(UserError, match="no space left"):
            load("mnist", place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert available("mnist", place).state == "present"
