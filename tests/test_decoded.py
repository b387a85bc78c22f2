"""The decoded copy of a data set: mapped, damaged, on full disks, written by several processes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data import copies
from test_data import mnist as mnist

from reproduce.data import decoded as store
from reproduce.data.load import available, load
from reproduce.errors import MissingData, UserError
from reproduce.settings import Settings


@pytest.mark.parametrize(
    "damage", ["short array", "lost array", "extra array", "broken manifest", "no manifest", "old format"]
)
def test_damaged_decoded_copy_is_made_again(place: Settings, mnist: dict[str, np.ndarray], damage: str) -> None:
    load("mnist", place)
    (folder,) = copies(place)
    array, manifest = folder / "train_x.npy", folder / store.MANIFEST
    if damage == "short array":
        array.write_bytes(array.read_bytes()[:-1])
    elif damage == "lost array":
        array.unlink()
    elif damage == "extra array":
        np.save(folder / "more.npy", np.zeros(1))
    elif damage == "broken manifest":
        manifest.write_text(manifest.read_text()[:-3])
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": store.FORMAT - 1}))
    assert available("mnist", place).state == "present"
    assert np.array_equal(load("mnist", place).train_x[..., 0], mnist["train_x"])
    assert copies(place) == [folder]
    assert sorted(f.name for f in folder.iterdir()) == ["manifest.json"] + [f"{k}.npy" for k in sorted(mnist)]


def flipped(path: Path, at: int, bits: int = 1) -> None:
    """The file with so many bytes changed from `at` on: as long as before, and as old."""
    before, content = path.stat(), bytearray(path.read_bytes())
    for i in range(at, at + bits):
        content[i] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 1))


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


@pytest.mark.parametrize("array", ["train_x", "train_y", "test_x", "test_y"])
@pytest.mark.parametrize(("at", "bits"), [(-1, 1), (150, 40), (60, 1), (0, 1)])
def test_a_decoded_copy_with_changed_bytes_is_made_again_and_says_so(
    place: Settings, mnist: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str], array: str, at: int, bits: int
) -> None:
    """In the numbers, in the last byte, in what says their shape and type."""
    load("mnist", place)
    (folder,) = copies(place)
    path = folder / f"{array}.npy"
    flipped(path, at % path.stat().st_size, bits)
    for said in (f"{path} is damaged (its checksum differs): mnist is decoded again\n", ""):
        data = load("mnist", place)
        assert capsys.readouterr().err == said
        for key, value in mnist.items():
            assert np.array_equal(getattr(data, key).reshape(value.shape), value)
    assert copies(place) == [folder]


def test_a_damaged_copy_of_another_files_checksum_is_not_taken_over(
    place: Settings, mnist: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive was touched, too: its checksum names the copy, whose bytes are others."""
    load("mnist", place)
    flipped(copies(place)[0] / "train_x.npy", 300)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(1, 1))
    assert np.array_equal(load("mnist", place).train_x[..., 0], mnist["train_x"])
    assert capsys.readouterr().err.count("is decoded again") == 1


@pytest.mark.parametrize("key", ["sha256", "note", "stamps", "files", "name", "seal"])
def test_a_changed_manifest_is_not_believed(place: Settings, mnist: dict[str, np.ndarray], key: str) -> None:
    """What it says is in the provenance of results."""
    sha256 = load("mnist", place).sha256
    (folder,) = copies(place)
    manifest = folder / store.MANIFEST
    content = json.loads(manifest.read_text())
    other = {"stamps": [], "files": {f: [size, "ab"] for f, (size, _) in content["files"].items()}}.get(key, "ab" * 32)
    manifest.write_text(json.dumps(content | {key: other}))
    assert available("mnist", place).state == "present"
    data = load("mnist", place)
    assert (data.sha256, data.note) == (sha256, "")
    assert json.loads(manifest.read_text()) == content


def test_a_copy_is_read_once_for_its_checksum(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    load("mnist", place)
    monkeypatch.setattr("reproduce.data.decoded.hashlib.file_digest", None)
    load("mnist", place)


def test_without_the_files_a_damaged_copy_is_no_data(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    load("mnist", place)
    flipped(copies(place)[0] / "train_x.npy", 300)
    (place.data / "mnist" / "mnist.npz").unlink()
    with pytest.raises(MissingData, match="data get mnist"):
        load("mnist", place)


def test_a_damaged_copy_in_a_store_that_is_read_only_is_refused(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    load("mnist", place)
    flipped(copies(place)[0] / "train_x.npy", 300)

    def refused(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(store, "save", refused)
    with pytest.raises(UserError, match="cannot be written"):
        load("mnist", place)


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


def test_a_copy_that_was_mapped_keeps_its_numbers_when_another_is_put_in_its_place(
    place: Settings, mnist: dict[str, np.ndarray]
) -> None:
    before = load("mnist", place)
    flipped(copies(place)[0] / "test_x.npy", 300)
    load("mnist", place)
    assert np.array_equal(before.train_x[..., 0], mnist["train_x"])


def test_touched_archive_is_verified_again_but_not_decoded(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    load("mnist", place)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(1, 1))
    assert available("mnist", place).state == "present"
    monkeypatch.setattr("reproduce.data.load.decode", None)
    load("mnist", place)
    assert available("mnist", place).state == "verified"


@pytest.mark.parametrize(("number", "words"), [(errno.ENOSPC, "no space left"), (errno.EROFS, "cannot be written")])
def test_full_or_read_only_disk_leaves_nothing_behind(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    original = store.save

    def save(path: Path, array: np.ndarray) -> None:
        if path.name == "test_y.npy":
            path.write_bytes(b"half")
            raise OSError(number, os.strerror(number))
        original(path, array)

    monkeypatch.setattr(store, "save", save)
    with pytest.raises(UserError, match=words) as caught:
        load("mnist", place)
    assert str(place.store) in str(caught.value)
    assert "REPRODUCE_STORE" in str(caught.value)
    assert not copies(place)
    monkeypatch.setattr(store, "save", original)
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
    assert not copies(place)


def test_interrupted_writing_leaves_nothing_behind(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("mnist", place)
    assert not copies(place)


def test_leftovers_of_killed_processes_are_swept_after_a_day(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    old, young, other = (place.store / "data" / name for name in (".mnist-a.tmp", ".mnist-b.tmp", ".mnist-x-c.txt"))
    for folder in (old, young, other):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    load("mnist", place)
    assert not old.exists()
    assert young.exists()
    assert other.exists()


def test_two_processes_writing_the_same_copy_both_succeed(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    root, arrays = place.store / "data", {"train_x": np.zeros(3)}
    first = store.write(root, "mnist", "ab" * 32, arrays, "", [])
    second = store.write(root, "mnist", "ab" * 32, {"train_x": np.ones(3)}, "", [])
    assert first.path == second.path
    assert second.arrays()["train_x"].tolist() == [0, 0, 0]  # the whole copy that was there first stays
    assert copies(place) == [first.path]
