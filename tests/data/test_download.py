"""Fetching data sets: what comes is verified, what fails says what to do."""

import errno
import hashlib
import io
import os
import shutil
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import declare, grey
from PIL import Image

from reproduce import vision
from reproduce.data import download
from reproduce.data.load import available, load, sha256
from reproduce.data.sources import SOURCES, File
from reproduce.errors import UserError
from reproduce.settings import Settings


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
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], train=30, test=10))
    monkeypatch.setattr(vision, "torchvision", FakeTorchvision(arrays))
    return arrays


def test_fetched_archive_has_a_side_file_and_loads(
    place: Settings, fetched: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = download.download("mnist", place)
    assert path == place.data / "mnist" / "mnist.npz"
    assert sorted(f.name for f in path.parent.iterdir()) == ["mnist.npz", "mnist.npz.sha256"]
    assert np.array_equal(load("mnist", place).train_x[..., 0], fetched["train_x"])
    assert available("mnist", place).state == "verified"
    monkeypatch.setattr(vision, "torchvision", None)  # there already: not fetched again
    assert download.download("mnist", place) == path
    path.with_name("mnist.npz.sha256").write_text("0" * 64)
    os.utime(path, ns=(1, 1))
    with pytest.raises(UserError, match="0000: the file"):
        load("mnist", place)


def test_fetching_without_network_says_what_to_do(
    place: Settings, fetched: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = types.ModuleType("torchvision")

    def offline(*_: Any, **__: Any) -> None:
        raise RuntimeError("Error downloading train-images")

    broken.datasets = types.SimpleNamespace(MNIST=offline)  # type: ignore[attr-defined]
    monkeypatch.setattr(vision, "torchvision", broken)
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
    with pytest.raises(UserError, match=r"fetched into .*No space left on device\); check the network and the"):
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
    files = tuple(File(f"a9a/{n}", sha256(web / n)) for n in ("a9a", "a9a.t"))
    declare(monkeypatch, "a9a", files, "read_libsvm", 2, 1)
    monkeypatch.setattr(download, "URLS", {f"a9a/{n}": (web / n).as_uri() for n in ("a9a", "a9a.t")})
    good = (web / "a9a.t").read_bytes()
    (web / "a9a.t").write_bytes(good[:-2])
    with pytest.raises(UserError, match=r"a9a\.t has SHA-256"):
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
    (url, md5, folder), source = download.ARCHIVES[name], SOURCES[name]
    buffers = []
    for value in (10, 20):
        stream = io.BytesIO()
        Image.new("RGB", source.shape[:2], (value,) * 3).save(stream, "PNG")
        buffers.append(stream.getvalue())
    if name == "cinic10":
        files = {f"{part}/{c}/1.png": buffers[i] for part in ("train", "test") for i, c in enumerate(("bird", "cat"))}
    else:
        files = {f"train/n{i}/images/n{i}_0.JPEG": buffers[i] for i in range(2)}
        files |= {f"val/images/val_{i}.JPEG": buffers[i] for i in range(2)}
        files["val/val_annotations.txt"] = b"val_0.JPEG\tn0\nval_1.JPEG\tn1\n"
    inside = {str(Path(folder, path)): content for path, content in files.items()}
    archive = packed(tmp_path / "web", url.rpartition("/")[2], inside)
    monkeypatch.setitem(SOURCES, name, replace(source, train=2, test=2))
    monkeypatch.setitem(download.ARCHIVES, name, (archive.as_uri(), md5, folder))
    with pytest.raises(UserError, match=f"has the MD5 .*expected {md5}"):
        download.download(name, place)
    assert not list((place.data / name).iterdir())
    right = hashlib.md5(archive.read_bytes()).hexdigest()
    monkeypatch.setitem(download.ARCHIVES, name, (archive.as_uri(), right, folder))
    download.download(name, place)
    data = load(name, place)
    assert data.train_x[:, 0, 0, 0].tolist() == data.test_x[:, 0, 0, 0].tolist() == [10, 20]
    assert data.train_y.tolist() == data.test_y.tolist() == [0, 1]
    shutil.rmtree(place.data / source.layouts[-1].files[0].path)
    download.download(name, place)
    assert np.array_equal(load(name, place).train_x, data.train_x), "the part that was missing"


def test_every_set_is_fetched_over_https_or_has_a_checksum() -> None:
    """torchvision compares what it fetches with MD5 sums of its own."""
    for path, url in download.URLS.items():
        source = SOURCES[path.split("/")[0]]
        files = [file for layout in source.layouts for file in layout.files if file.path == path]
        assert all(len(file.sha256) == 64 for file in files)
        assert url.startswith(("https://", "http://ufldl.stanford.edu/"))
    for url, md5, _ in download.ARCHIVES.values():
        assert url.startswith("https://")
        assert len(md5) == 32
