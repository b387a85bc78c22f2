"""Fetching data sets into the data folder, only on request (`reproduce data get NAME`)."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.data.formats import TORCHVISION, of_torchvision
from reproduce.data.load import find_layout, load, sha256, verified
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

ARCHIVES = {
    "cinic10": (
        "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz", "6ee4d0c996905fe93221de577967a372", ""
    ),
    "tiny_imagenet": (
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", "tiny-imagenet-200"
    ),
}  # fmt: skip
"""Official archives: address, MD5, and the folder in it that has the folders of the set's last layout."""


def download(name: str, settings: Settings) -> Path:
    """Fetch the complete data set into `settings.data` unless it is there, verify it, and give its first file.

    Raises UserError without network, for other than the official data, when the disk is full, and for a damaged file
    that is already there (which is never overwritten).
    """
    source, folder = find_source(name), settings.data / name
    if source.embedded:
        raise UserError(f"{name} is part of the package; there is nothing to get")
    layout = find_layout(source, settings.data)
    if layout is None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".get-", suffix=".tmp", dir=folder) as temporary:
                layout = _get(source, settings.data, Path(temporary))
        except UserError:
            raise
        except Exception as error:  # urllib and torchvision each have their own errors for a missing network
            raise UserError(
                f"data set {name} could not be fetched into {folder} ({type(error).__name__}: {error}); check the "
                f"network and the disk, or copy the files from another machine (docs/data.md)"
            ) from error
    load(name, settings)
    return settings.data / layout.files[0].path


def _get(source: Source, folder: Path, temporary: Path) -> Files:
    """The layout whose files were fetched, verified, and moved to their places."""
    official = next((known for known in source.layouts if all(f.path in URLS for f in known.files)), None)
    layout = official or source.layouts[-1 if source.name in ARCHIVES else 0]
    absent = [file for file in layout.files if not (folder / file.path).exists()]
    if official:
        downloads = {file.path: _fetch(URLS[file.path], temporary / file.path) for file in absent}
        for file in absent:
            verified(file, temporary, source.name)
    elif source.name in ARCHIVES:
        url, md5, inside = ARCHIVES[source.name]
        packed = _fetch(url, temporary / url.rpartition("/")[2])
        with packed.open("rb") as stream:
            digest = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if digest != md5:
            raise UserError(f"{url} has the MD5 {digest}, expected {md5}; try again later")
        # Zip files are unpacked safely, and so are tar files from Python 3.11.4 on.
        safe: Any = {"filter": "data"} if packed.suffix == ".gz" and hasattr(tarfile, "data_filter") else {}
        shutil.unpack_archive(packed, temporary / "unpacked", **safe)
        downloads = {f.path: temporary / "unpacked" / inside / Path(f.path).name for f in absent}
    elif source.name in TORCHVISION:
        path, whole, side = layout.files[0].path, temporary / "whole.npz", temporary / "whole.sha256"
        np.savez_compressed(whole, allow_pickle=False, **of_torchvision(source, temporary, download=True))
        side.write_text(f"{sha256(whole)}  {Path(path).name}\n")
        downloads = {f"{path}.sha256": side, path: whole}  # alone the side file is harmless, the archive is refused
    else:
        files = " and ".join(file.path for file in layout.files)
        raise UserError(f"{source.name} is nowhere to be fetched: copy {files} into the data folder (docs/data.md)")
    for path, fetched in downloads.items():
        os.replace(fetched, folder / path)
    return layout


def _fetch(url: str, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as stream:
        shutil.copyfileobj(answer, stream)
    return target
