"""Data sets: reading, checksums, the decoded copy and its damage, full disks, fetching, embedded data.

A small fake of each format is written to a temporary folder; tests of the real files need REPRODUCE_DATA.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce.errors import MissingData, UserError
from reproduce.problems import download, embedded, store
from reproduce.problems.data import available, catalogue, checksums, load, tokenize
from reproduce.problems.dataset import Texts, pack
from reproduce.problems.formats import undo_differences
from reproduce.problems.sources import SOURCES, File, Files
from reproduce.settings import Settings

RNG = np.random.default_rng(0)


@pytest.fixture
def place(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "data", tmp_path / "store", "cpu", 1)


def grey(rows: int) -> np.ndarray:
    return RNG.integers(0, 256, (rows, 28, 28), dtype=np.uint8)


def known(settings: Settings, *paths: str) -> tuple[File, ...]:
    """The files with the checksums they have now."""
    return tuple(File(p, checksums(settings.data / p)[:1]) for p in paths)


def declare(
    monkeypatch: pytest.MonkeyPatch, name: str, files: tuple[File, ...], reader: str, train: int, test: int
) -> None:
    small = replace(SOURCES[name], train=train, test=test, layouts=(Files(reader, files),), decoded={})
    monkeypatch.setitem(SOURCES, name, small)


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
    monkeypatch.setattr("reproduce.problems.data.decode", None)  # the second load must not decode
    monkeypatch.setattr("reproduce.problems.data.checksums", None)  # nor read the archive
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


def test_touched_archive_is_verified_again_but_not_decoded(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    load("mnist", place)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(1, 1))
    assert available("mnist", place).state == "present"
    monkeypatch.setattr("reproduce.problems.data.decode", None)
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


def test_differences_are_undone_exactly() -> None:
    images = RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    planes = images.transpose(0, 3, 1, 2).copy()
    planes[:, 0] -= planes[:, 1]
    planes[:, 2] -= planes[:, 1]
    rows = np.diff(planes, axis=2, prepend=np.zeros_like(planes[:, :, :1]))
    both = np.diff(rows, axis=3, prepend=np.zeros_like(rows[..., :1]))
    assert np.array_equal(undo_differences(both), images)


def test_cifar_archive_of_differences_and_its_note(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.data / "cifar10").mkdir(parents=True)
    zeros = {"train_x_d": np.zeros((5, 3, 32, 32), np.uint8), "test_x_d": np.ones((4, 3, 32, 32), np.uint8)}
    labels = {"train_y": np.arange(5, dtype=np.uint8), "test_y": np.arange(4, dtype=np.uint8)}
    np.savez(place.data / "cifar10" / "cifar10.npz", **zeros, **labels, lossy_train_idx=[1, 2], lossy_test_idx=[0])
    declare(monkeypatch, "cifar10", known(place, "cifar10/cifar10.npz"), "read_npz", 5, 4)
    data = load("cifar10", place)
    assert data.note == "3 images are JPEG re-encodings"
    assert data.test_x[0, 1, 2].tolist() == [12, 6, 12]  # (1+1)*(2+1) = 6, plus green
    assert available("cifar10", place).detail == data.note


def test_libsvm_text_has_the_width_of_the_paper_and_labels_0_1(
    place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.data / "a9a").mkdir(parents=True)
    (place.data / "a9a" / "a9a.xz").write_bytes(lzma.compress(b"-1 3:1 123:1 \n+1 1:1 \n"))
    (place.data / "a9a" / "a9a.t.xz").write_bytes(lzma.compress(b"+1 122:0.5\n"))
    declare(monkeypatch, "a9a", known(place, "a9a/a9a.xz", "a9a/a9a.t.xz"), "read_libsvm", 2, 1)
    data = load("a9a", place)
    assert data.train_x.shape == (2, 123)
    assert data.train_x.dtype == np.float32
    assert np.flatnonzero(data.train_x[0]).tolist() == [2, 122]
    assert data.train_y.tolist() == [0, 1]
    assert data.test_x[0, 121] == 0.5
    assert len(data.sha256) == 64
    for line in (b"-1 124:1\n", b"-1 0:1\n", b"2 1:1\n", b"-1 word\n"):
        (place.data / "a9a" / "a9a.t.xz").write_bytes(lzma.compress(line))
        declare(monkeypatch, "a9a", known(place, "a9a/a9a.xz", "a9a/a9a.t.xz"), "read_libsvm", 2, 1)
        with pytest.raises(UserError, match="cannot be decoded"):
            load("a9a", place)


def test_news_subset_and_complete_set(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.data / "ag_news"
    folder.mkdir(parents=True)
    (folder / "train_subset.csv.xz").write_bytes(lzma.compress(b'"3","A ""b"" c"\n"1","D"\n'))
    (folder / "test.csv.xz").write_bytes(lzma.compress('"4","Title","Some é\\text, more"\n'.encode()))
    subset = Files("read_news", known(place, "ag_news/train_subset.csv.xz", "ag_news/test.csv.xz"))
    (folder / "train.csv").write_text('"1","T","x"\n' * 2 + '"2","T","x"\n')
    (folder / "test.csv").write_text('"2","T","y"\n')
    complete = Files("read_news", known(place, "ag_news/train.csv", "ag_news/test.csv"))
    for name, layout, rows in (("ag_news", complete, 3), ("ag_news_subset", subset, 2)):
        small = replace(SOURCES[name], train=rows, test=1, layouts=(layout,))
        monkeypatch.setitem(SOURCES, name, small)
    assert load("ag_news", place).train_text[:] == ["T x"] * 3  # type: ignore[index]
    (folder / "train.csv").unlink()
    assert available("ag_news", place).state == "missing"  # the subset is a set of its own
    data = load("ag_news_subset", place)
    assert list(data.train_text or ()) == ['A "b" c', "D"]
    assert list(data.test_text or ()) == ["Title Some é\\text, more"]
    assert data.train_y.tolist() == [2, 0]
    assert np.array_equal(data.test_x, tokenize(data.test_text or ()))


def test_svhn_matlab_files(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    savemat = pytest.importorskip("scipy.io").savemat
    (place.data / "svhn").mkdir(parents=True)
    images = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    for part in ("train", "test"):
        content = {"X": images.transpose(1, 2, 3, 0), "y": np.array([[1], [10], [9]], np.uint8)}
        savemat(place.data / "svhn" / f"{part}_32x32.mat", content)
    files = known(place, "svhn/train_32x32.mat", "svhn/test_32x32.mat")
    declare(monkeypatch, "svhn", files, "read_svhn", 3, 3)
    data = load("svhn", place)
    assert np.array_equal(data.train_x, images)
    assert data.train_y.tolist() == [1, 0, 9]


def test_image_folders(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")

    def write(path: str, value: int, side: int, mode: str = "RGB") -> None:
        target = place.data / path
        target.parent.mkdir(parents=True, exist_ok=True)
        image.new(mode, (side, side), (value,) * 3 if mode == "RGB" else value).save(target)

    for part, value in (("train", 10), ("test", 50), ("valid", 90)):
        write(f"cinic10/{part}/cat/1.png", value, 32)
        write(f"cinic10/{part}/bird/2.png", value + 1, 32, "L")
    folders = (File("cinic10/train", folder=True), File("cinic10/test", folder=True))
    declare(monkeypatch, "cinic10", folders, "read_cinic10", 2, 2)
    data = load("cinic10", place)
    assert data.train_x[:, 0, 0].tolist() == [[11] * 3, [10] * 3]
    assert data.test_y.tolist() == [0, 1]
    assert available("cinic10", place).state == "present"
    write("cinic10/test/cat/3.png", 7, 32)
    with pytest.raises(UserError, match="cannot be decoded"):  # one image more than the set has
        load("cinic10", place)

    write("tiny_imagenet/train/n02/images/n02_0.JPEG", 100, 64)
    write("tiny_imagenet/train/n01/images/n01_0.JPEG", 200, 64, "L")
    write("tiny_imagenet/val/images/val_0.JPEG", 60, 64)
    (place.data / "tiny_imagenet" / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t62\t62\n")
    folders = (File("tiny_imagenet/train", folder=True), File("tiny_imagenet/val", folder=True))
    declare(monkeypatch, "tiny_imagenet", folders, "read_tiny_imagenet", 2, 1)
    data = load("tiny_imagenet", place)
    assert abs(int(data.train_x[0, 0, 0, 0]) - 200) < 3
    assert data.train_y.tolist() == [0, 1]
    assert data.test_y.tolist() == [1]


def test_tokenizer_is_stable() -> None:
    import zlib

    ids = tokenize(["Hello, HELLO wor-ld_42!", "", "a " * 100])
    assert ids.shape == (3, 64)
    assert ids.dtype == np.int32
    words = [1 + zlib.crc32(w.encode()) % 30_521 for w in ("hello", "hello", "wor", "ld", "42")]
    assert ids[0].tolist() == words + [0] * 59
    assert not ids[1].any()
    assert (ids[2] == ids[2, 0]).all()
    assert ids.max() < 30_522
    assert tokenize(["hello"], vocabulary=10, length=2).tolist() == [[1 + zlib.crc32(b"hello") % 9, 0]]
    assert tokenize([]).shape == (0, 64)


def test_texts_behave_like_a_list() -> None:
    strings = ["", "ä b", "", "c"]
    texts = Texts(*pack(strings))
    assert list(texts) == strings
    assert texts[-1] == "c"
    assert texts[1:3] == strings[1:3]
    with pytest.raises(IndexError):
        texts[4]


# Fetching


class FakeTorchvision(types.ModuleType):
    """`torchvision.datasets` with a MNIST of 30 and 10 images."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        super().__init__("torchvision")
        self.datasets = types.SimpleNamespace(MNIST=self.make)
        self.arrays = arrays

    def make(self, root: str, train: bool, download: bool) -> types.SimpleNamespace:
        assert download
        assert Path(root).is_dir()
        part = "train" if train else "test"
        return types.SimpleNamespace(data=self.arrays[f"{part}_x"], targets=self.arrays[f"{part}_y"].tolist())


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    arrays = {"train_x": grey(30), "train_y": np.arange(30) % 10, "test_x": grey(10), "test_y": np.arange(10)}
    decoded = {k: hashlib.sha256(v.astype(np.uint8).tobytes()).hexdigest() for k, v in arrays.items()}
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], train=30, test=10, decoded=decoded))
    monkeypatch.setitem(sys.modules, "torchvision", FakeTorchvision(arrays))
    return arrays


def test_fetched_archive_has_a_side_file_and_loads(place: Settings, fetched: dict[str, np.ndarray]) -> None:
    path = download.download("mnist", place)
    assert path == place.data / "mnist" / "mnist.npz"
    assert sorted(f.name for f in path.parent.iterdir()) == ["mnist.npz", "mnist.npz.sha256"]
    assert np.array_equal(load("mnist", place).train_x[..., 0], fetched["train_x"])
    assert available("mnist", place).state == "verified"
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # there already: not fetched again
    assert download.download("mnist", place) == path
    path.with_name("mnist.npz.sha256").write_text("0" * 64)
    os.utime(path, ns=(1, 1))
    with pytest.raises(UserError, match="0000: the file"):
        load("mnist", place)


def test_fetched_data_that_are_not_the_official_ones_are_refused(
    place: Settings, fetched: dict[str, np.ndarray]
) -> None:
    fetched["train_x"][0, 0, 0] ^= 1
    with pytest.raises(UserError, match="train_x of the fetched mnist has SHA-256"):
        download.download("mnist", place)
    fetched["train_x"] = fetched["train_x"][:20]
    with pytest.raises(UserError, match="not the official mnist"):
        download.download("mnist", place)
    assert not list((place.data / "mnist").iterdir())


def test_fetching_without_package_or_network_says_what_to_do(
    place: Settings, fetched: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(UserError, match="pip install torchvision"):
        download.download("mnist", place)
    broken = types.ModuleType("torchvision")

    def offline(*_: Any, **__: Any) -> None:
        raise RuntimeError("Error downloading train-images")

    broken.datasets = types.SimpleNamespace(MNIST=offline)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", broken)
    with pytest.raises(UserError, match="check the network"):
        download.download("mnist", place)
    monkeypatch.setattr(download, "URLS", {k: (place.data / "nowhere").as_uri() for k in download.URLS})
    with pytest.raises(UserError, match="check the network"):
        download.download("svhn", place)
    with pytest.raises(UserError, match="nothing to get"):
        download.download("digits", place)


def test_fetching_to_a_full_disk(
    place: Settings, fetched: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(UserError, match="no space left"):
        download.download("mnist", place)
    assert not list((place.data / "mnist").iterdir())
    assert available("mnist", place).state == "missing"


def test_official_files_are_fetched_verified_and_kept_as_they_are(
    place: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = tmp_path / "web"
    web.mkdir()
    (web / "a9a").write_text("-1 3:1\n+1 1:1\n")
    (web / "a9a.t").write_text("+1 2:1\n")
    files = tuple(File(f"a9a/{n}", checksums(web / n)[1:]) for n in ("a9a", "a9a.t"))  # by MD5, as SVHN
    declare(monkeypatch, "a9a", files, "read_libsvm", 2, 1)
    monkeypatch.setattr(download, "URLS", {f"a9a/{n}": (web / n).as_uri() for n in ("a9a", "a9a.t")})
    good = (web / "a9a.t").read_bytes()
    (web / "a9a.t").write_bytes(good[:-2])
    with pytest.raises(UserError, match=r"a9a\.t has checksum"):
        download.download("a9a", place)
    assert not list((place.data / "a9a").iterdir())
    (web / "a9a.t").write_bytes(good)
    assert download.download("a9a", place) == place.data / "a9a" / "a9a"
    assert load("a9a", place).train_y.tolist() == [0, 1]


def packed(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """An archive with these files; its format is that of its name."""
    for path, content in files.items():
        (folder / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / path).write_bytes(content)
    stem, _, ending = name.partition(".")
    kind = {"zip": "zip", "tar.gz": "gztar"}[ending]
    return Path(shutil.make_archive(str(folder / stem), kind, folder / "in"))


@pytest.mark.parametrize("name", ["cinic10", "tiny_imagenet"])
def test_official_archives_are_verified_and_unpacked(
    place: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    image = pytest.importorskip("PIL.Image")
    known, source = download.ARCHIVES[name], SOURCES[name]
    buffers = []
    for value in (10, 20):
        stream = io.BytesIO()
        image.new("RGB", source.shape[:2], (value,) * 3).save(stream, "PNG")
        buffers.append(stream.getvalue())
    if name == "cinic10":
        files = {f"{part}/{c}/1.png": buffers[i] for part in ("train", "test") for i, c in enumerate(("bird", "cat"))}
    else:
        files = {f"train/n{i}/images/n{i}_0.JPEG": buffers[i] for i in range(2)}
        files |= {f"val/images/val_{i}.JPEG": buffers[i] for i in range(2)}
        files["val/val_annotations.txt"] = b"val_0.JPEG\tn0\nval_1.JPEG\tn1\n"
    inside = {str(Path(known.inside, path)): content for path, content in files.items()}
    archive = packed(tmp_path / "web", known.url.rpartition("/")[2], inside)
    monkeypatch.setitem(SOURCES, name, replace(source, train=2, test=2))
    here = replace(known, url=archive.as_uri())
    monkeypatch.setitem(download.ARCHIVES, name, here)
    with pytest.raises(UserError, match=f"has checksum md5:.*expected {known.checksum}"):
        download.download(name, place)
    assert not list((place.data / name).iterdir())
    monkeypatch.setitem(download.ARCHIVES, name, replace(here, checksum=checksums(archive)[1]))
    download.download(name, place)
    data = load(name, place)
    assert data.train_x[:, 0, 0, 0].tolist() == data.test_x[:, 0, 0, 0].tolist() == [10, 20]
    assert data.train_y.tolist() == data.test_y.tolist() == [0, 1]
    shutil.rmtree(place.data / source.layouts[-1].files[0].path)
    with pytest.raises(UserError, match="is there, and nothing is overwritten"):
        download.download(name, place)


def test_every_set_is_fetched_over_https_or_has_a_checksum() -> None:
    """torchvision compares what it fetches with MD5 sums of its own; `decoded` is on top of that."""
    for path, url in download.URLS.items():
        source = SOURCES[path.split("/")[0]]
        files = [file for layout in source.layouts for file in layout.files if file.path == path]
        assert all(known.startswith("sha256:") for file in files for known in file.known)
        assert files[0].known
        assert url.startswith(("https://", "http://ufldl.stanford.edu/"))
    for archive in download.ARCHIVES.values():
        assert archive.url.startswith("https://")
        assert archive.checksum.startswith("md5:")


# Embedded data


def test_digits_have_a_fixed_split(place: Settings) -> None:
    data = load("digits", place)
    assert data.train_x.shape == (1437, 8, 8, 1)
    assert data.test_x.shape == (360, 8, 8, 1)
    assert data.train_x.dtype == np.uint8
    assert (data.train_x.min(), data.train_x.max()) == (0, 255)
    assert data.sha256.startswith("3704f0fd277e")
    assert np.bincount(data.test_y).min() > 20
    assert (data.source, data.n_classes) == ("embedded", 10)


def nearest_mean_accuracy(data: Any) -> float:
    x, test = (a.reshape(len(a), -1).astype(float) for a in (data.train_x, data.test_x))
    means = np.array([x[data.train_y == c].mean(axis=0) for c in range(data.n_classes)])
    return float((((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == data.test_y).mean())


def test_generated_classes_are_deterministic_and_learnable() -> None:
    for make in (
        lambda seed: embedded.gaussian_classes(10, 20, 40, 20, noise=1.5, seed=seed),
        lambda seed: embedded.image_blobs(4, 8, 20, 10, noise=30, seed=seed),
        lambda seed: embedded.image_blobs(4, 12, 20, 10, noise=30, seed=seed, channels=3),
        lambda seed: embedded.topic_tokens(4, 200, 16, 40, 10, seed=seed),
    ):
        data, again, other = make(7), make(7), make(8)
        assert data.sha256 == again.sha256 != other.sha256
        assert not data.train_x.flags.writeable
        assert len(set(np.bincount(data.train_y))) == len(set(np.bincount(data.test_y))) == 1
        assert data.name == "topic-tokens" or nearest_mean_accuracy(data) > 0.8
    assert embedded.image_blobs(4, 12, 5, 5, 30, 0, channels=3).train_x.shape == (20, 12, 12, 3)
    with pytest.raises(ValueError, match="multiple of 4"):
        embedded.image_blobs(4, 10, 5, 5, 30, 0)


def test_records_of_generated_data_load_what_they_say() -> None:
    from reproduce.experiment import canonical

    pairs: list[tuple[Any, Any]] = [
        (embedded.GaussianClasses(3, 5, 4, 2, 1.0, 7, 2.0), embedded.gaussian_classes(3, 5, 4, 2, 1.0, 7, 2.0)),
        (embedded.ImageBlobs(3, 8, 4, 2, 30.0, 7, 3), embedded.image_blobs(3, 8, 4, 2, 30.0, 7, 3)),
        (embedded.TopicTokens(3, 40, 8, 4, 2, 7, 0.5), embedded.topic_tokens(3, 40, 8, 4, 2, 7, 0.5)),
    ]
    for record, data in pairs:
        assert record.load().sha256 == data.sha256
        assert canonical(record)["seed"] == 7


def test_gaussian_noise_and_mean_scale() -> None:
    data = embedded.gaussian_classes(10, 20, 300, 10, noise=1.5, seed=7, mean_scale=2.0)
    assert data.train_x.dtype == np.float32
    means = np.array([data.train_x[data.train_y == c].mean(axis=0) for c in range(10)])
    assert abs(means.std() - 2.0) < 0.3
    assert abs((data.train_x - means[data.train_y]).std() - 1.5) < 0.05


def test_topic_tokens_are_padded_and_lean_to_their_class() -> None:
    data = embedded.topic_tokens(4, 201, 16, 100, 10, seed=0)
    lengths = (data.train_x > 0).sum(axis=1)
    assert data.train_x.max() < 201
    assert lengths.min() >= 8
    assert lengths.max() <= 16
    assert all((row[n:] == 0).all() for row, n in zip(data.train_x, lengths, strict=True))
    for c in range(4):
        ids = data.train_x[data.train_y == c]
        own = ((ids > 50 * c) & (ids <= 50 * (c + 1))).sum() / (ids > 0).sum()
        assert 0.4 < own < 0.55  # 0.3 + 0.7 / 4


# The table of data sets


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
        "from reproduce.problems import data, partitions;"
        "data.available('mnist', Settings(Path('none'), Path('none'), 'cpu', 1));"
        "print([m for m in ('torch', 'pandas', 'scipy', 'sklearn', 'PIL') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


# The real files

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
