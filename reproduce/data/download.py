"""Fetching data sets into the data folder, only on request (`python -m reproduce data get NAME`)."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reproduce.data.checks import PARTS
from reproduce.data.dataset import Arrays
from reproduce.data.decoded import DISK_FULL, FORBIDDEN, disk_errors
from reproduce.data.load import checked, find_layout, load, sha256, verified
from reproduce.data.sources import Files, Source, find_source
from reproduce.errors import UserError
from reproduce.settings import Settings

_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_SVHN = "http://ufldl.stanford.edu/housenumbers"  # has no https; the checksums are in `sources`

URLS = {  # official files whose checksum is known; kept as they are
    "a9a/a9a": f"{_LIBSVM}/a9a",
    "a9a/a9a.t": f"{_LIBSVM}/a9a.t",
    "ag_news/train.csv": f"{_NEWS}/train.csv",
    "ag_news/test.csv": f"{_NEWS}/test.csv",
    "svhn/train_32x32.mat": f"{_SVHN}/train_32x32.mat",
    "svhn/test_32x32.mat": f"{_SVHN}/test_32x32.mat",
}
TORCHVISION = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}


@dataclass(frozen=True)
class Archive:
    """An official archive: its MD5, and the folder in it that has the folders of the set's last layout."""

    url: str
    md5: str
    inside: str = ""


ARCHIVES = {
    "cinic10": Archive(
        "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz", "6ee4d0c996905fe93221de577967a372"
    ),
    "tiny_imagenet": Archive(
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", "tiny-imagenet-200"
    ),
}


def download(name: str, settings: Settings) -> Path:
    """Fetch the complete data set into `settings.data` unless it is there, verify it, and give its first file.

    Raises UserError without network, for other than the official data, when the disk is full, and for a damaged file
    that is already there (which is never overwritten).
    """
    source = find_source(name)
    if source.embedded:
        raise UserError(f"{name} is part of the package; there is nothing to get")
    layout = find_layout(source, settings.data)
    if layout is None:
        with disk_errors(settings.data):
            folder = settings.data / name
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".get-", suffix=".tmp", dir=folder) as temporary:
                layout = _get(source, settings.data, Path(temporary))
    load(name, settings)
    return settings.data / layout.files[0].path


def _get(source: Source, folder: Path, temporary: Path) -> Files:
    for layout in source.layouts:
        if all(file.path in URLS for file in layout.files):
            _get_files(source, layout, folder, temporary)
            return layout
    if source.name in ARCHIVES:
        return _get_archive(source, folder, temporary)
    if source.name not in TORCHVISION:
        files = " and ".join(file.path for file in source.layouts[0].files)
        raise UserError(f"{source.name} is nowhere to be fetched: copy {files} into the data folder (docs/data.md)")
    with _online(source):
        arrays = _torchvision(source, temporary)
    _compare(source, arrays)
    _save(folder / source.layouts[0].files[0].path, temporary / "whole.npz", arrays)
    return source.layouts[0]


def _get_files(source: Source, layout: Files, folder: Path, temporary: Path) -> None:
    """The official files: fetched next to their place, moved there when all checksums match."""
    with _online(source):
        for file in layout.files:
            _fetch(URLS[file.path], temporary / file.path)
    for file in layout.files:
        verified(file, temporary, source.name)
    for file in layout.files:
        os.replace(temporary / file.path, folder / file.path)


def _get_archive(source: Source, folder: Path, temporary: Path) -> Files:
    """The official folders, out of an archive whose checksum is known."""
    archive, layout = ARCHIVES[source.name], source.layouts[-1]
    there = [folder / file.path for file in layout.files if (folder / file.path).exists()]
    if there:
        raise UserError(f"{there[0]} is there, and nothing is overwritten: delete it to get {source.name}")
    packed = temporary / archive.url.rpartition("/")[2]
    with _online(source):
        _fetch(archive.url, packed)
    with packed.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != archive.md5:
        raise UserError(f"{archive.url} has the MD5 {found}, expected {archive.md5}; try again later")
    shutil.unpack_archive(packed, temporary / "unpacked")
    for file in layout.files:
        os.replace(temporary / "unpacked" / archive.inside / Path(file.path).name, folder / file.path)
    return layout


def _fetch(url: str, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as stream:
        shutil.copyfileobj(answer, stream)


def _torchvision(source: Source, temporary: Path) -> Arrays:
    from reproduce.vision import torchvision

    arrays: Arrays = {}
    for part in PARTS:
        known = getattr(torchvision.datasets, TORCHVISION[source.name])
        fetched = known(str(temporary), train=part == "train", download=True)
        arrays[f"{part}_x"] = np.asarray(fetched.data, np.uint8).reshape(-1, *source.shape)
        arrays[f"{part}_y"] = np.asarray(fetched.targets, np.int64)
    return arrays


@contextmanager
def _online(source: Source) -> Iterator[None]:
    """Around what needs the network: its errors say what to do."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # urllib and torchvision each have their own errors for a missing network
        if isinstance(error, OSError) and error.errno in DISK_FULL + FORBIDDEN:
            raise
        raise UserError(
            f"data set {source.name} could not be fetched ({type(error).__name__}: {error}); check the network, or "
            f"copy the files into the data folder from another machine (docs/data.md)"
        ) from error


def _compare(source: Source, arrays: Arrays) -> None:
    try:
        checked(dict(arrays), source)
    except ValueError as error:
        raise UserError(f"what was fetched is not the official {source.name}: {error}") from error
    for key, expected in source.decoded.items():
        found = hashlib.sha256(arrays[key].astype(np.uint8).tobytes()).hexdigest()
        if found != expected:
            said = f"{key} of the fetched {source.name} has SHA-256 {found}, expected {expected}"
            raise UserError(f"{said}; try again later")


def _save(path: Path, temporary: Path, arrays: Arrays) -> None:
    """The archive and its side file. The side file goes first: alone it is harmless, the archive alone is refused."""
    np.savez_compressed(temporary, allow_pickle=False, **arrays)
    side = temporary.with_suffix(".sha256")
    side.write_text(f"{sha256(temporary)}  {path.name}\n")
    os.replace(side, path.with_name(path.name + ".sha256"))
    os.replace(temporary, path)
