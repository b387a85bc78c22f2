"""Data sets: reading, checksums, the decoded copy and its damage, full disks, the table of sets, the real files.

Tests of the real files need REPRODUCE_DATA.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import RNG, declare, grey, known

from reproduce.data import decoded as store
from reproduce.data import download
from reproduce.data.load import available, catalogue, load
from reproduce.data.sources import SOURCES
from reproduce.errors import MissingData, UserError
from reproduce.settings import Settings


@pytest.fixture
def mnist(place: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """A small mnist.npz in the data folder, known to the table."""
    arrays = {"train_x": grey(30), "train_y": np.arange(30) % 10, "test_x": grey(10), "test_y": np.arange(10)}
    (place.data / "mnist").mkdir(parents=True)
    np.savez(place.data / "mnist" / "mnist.npz", **{k: v.astype(np.uint8) for k, v in arrays.items()})
    declare(monkeypatch, "mnist", known(place, "mnist/mnist.npz"), "read_npz", 30, 10)
    return arrays


def copies(settings: Settings) -> list[Path]:
    return sorted((settings.store / "data").glob("*"))


def test_load_gives_the_arrays_read_only_and_maps_them_the_second_time(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load("mnist", place)
    monkeypatch.setattr("reproduce.data.load.decode", None)  # the second load must not decode
    monkeypatch.setattr("reproduce.data.load.checksums", None)  # nor read the archive
    for data in (first, load("mnist", place)):
        assert data.train_x.shape == (30, 28, 28, 1)
        assert data.train_x.dtype == np.uint8
        assert data.train_y.dtype == data.test_y.dtype == np.int64
        for key, value in mnist.items():
            array = getattr(data, key)
            assert np.array_equal(array.reshape(value.shape), value)
            assert not array.flags.writeable
        assert (data.name, data.n_classes, data.source, data.note) == ("mnist", 10, "data folder", "")
        assert data.sha256 == hashlib.sha256((place.data / "mnist" / "mnist.npz").read_bytes()).hexdigest()


def test_availability_goes_from_missing_over_present_to_verified(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    assert available("mnist", place).state == "present"
    load("mnist", place)
    found = available("mnist", place)
    assert (found.state, found.path) == ("verified", str(place.data / "mnist" / "mnist.npz"))
    (place.data / "mnist" / "mnist.npz").write_bytes(b"another file")
    assert available("mnist", place).state == "present"
    (place.data / "mnist" / "mnist.npz").unlink()
    assert available("mnist", place).state == "missing"
    assert available("digits", place).state == "embedded"


def test_missing_data_names_file_folder_and_both_ways_out(place: Settings) -> None:
    for create in (False, True):
        if create:
            place.data.mkdir()
        with pytest.raises(MissingData) as caught:
            load("cifar10", place)
        assert caught.value.needs == "cifar10"
        for words in ("cifar10/cifar10.npz", str(place.data), "REPRODUCE_DATA", "python -m reproduce data get cifar10"):
            assert words in str(caught.value)
        assert ("does not exist" in str(caught.value)) is not create
    (place.data / "a9a").mkdir()
    (place.data / "a9a" / "a9a.xz").write_bytes(b"")
    with pytest.raises(MissingData, match=r"a9a/a9a\.t\.xz is missing"):
        load("a9a", place)


def test_unknown_name_suggests_a_near_one(place: Settings) -> None:
    for function in (load, available, download.download):
        with pytest.raises(UserError, match="did you mean cifar10"):
            function("cifar_10", place)


@pytest.mark.parametrize("damage", ["truncated", "one bit", "empty"])
def test_damaged_archive_is_named_with_both_checksums(
    place: Settings, mnist: dict[str, np.ndarray], damage: str
) -> None:
    path = place.data / "mnist" / "mnist.npz"
    good = bytearray(path.read_bytes())
    expected = hashlib.sha256(good).hexdigest()
    bad = {"truncated": good[:-100], "one bit": good[:50] + bytes([good[50] ^ 1]) + good[51:], "empty": b""}[damage]
    path.write_bytes(bad)
    with pytest.raises(UserError) as caught:
        load("mnist", place)
    for words in (str(path), expected, hashlib.sha256(bad).hexdigest(), "data get mnist"):
        assert words in str(caught.value)
    assert not copies(place)


def test_archive_with_a_known_checksum_that_cannot_be_decoded(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.data / "mnist" / "mnist.npz"
    path.write_bytes(path.read_bytes()[:2000])
    declare(monkeypatch, "mnist", known(place, "mnist/mnist.npz"), "read_npz", 30, 10)
    with pytest.raises(UserError, match=r"mnist.npz cannot be decoded \(BadZipFile"):
        load("mnist", place)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train_y", np.full(30, 10, np.uint8)),
        ("train_x", grey(29)),
        ("test_x", RNG.integers(0, 9, (10, 28, 28))),
        ("test_y", np.zeros(9, np.uint8)),
    ],
)
def test_wrong_labels_sizes_and_types_are_refused(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, key: str, value: np.ndarray
) -> None:
    arrays: dict[str, Any] = {k: v.astype(np.uint8) for k, v in mnist.items()} | {key: value}
    np.savez(place.data / "mnist" / "mnist.npz", **arrays)
    declare(monkeypatch, "mnist", known(place, "mnist/mnist.npz"), "read_npz", 30, 10)
    with pytest.raises(UserError, match="cannot be decoded"):
        load("mnist", place)


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


@pytest.mark.parametrize("key", ["sha256", "note", "stamps", "sums", "sizes", "name", "seal"])
def test_a_changed_manifest_is_not_believed(place: Settings, mnist: dict[str, np.ndarray], key: str) -> None:
    """What it says is in the provenance of results."""
    sha256 = load("mnist", place).sha256
    (folder,) = copies(place)
    manifest = folder / store.MANIFEST
    content = json.loads(manifest.read_text())
    other = {"stamps": [], "sums": dict.fromkeys(content["sums"], "ab"), "sizes": {}}.get(key, "ab" * 32)
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


def test_catalogue_is_complete() -> None:
    names = [source.name for source in catalogue()]
    assert names == list(SOURCES)
    assert {"mnist", "fashion_mnist", "cifar10", "cifar100", "a9a", "ag_news", "svhn", "cinic10", "tiny_imagenet"} <= {
        *names
    }
    for source in catalogue():
        assert source.licence
        assert source.citation
        assert source.embedded or source.papers
        assert source.kind != "image" or len(source.shape) == 3
        for layout in source.layouts:
            assert all(file.path.startswith(f"{source.name.removesuffix('_subset')}/") for file in layout.files)
    fetchable = {*download.TORCHVISION, *download.ARCHIVES, *(path.split("/")[0] for path in download.URLS)}
    assert fetchable == {source.name for source in catalogue() if not source.embedded} - {"ag_news_subset"}


def test_the_planner_needs_no_heavy_imports() -> None:
    code = (
        "import sys; from pathlib import Path; from reproduce.settings import Settings;"
        "from reproduce.data import load;from reproduce.partitions import named;"
        "load.available('mnist', Settings(Path('none'), Path('none'), 'cpu', 1));"
        "print([m for m in ('torch', 'pandas', 'scipy', 'sklearn', 'PIL') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


FOLDER = os.environ.get("REPRODUCE_DATA", "")
REAL = ["mnist", "fashion_mnist", "cifar10", "cifar100", "a9a", "ag_news_subset"]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(Path(FOLDER), tmp_path_factory.mktemp("store"), "cpu", 1)


def uint8_sha(array: np.ndarray) -> str:
    return hashlib.sha256(array.astype(np.uint8).tobytes()).hexdigest()


@pytest.mark.data
@pytest.mark.skipif(not Path(FOLDER or "none").is_dir(), reason="REPRODUCE_DATA is not set: no real data sets")
@pytest.mark.parametrize("name", REAL)
def test_real_files_decode_to_the_golden_arrays(real: Settings, name: str) -> None:
    if available(name, real).state == "missing":
        pytest.skip(f"{name} is not in REPRODUCE_DATA")
    data, source = load(name, real), SOURCES[name]
    for key, expected in source.decoded.items():
        assert uint8_sha(getattr(data, key)) == expected
    assert available(name, real).state == "verified"
    if name == "cifar10" and data.note:
        assert data.note == "98 images are JPEG re-encodings"
        assert uint8_sha(data.train_x) == "c7c6557433f8d7c52900e0fc5549bd21bf6f33fefee1f478f5adbc5499bb11c7"
        assert uint8_sha(data.test_x) == "25a508aee148b4ccf689df271258bb61c79db1edd6c7bdc2d32e0f748c0bf68c"
    if name == "mnist":
        assert np.bincount(data.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(data.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    if name == "a9a":
        assert (data.train_y.sum(), data.test_y.sum()) == (7_841, 3_846)
        assert set(np.unique(data.train_x)) == {0, 1}
        assert data.train_x[:, 122].sum() == 1
        assert data.test_x[:, 122].sum() == 0
    if name == "ag_news_subset":
        assert np.bincount(data.test_y).tolist() == [1900] * 4
        assert (data.test_text or [""])[0].startswith("Fears for T N pension after talks Unions representing")
        assert np.bincount(data.train_y).tolist() == [4648, 2824, 2820, 4879]
